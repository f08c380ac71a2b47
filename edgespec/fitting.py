"""The memory plan for this machine: reads headers and asks devices, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from edgespec.errors import ModelFileError, UsageError
from edgespec.llama import eagle3, ggml, rpc
from edgespec.llama.head import ROWS
from edgespec.memory import KV_TYPES, Device, next_layer, own_gpus
from edgespec.memory_plan import Machine, Plan, Wish, plan
from edgespec.memory_words import refusal
from edgespec.settings import Load
from model_registry.gguf import read_header
from model_registry.heads import EAGLE3
from model_registry.inspect import check_file, split_parts
from model_registry.problem import ModelFileProblem
from model_registry.shape import Shape, shape_of
from profiles.ram import ram as main_memory


def planned(load: Load, target: Path, draft: Path | None, rows: int, *, head: int = 0) -> Plan:
    """How to load two files here. `rows` of logits are what a pass of the target may give; `head` the
    bytes of a drafting head.

    Raises ModelFileError, UsageError, OutOfMemoryError.
    """
    main = shape(target)
    if main.architecture == EAGLE3:
        raise ModelFileError(
            f"{main.name} is an EAGLE-3 head, which drafts for a model and answers nothing itself.",
            "Name it with --draft, and the model it was trained for with --model.",
        )
    wish = Wish(
        main,
        shape(draft) if draft else None,
        context=load.context,
        rows=rows,
        kv_type=load.kv_type,
        gpu_layers=load.gpu_layers,
        mapped=load.mmap,
        head=head,
    )
    if load.method == "mtp":
        wish = replace(
            wish, head=next_layer(main, min(load.context, main.context or load.context), ROWS)
        )
    wish = with_eagle3(wish)
    check_kv_type(wish)
    made = plan(wish, this_machine(load.rpc))
    if not made.fits and not made.forced:
        raise refusal(made)
    return made


def with_eagle3(wish: Wish) -> Wish:
    """The wish with the states that its draft reads, where that is an EAGLE-3 head."""
    if wish.draft is None or wish.draft.architecture != EAGLE3:
        return wish
    return replace(wish, draft_rows=ROWS, reads=eagle3.LAYERS * wish.target.width)


def shape(path: Path) -> Shape:
    """Read off the headers of a model's files. Raises ModelFileError."""
    try:
        header = check_file(path)
        parts = split_parts(path, header)
        headers = [header, *(read_header(part) for part in parts[1:])]
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    return shape_of(headers, [one.size for one in headers], path.stem)


def check_kv_type(wish: Wish) -> None:
    """Raise UsageError for a type of KV cache that the target cannot have."""
    if wish.kv_type is not None and wish.kv_type not in KV_TYPES:
        raise UsageError(
            f"There is no KV cache of type {wish.kv_type!r}.", f"Types: {', '.join(KV_TYPES)}."
        )
    if wish.kv_type not in {None, "f16"} and not wish.target.quantisable:
        raise UsageError(
            f"The KV cache of {wish.target.name} cannot be stored as {wish.kv_type}: its heads are "
            "no multiple of 32.",
            "Leave --kv-type out.",
        )


def this_machine(servers: Sequence[str] = ()) -> Machine:
    """RAM, the GPUs that this build of llama.cpp can use, and the devices of `HOST:PORT`s.

    Devices of other machines are filled last. Raises UsageError.
    """
    memory = ram()
    remote = [ggml.describe(name).with_memory(memory) for name in rpc.connect(servers)]
    return Machine(memory, (*own_gpus(ggml.local(), memory), *remote))


def ram() -> Device:
    """This machine's memory as it is now; ggml's own figure calls all of it free."""
    memory = main_memory()
    return Device("CPU", "cpu", memory.available, memory.total)


def device_now(name: str) -> Device:
    """A device as it is now; one behind a server as it was after loading."""
    return ram() if name == "CPU" else ggml.glance(name)


def look_again(names: Iterable[str]) -> None:
    """Ask devices for the memory that loading has left; `device_now` keeps to that for remote ones."""
    for name in names:
        ggml.describe(name)
