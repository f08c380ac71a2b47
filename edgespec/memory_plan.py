"""How a target and its draft are laid out over a machine's memory. Pure.

Ways to load are tried in one fixed order, from the best down, and the first that fits is taken: so more
memory never makes a worse plan. What is given up, in this order: the KV cache at full precision, the
draft on a GPU, the target's layers on a GPU one by one, the draft, and only then the context.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from edgespec.memory import Device, ModelCost, Share, total
from model_registry.shape import Shape

LEAST_CONTEXT = 2048
"""Tokens; a context is not cut below this, nor below what was asked for."""

_CUTS = 16


@dataclass(frozen=True, slots=True)
class Machine:
    """Where models can be put."""

    ram: Device
    gpus: tuple[Device, ...] = ()
    """In the order in which they are filled: the first gets the output layer."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """All, RAM last."""
        return (*self.gpus, self.ram)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be loaded."""

    target: Shape
    draft: Shape | None = None
    context: int = 4096
    rows: int = 32
    """Rows of logits that a pass of the target may give."""
    draft_rows: int = 8
    reads: int = 0
    """Numbers of hidden states that the draft reads of each of the target's tokens, as EAGLE-3 heads do."""
    kv_type: str | None = None
    """None for f16, or q8_0 where that helps."""
    gpu_layers: int | None = None
    """As llama.cpp counts them, -1 for all; None for as many as fit."""
    mapped: bool = False
    """Weights in RAM are mapped from the file: the system can do without them, slowly."""
    head: int = 0
    """Bytes of a drafting head on the target's states, which lies in RAM."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one model goes."""

    cost: ModelCost
    shares: tuple[Share, ...]
    """By device, RAM last; devices that hold no layers are left out."""

    @property
    def gpu_layers(self) -> int:
        """llama.cpp's `n_gpu_layers`."""
        return sum(share.layers for share in self.on_gpus)

    @property
    def on_gpus(self) -> tuple[Share, ...]:
        """In the order of llama.cpp's list of devices, which is that of the layers."""
        return tuple(reversed(self.shares[:-1]))


@dataclass(frozen=True, slots=True)
class Room:
    """One device under a plan. Bytes."""

    device: Device
    used: int

    @property
    def left(self) -> int:
        """Of what may be used; negative when it does not fit."""
        return self.device.usable - self.used


@dataclass(frozen=True, slots=True)
class Plan:
    """How to load. `edgespec.memory_words` puts it into sentences."""

    wish: Wish
    machine: Machine
    target: Placement
    draft: Placement | None
    """None also when there is no room for it."""
    fits: bool
    forced: bool = False
    """It does not fit by the estimate, but a person named the number of layers."""
    head: int = 0
    """Bytes of the drafting head; 0 also when there is no room for it."""

    @property
    def context(self) -> int:
        """Tokens."""
        return self.target.cost.context

    @property
    def models(self) -> tuple[Placement, ...]:
        """Target and, where there is one, draft."""
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def short(self) -> int:
        """Bytes that are missing, over all devices."""
        return sum(max(-room.left, 0) for room in self.rooms)

    @property
    def rooms(self) -> tuple[Room, ...]:
        """The devices, RAM last; in shared memory, what GPUs take counts there too."""
        shares = [share for model in self.models for share in model.shares]
        used = {device.name: total(shares, device.name) for device in self.machine.devices}
        mapped = sum(model.shares[-1].weights for model in self.models) if self.wish.mapped else 0
        shared = sum(used[gpu.name] for gpu in self.machine.gpus if gpu.shares_ram)
        used[self.machine.ram.name] += shared - mapped + self.head
        return tuple(Room(device, used[device.name]) for device in self.machine.devices)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to load."""

    context: int
    with_draft: bool
    kv_type: str
    layers: int | None
    """Of the target, on GPUs; None for as many as fit."""
    draft_on_gpu: bool


def plan(wish: Wish, machine: Machine) -> Plan:
    """The best way to load that fits; with `fits` False the one that misses by least, if none does."""
    tried = []
    for way in _ways(wish, machine):
        made = _try(way, wish, machine)
        if made.fits:
            return made
        tried.append(made)
    if wish.gpu_layers is not None and machine.gpus:
        return _forced(wish, machine)
    return min(tried, key=lambda made: made.short)


def _ways(wish: Wish, machine: Machine) -> Iterator[_Way]:
    """All ways, the best first."""
    best, *others = _counts(wish, machine)
    kv_types = _kv_types(wish)
    for context, with_draft in _contexts(wish):
        for on_gpu in (True, False) if with_draft and machine.gpus else (False,):
            for kv_type in kv_types:
                yield _Way(context, with_draft, kv_type, best, on_gpu)
        for kv_type in kv_types:
            for count in others:
                yield _Way(context, with_draft, kv_type, count, False)


def _contexts(wish: Wish) -> Iterator[tuple[int, bool]]:
    """Contexts to try, with a draft or not: it goes before the context is cut."""
    context = min(wish.context, wish.target.context or wish.context)
    if wish.draft or wish.head:
        yield context, True
    yield context, False
    for part in range(_CUTS - 1, 0, -1):
        cut = context * part // _CUTS // 256 * 256
        if cut >= LEAST_CONTEXT:
            yield cut, False


def _kv_types(wish: Wish) -> list[str]:
    if wish.kv_type:
        return [wish.kv_type]
    return ["f16", "q8_0"] if wish.target.quantisable else ["f16"]


def _counts(wish: Wish, machine: Machine) -> list[int | None]:
    """Numbers of the target's layers on GPUs that are to be tried, all of them first."""
    if not machine.gpus:
        return [0]
    most = len(wish.target.layers) + 1
    if wish.gpu_layers is None:
        return [most, None, 0]
    return [most if wish.gpu_layers < 0 else min(wish.gpu_layers, most)]


