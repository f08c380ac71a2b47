"""Whether models fit into a machine's memory, in one word: by headers, or guessed from sizes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from edgespec.memory import Device
from edgespec.memory_plan import Machine, Plan, Wish, plan
from edgespec.memory_words import notices, refusal, summary
from model_registry.shape import Shape

Place = Literal["GPU", "partly", "RAM", "no", "?"]

_BYTES_A_WEIGHT = 0.6
"""Of four-bit quantisation. Files in more bits hold fewer weights, so that a guess errs upwards."""
_VOCABULARY = 151_936
_LAYERS, _LARGE_LAYERS, _LARGE = 32, 64, 8_000_000_000
_KEYS, _SMALL_KEYS, _SMALL = 1024, 256, 600_000_000
"""Numbers of the cache of one token and layer, as models of today have them; bytes of a small one."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Where a model would run."""

    where: Place
    """`GPU` for all layers of the target, `partly` for some; `?` where nothing is known yet."""
    estimated: bool = False
    """Guessed from the sizes of files that are not here."""
    less: bool = False
    """Something is given up for want of memory: the draft, some context, precision, a place on a GPU."""
    why: str = ""
    """Sentences, for whoever asks."""

    def __str__(self) -> str:
        return f"~{self.where}" if self.estimated else self.where


UNKNOWN = Fit("?")


def judged(made: Plan, *, estimated: bool = False) -> Fit:
    """A memory plan in one word."""
    if not made.fits and not made.forced:
        return Fit("no", estimated, less=True, why=str(refusal(made)))
    layers = made.target.gpu_layers
    where: Place = "RAM"
    if layers:
        where = "GPU" if layers >= made.target.cost.count else "partly"
    lost = notices(made)
    return Fit(where, estimated, less=bool(lost), why=" ".join([summary(made), *lost]))


def estimated(name: str, sizes: Sequence[int | None], machine: Machine, context: int = 4096) -> Fit:
    """Of a target and, where there is one, its draft, from the bytes of their files alone."""
    known = [size for size in sizes if size]
    if not sizes or len(known) < len(sizes):
        return UNKNOWN
    shapes = [guessed(*one) for one in zip((name, f"{name}'s draft"), known, strict=False)]
    wish = Wish(shapes[0], shapes[1] if len(shapes) > 1 else None, context=context)
    return judged(plan(wish, machine), estimated=True)


def guessed(name: str, size: int) -> Shape:
    """A model of `size` bytes, built as most of that size are."""
    count = _LARGE_LAYERS if size > _LARGE else _LAYERS
    keys = _KEYS if size > _SMALL else _SMALL_KEYS
    width = max(int((size / _BYTES_A_WEIGHT / (12 * count)) ** 0.5) // 64 * 64, 64)
    embeddings = min(int(_VOCABULARY * width * _BYTES_A_WEIGHT), size // 6)
    return Shape(
        name=name,
        layers=((size - 2 * embeddings) // count,) * count,
        input=embeddings,
        output=embeddings,
        copy=0,
        keys=(keys,) * count,
        values=(keys,) * count,
        state=0,
        quantisable=True,
        width=width,
        inner=width * 7 // 2,
        vocabulary=_VOCABULARY,
        windows=False,
        context=None,
    )


def without(held: Mapping[str, int], machine: Machine) -> Machine:
    """The machine when what is `held` is given back: bytes by device, `CPU` for RAM."""

    def freed(device: Device) -> Device:
        free = min(device.free + held.get(device.name, 0), device.total)
        return replace(device, free=free)

    return Machine(freed(machine.ram), tuple(map(freed, machine.gpus)))
