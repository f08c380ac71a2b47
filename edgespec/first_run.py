"""The first start on a machine: what it has, and the pair to begin with. Nothing here asks a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.memory import Device, own_gpus, readable
from edgespec.memory_plan import Machine
from edgespec.shelf.fit import Fit, estimated
from edgespec.shelf.row import Row
from edgespec.shelf.stock import pair_row
from model_registry.sizes import human_size

if TYPE_CHECKING:
    from edgespec.llama.probe import Probe
    from model_registry.catalog import Catalog
    from profiles.hardware import Hardware
    from profiles.tuned import Tuned

_GIB = 1 << 30
_REPORTED = 0.9
"""Of the memory that a card is sold with, what it reports at least."""
_BYTES_A_CORE = 650_000_000
"""Weights that a core reads some ten times a second, about as fast as people read: two cores were measured
to read 3.1 GB five times."""
_MOST_BYTES = 4_800_000_000
"""More cores do not help beyond this: they share the memory."""
_LATER = (
    "How fast it is here, and what guessing ahead adds, is measured when it is here: nobody knows it "
    "before."
)


@dataclass(frozen=True, slots=True)
class Offer:
    """What to tell and to propose. All texts are sentences."""

    hardware: tuple[str, ...]
    hints: tuple[str, ...] = ()
    """What this build cannot use, and the command that would change it."""
    row: Row | None = None
    """A pair of the catalogue; None where none fits at a sensible speed."""
    why: str = ""
    """Why this one, or why none."""
    brings: str = ""


def look() -> Offer:
    """Look at this machine and propose. Takes seconds: call it in a thread. Raises nothing expected."""
    from edgespec.llama.probe import RuntimeUnusableError  # noqa: PLC0415 - the app opens first
    from edgespec.llama.probe import look as ask_llama  # noqa: PLC0415
    from edgespec.llama.unused import unused  # noqa: PLC0415
    from model_registry import catalog  # noqa: PLC0415
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415
    from profiles.hardware import detect  # noqa: PLC0415
    from profiles.tuned import TunedStore  # noqa: PLC0415

    hardware = detect()
    machine, hints = Machine(_ram(hardware)), []
    try:
        # In a process of its own: a GPU's driver in trouble may crash or hang.
        probe = ask_llama()
        machine = machine_of(hardware, probe)
        hints = [f"{text} {step}" for text, step in unused(hardware, probe)]
    except RuntimeUnusableError as problem:
        hints = [str(problem)]
    try:
        known = catalog.load()
    except ModelFileProblem as problem:
        return Offer(described(hardware, machine), (*hints, str(problem)))
    offer = propose(hardware, machine, known, TunedStore.default().all())
    return replace(offer, hints=tuple(hints))


def propose(
    hardware: Hardware, machine: Machine, known: Catalog, results: Iterable[Tuned] = ()
) -> Offer:
    """The best pair of the catalogue for a machine: by the memory of its GPU, else by RAM and cores."""
    told = described(hardware, machine)
    row, why = _for_gpu(machine, known) or _for_processor(hardware, machine, known)
    if row is None:
        return Offer(told, why=why)
    return Offer(told, row=row, why=why, brings=_brings(hardware, known, row, results))


def described(hardware: Hardware, machine: Machine) -> tuple[str, ...]:
    """The machine in sentences."""
    cores = hardware.usable_cores
    counted = f"{cores} core{'s' * (cores > 1)}"
    told = [f"{hardware.cpu} with {counted}, {human_size(hardware.ram)} of memory."]
    told += [
        f"{gpu.description or gpu.name}: {readable(gpu.total)} that llama.cpp can use."
        for gpu in machine.gpus
    ]
    if not machine.gpus:
        told.append("No GPU that this build of llama.cpp can use.")
    return tuple(told)


def machine_of(hardware: Hardware, probe: Probe) -> Machine:
    """The machine as the memory plan knows it."""
    memory = _ram(hardware)
    return Machine(memory, tuple(own_gpus(probe.devices, memory)))


def due(model: str | None) -> bool:
    """Whether to ask at this start: nothing is stored, no model was named, and it was not asked yet."""
    from model_registry.files import StoreProblem  # noqa: PLC0415 - the app opens first
    from model_registry.store import Store  # noqa: PLC0415

    if model is not None or marker().exists():
        return False
    try:
        return not Store.default().read().models
    except StoreProblem:
        return False


def dismiss() -> None:
    """Do not ask again. A folder that cannot be written to does not mind."""
    with suppress(OSError):
        marker().parent.mkdir(parents=True, exist_ok=True)
        marker().touch()


def marker() -> Path:
    """The file that says that it was asked."""
    from platformdirs import user_state_path  # noqa: PLC0415 - the app opens first

    return user_state_path("edgespec", appauthor=False) / "first-run"


def _ram(hardware: Hardware) -> Device:
    return Device("CPU", "cpu", hardware.ram_available, hardware.ram)


def _for_gpu(machine: Machine, known: Catalog) -> tuple[Row, str] | None:
    """The catalogue's own choice by memory, if it seems to fit what is free of it."""
    cards = [gpu for gpu in machine.gpus if gpu.kind == "gpu"]
    memory = sum(card.total for card in cards)
    sizes = [size for size in known.gpus if size * _REPORTED * _GIB <= memory]
    for size in sorted(sizes, reverse=True):
        row = _fitted(known, known.gpus[size], machine)
        if row.fit.where in {"GPU", "?"} and not row.fit.less:
            return row, f"The pair for {size} GB of GPU memory: all of it runs there."
    return None


