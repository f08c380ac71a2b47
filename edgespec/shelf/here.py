"""What a row is worth on this machine: where it would run, and how fast it ran. Call it in a thread.

Reads headers and results and asks devices, for which the runtime is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from edgespec.shelf.fit import UNKNOWN, Fit, estimated, judged, without
from edgespec.shelf.row import Row

if TYPE_CHECKING:
    from pathlib import Path

    from edgespec.memory_plan import Machine
    from edgespec.settings import Load
    from profiles.tuned import TunedStore


def fit_of(
    row: Row,
    load: Load | None = None,
    *,
    held: Mapping[str, int] | None = None,
    machine: Machine | None = None,
) -> Fit:
    """Where it would run, loaded as `load` says: from headers, or guessed where it is not here.

    `held`: bytes by device that the running conversation gives back when another model takes its place.
    `machine`: None to ask this one's devices. Never raises.
    """
    from edgespec.errors import EdgeSpecError  # noqa: PLC0415 - see above
    from edgespec.fitting import check_kv_type, shape, this_machine, with_eagle3  # noqa: PLC0415
    from edgespec.memory_plan import Wish, plan  # noqa: PLC0415
    from edgespec.settings import Load  # noqa: PLC0415
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415

    load = load or Load()
    try:
        room = without(held or {}, machine or this_machine())
        if row.where != "here":
            return estimated(row.name, row.sizes, room, load.context)
        target, draft = files(row)
        main = shape(target)
        wish = Wish(
            main,
            shape(draft) if draft else None,
            context=load.context,
            kv_type=load.kv_type,
            gpu_layers=load.gpu_layers,
            mapped=load.mmap,
        )
        wish = with_eagle3(wish)
        check_kv_type(wish)
        return judged(plan(wish, room))
    except (EdgeSpecError, ModelFileProblem, OSError) as problem:
        return replace(UNKNOWN, why=str(problem))


def with_speed(row: Row, results: TunedStore | None = None) -> Row:
    """The row with what was measured here with its very files. Never raises."""
    from edgespec.payoff import best  # noqa: PLC0415 - see above
    from edgespec.tuned_keys import known  # noqa: PLC0415
    from edgespec.tuning import costs_of  # noqa: PLC0415
    from model_registry.gguf import GGUFError  # noqa: PLC0415
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415
    from profiles.tuned import TunedStore  # noqa: PLC0415

    if row.where != "here":
        return row
    results = results or TunedStore.default()
    try:
        target, draft = files(row)
        paired = known(results, target, draft)
        tuned = paired or known(results, target, None)
    except (ModelFileProblem, GGUFError, OSError):
        return row
    if tuned is None:
        return row
    table = costs_of(tuned).tables[0]
    gains = [best(table, share).speedup for share in tuned.acceptance.values()] if paired else []
    return replace(
        row,
        speed=1 / table.token,
        speed_up=sum(gains) / len(gains) if gains else None,
        rough=bool(tuned.busy),
    )


def assess(
    rows: Iterable[Row], load: Load | None = None, held: Mapping[str, int] | None = None
) -> Iterator[Row]:
    """Each row with its fit and its speed; the devices are asked once. Never raises."""
    from edgespec.errors import EdgeSpecError  # noqa: PLC0415 - see above
    from edgespec.fitting import this_machine  # noqa: PLC0415

    try:
        machine = this_machine()
    except (EdgeSpecError, OSError):
        return
    for row in rows:
        yield with_speed(replace(row, fit=fit_of(row, load, held=held, machine=machine)))


def held_by(shares: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Bytes by device, of pairs of a device's name and bytes."""
    sums: dict[str, int] = {}
    for device, size in shares:
        sums[device] = sums.get(device, 0) + size
    return sums


def files(row: Row) -> tuple[Path, Path | None]:
    """The target's file and the draft's, of a row that is here. Raises ModelFileProblem."""
    from model_registry import locate  # noqa: PLC0415 - see above

    found = locate.find(row.reference)
    return found.target, found.draft