def _costs(way: _Way, wish: Wish) -> tuple[ModelCost, ModelCost | None]:
    target = ModelCost(wish.target, way.context, way.kv_type, wish.rows)
    draft = wish.draft if way.with_draft else None
    if draft is None:
        return target, None
    target = replace(target, gives=wish.reads)
    kv_type = way.kv_type if draft.quantisable else "f16"
    context = min(way.context, draft.context or way.context)
    return target, ModelCost(draft, context, kv_type, wish.draft_rows, reads=wish.reads)


def _try(way: _Way, wish: Wish, machine: Machine) -> Plan:
    """Put the draft on the first GPU that leaves room for the target's layers, then these."""
    target, draft = _costs(way, wish)
    best = None
    for gpu in machine.gpus if draft and way.draft_on_gpu else (None,):
        on_gpu = _draft_share(draft, gpu, wish) if draft and gpu else ()
        free = {one.name: one.usable - total(on_gpu, one.name) for one in machine.gpus}
        shares = _filled(target, way.layers, machine.gpus, free)
        placed = way.layers in (None, sum(share.layers for share in shares))
        layout = Plan(
            wish,
            machine,
            _placement(target, shares, machine),
            _placement(draft, on_gpu, machine) if draft else None,
            fits=False,
            head=wish.head if way.with_draft else 0,
        )
        if placed and all(room.left >= 0 for room in layout.rooms):
            return replace(layout, fits=True)
        best = best or layout
    if best is None:
        raise TypeError("no GPU to try")
    return best


def _draft_share(draft: ModelCost, gpu: Device, wish: Wish) -> tuple[Share, ...]:
    """All of a draft on one GPU, or as many layers as a person said."""
    asked = wish.gpu_layers
    count = draft.count if asked is None or asked < 0 else min(asked, draft.count)
    return (draft.on(gpu, 0, count, _largest(draft, count)),) if count else ()


def _filled(
    cost: ModelCost, wanted: int | None, gpus: Sequence[Device], free: dict[str, int]
) -> tuple[Share, ...]:
    """Shares of layers: as many as fit on the first GPU, from the output layer down, and so on.

    They hold fewer layers together than `wanted` when there is no room for all.
    """
    count = cost.count if wanted is None else wanted
    left = _largest(cost, 1 if wanted is None else wanted)
    shares = []
    first = 0
    for gpu in gpus:
        ends = range(first + 1, count + 1)
        end = first + bisect_right(ends, free[gpu.name], key=partial(_size, cost, gpu, first, left))
        if end > first:
            shares.append(cost.on(gpu, first, end, left))
        first = end
    return tuple(shares)


def _size(cost: ModelCost, gpu: Device, first: int, left: int, end: int) -> int:
    return cost.on(gpu, first, end, left).total


def _largest(cost: ModelCost, first: int) -> int:
    """Bytes of the largest layer from `first` on, counted from the end."""
    return max(map(cost.weights, range(max(first, 1), cost.count)), default=0)


def _placement(cost: ModelCost, shares: tuple[Share, ...], machine: Machine) -> Placement:
    first = sum(share.layers for share in shares)
    return Placement(cost, (*shares, cost.in_ram(machine.ram, first)))


def _forced(wish: Wish, machine: Machine) -> Plan:
    """What a person ordered though it does not fit: on the first GPU, for llama.cpp to try."""
    way = next(_ways(wish, machine))
    target, draft = _costs(way, wish)
    gpus = machine.gpus[:1]
    endless = {gpu.name: 1 << 62 for gpu in gpus}
    shares = _filled(target, way.layers, gpus, endless)
    on_gpu = _draft_share(draft, gpus[0], wish) if draft and gpus else ()
    return Plan(
        wish,
        machine,
        _placement(target, shares, machine),
        _placement(draft, on_gpu, machine) if draft else None,
        fits=False,
        forced=True,
        head=wish.head,
    )