def _for_processor(hardware: Hardware, machine: Machine, known: Catalog) -> tuple[Row | None, str]:
    """The largest that the memory holds and that the cores read fast enough."""
    cores = hardware.usable_cores
    limit = min(cores * _BYTES_A_CORE, _MOST_BYTES)
    targets = {name: known.models[pair.target].size or 0 for name, pair in known.pairs.items()}
    alone = Machine(machine.ram)
    counted = f"{cores} core{'s' * (cores > 1)}"
    for name in sorted(targets, key=lambda one: targets[one], reverse=True):
        if not 0 < targets[name] <= limit:
            continue
        row = _fitted(known, name, alone)
        if row.fit.where == "RAM" and not row.fit.less:
            return row, (
                f"The largest pair that {counted} should answer with about as fast as one reads, and "
                "that fits the free memory."
            )
    return None, (
        f"No pair of the catalogue fits the free memory and {counted}: the built-in model is what "
        "answers at a sensible speed."
    )


def _fitted(known: Catalog, name: str, machine: Machine) -> Row:
    row = pair_row(known, name)
    fit: Fit = estimated(name, row.sizes, machine)
    return replace(row, fit=fit)


def _brings(hardware: Hardware, known: Catalog, row: Row, results: Iterable[Tuned]) -> str:
    """What was measured here with files of the same names; else that nobody knows."""
    pair = known.pairs[row.name]
    names = [_stems(known, one) for one in (pair.target, pair.draft)]
    for one in results:
        same = one.target_name in names[0] and (one.draft_name or "") in names[1]
        if same and one.key.hardware == hardware.digest:
            return _measured(one)
    return _LATER


def _stems(known: Catalog, model: str) -> Sequence[str]:
    return [Path(file.path).stem for file in known.models[model].files[:1]]


def _measured(one: Tuned) -> str:
    from edgespec.costs import CostTable  # noqa: PLC0415 - the app opens first
    from edgespec.payoff import best  # noqa: PLC0415

    first = one.tables[0]
    table = CostTable(first.depth, first.verify, first.draft)
    text = f"Measured on this machine before: {1 / table.token:.1f} tokens a second"
    gains = [best(table, share).speedup for share in one.acceptance.values()]
    if not gains:
        return f"{text}."
    low, high = min(gains), max(gains)
    span = f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"
    return f"{text}, {span} times that with guessing ahead."
