"""What a model takes of which device, in bytes, before it is loaded. Pure: numbers in, numbers out.

Sizes of weights and of KV caches are exact but for padding. Compute buffers are estimated by what the
largest graph of llama.cpp keeps at once: compared with what it logs, an estimate is not smaller and at
most a quarter larger, give or take 1 MiB (tests/real/test_offload.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from model_registry.shape import Shape

Kind = Literal["cpu", "gpu", "integrated", "accelerator"]

MIB = 1 << 20
BATCH = 512
"""Tokens of one native call, whose activations the compute buffers hold."""

MOST_SNAPSHOTS = 7
"""States that are kept beside a running one, each from a token earlier. llama.cpp makes room for 8 nodes of
its graph a tensor, a snapshot takes 3 a layer, and an assertion ends the process when the room is used up
(src/llama-context.cpp, graph_max_nodes): 7 fit beside what a layer needs itself."""
COPIES = 4
"""Of a running state in RAM at most: of the last round, and of three places that a text may go on from."""
_TAKEN = 3
"""Hidden states of a batch in RAM: llama.cpp's, side by side, and in the drafter's hands."""
_SNAPSHOT_SHARE = 16
"""Snapshots take this part of what the weights take at most, since each pass writes them."""

KV_TYPES = {"f16": (1, 2), "q8_0": (32, 34), "q4_0": (32, 18)}
"""How a KV cache can be stored: numbers in a block, bytes of a block."""


@dataclass(frozen=True, slots=True)
class Device:
    """Something that llama.cpp can keep tensors on and compute with."""

    name: str
    """ggml's, e.g. `CUDA0` or `RPC0`; `CPU` stands for RAM."""
    kind: Kind
    """`gpu` has memory of its own, `integrated` shares the processor's, `accelerator` helps the CPU."""
    free: int
    """Bytes at the moment of asking; 0 if the device does not tell."""
    total: int
    """Bytes."""
    description: str = ""
    shares_ram: bool = False
    """What lies here takes RAM too: integrated GPUs, Apple silicon."""
    remote: bool = False
    """Behind an RPC server."""

    @property
    def reserve(self) -> int:
        """What a plan leaves free: a GPU may drive a screen, and its driver takes what no log tells."""
        if self.kind == "cpu":
            return min(256 * MIB, self.total // 32)
        return max(512 * MIB, self.total * 8 // 100)

    @property
    def usable(self) -> int:
        """What a plan may take."""
        return max(self.free - self.reserve, 0)

    def with_memory(self, ram: Device) -> Device:
        """Some devices do not tell their memory, because it is the machine's: `ram` then."""
        if self.total:
            return self
        return replace(self, free=ram.free, total=ram.total, shares_ram=not self.remote)


def own_gpus(devices: Iterable[Device], ram: Device) -> list[Device]:
    """The GPUs of this machine; an integrated one counts where there is no other, as for llama.cpp."""
    local = [one for one in devices if not one.name.startswith("RPC")]
    gpus = [one for one in local if one.kind == "gpu"]
    gpus = gpus or [one for one in local if one.kind == "integrated"][:1]
    return [one.with_memory(ram) for one in gpus]


@dataclass(frozen=True, slots=True)
class Share:
    """What one model takes on one device. Bytes."""

    device: str
    layers: int = 0
    """The output layer counts as one."""
    weights: int = 0
    kv_cache: int = 0
    compute: int = 0

    @property
    def total(self) -> int:
        """All together."""
        return self.weights + self.kv_cache + self.compute


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """What one model takes, as llama.cpp said when it was loaded."""

    name: str
    shares: tuple[Share, ...]
    """Bytes by device."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes."""

    process: int
    """Resident size of this process."""
    weights: int
    """Model files of target and draft."""
    kv_cache: int
    """Key-value caches of target and draft."""
    models: tuple[ModelMemory, ...] = ()
    """Target and, where there is one, draft."""
    devices: tuple[Device, ...] = ()
    """Those that hold any of it, RAM last, with what is free now; one behind an RPC server as it was after
    loading."""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """A model as it is to be loaded; says what each of its layers costs.

    Layers are counted as llama.cpp's `n_gpu_layers` does: from the end, the output layer first.
    """

    shape: Shape
    context: int
    """Tokens."""
    kv_type: str
    rows: int
    """Rows of logits that one pass may give."""
    gives: int = 0
    """Numbers of hidden states that are taken off it, of each token."""
    reads: int = 0
    """Numbers of hidden states that it reads of each token, as an EAGLE-3 head does, and no other."""

    @property
    def count(self) -> int:
        """All layers, the output layer among them."""
        return len(self.shape.layers) + 1

    def weights(self, layer: int) -> int:
        """Of a layer, counted from the end; 0 is the output layer, on another device than the input."""
        if layer == 0:
            return self.shape.output + self.shape.copy
        return self.shape.layers[-layer]

    def kv_cache(self, layer: int) -> int:
        """Of a layer, counted from the end: llama.cpp rounds the context up to 256 (llama-context.cpp)."""
        if layer == 0:
            return 0
        block, size = KV_TYPES[self.kv_type]
        numbers = self.shape.keys[-layer] + self.shape.values[-layer]
        states = self.shape.state * (1 + self.snapshots)
        return -(-numbers * self._cells // block) * size + states

    @property
    def snapshots(self) -> int:
        """How many tokens of a pass can be taken back for nothing, where the memory is a running state."""
        if not self.shape.snapshots or not self._states:
            return 0
        room = self.shape.weights // _SNAPSHOT_SHARE // self._states
        return min(self.rows - 1, MOST_SNAPSHOTS, room)

    @property
    def _states(self) -> int:
        """Bytes of the running state of all layers."""
        return self.shape.state * len(self.shape.layers)

    def compute(self, *, layers: bool, output: bool) -> int:
        """The compute buffer of a device that has some layers, or the output layer too, or neither.

        Each of 512 tokens has its activations, and its row of the mask as float16. Kernels of
        attention that need no matrix of scores are taken for granted.
        """
        shape, batch = self.shape, self._batch
        mask = batch * self._cells * 2 * (2 if shape.windows else 1)
        active = 3 * shape.inner + 4 * shape.width if layers else 2 * shape.width
        widest = batch * active * 4
        if output:
            rows = min(self.rows, batch)
            logits = rows * (shape.vocabulary + 2 * shape.width) * 4 + batch * shape.width * 4
            if self.reads:  # a smaller vocabulary of its own, beside the target's
                logits += rows * shape.vocabulary // 4 * 4
            widest = max(widest, logits)
        states = batch * (self.reads + (self.gives if layers else 0)) * 4
        return mask + widest + states

    @property
    def _unpacked(self) -> int:
        """GPU kernels make float16 of one layer's quantised cache at a time."""
        if self.kv_type == "f16":
            return 0
        pairs = zip(self.shape.keys, self.shape.values, strict=True)
        return max((k + v for k, v in pairs), default=0) * self._cells * 2

    @property
    def logits(self) -> int:
        """The rows of logits in RAM, which llama.cpp allocates when they are first asked for, or at once
        where it takes trees."""
        return self.rows * self.shape.vocabulary * 4

    @property
    def _batch(self) -> int:
        """Tokens of one native call. Of an EAGLE-3 head all have logits."""
        return min(self.rows if self.reads else BATCH, self.context)

    @property
    def _cells(self) -> int:
        return -(-self.context // 256) * 256

    def on(self, device: Device, first: int, end: int, left: int = 0) -> Share:
        """Its share on a GPU that has the layers from `first` to before `end`.

        `left` are the bytes of the largest layer in RAM: for long batches its matrices are copied to
        the GPU one by one (ggml-backend.cpp, op_offload), which remote devices do not do.
        """
        layers = range(first, end)
        copied = 0 if device.remote else left // 2
        return Share(
            device.name,
            len(layers),
            sum(map(self.weights, layers)),
            sum(map(self.kv_cache, layers)),
            self.compute(layers=end > max(first, 1), output=first == 0) + self._unpacked + copied,
        )

    def in_ram(self, device: Device, first: int) -> Share:
        """Its share in RAM when the layers before `first` are elsewhere."""
        layers = range(first, self.count)
        shared = self.shape.copy if first == 0 else 0  # one matrix serves input and output
        return Share(
            device.name,
            len(layers),
            self.shape.input + sum(map(self.weights, layers)) - shared,
            sum(map(self.kv_cache, layers)),
            self.compute(layers=len(layers) > 0, output=first == 0)
            + self.logits
            + COPIES * self._states
            + _TAKEN * self._batch * self.gives * 4,
        )


def next_layer(shape: Shape, context: int, rows: int) -> int:
    """What drafting with a target's own layer for the token after the next takes, in bytes, beside that
    layer: a context with `rows` of logits, and the target's states."""
    cost = ModelCost(shape, context, "f16", rows, reads=shape.width)
    states = _TAKEN * min(BATCH, context) * shape.width * 4
    return cost.compute(layers=True, output=True) + cost.logits + states


def total(shares: Iterable[Share], device: str) -> int:
    """Bytes of all shares on one device."""
    return sum(share.total for share in shares if share.device == device)


def joined(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Shares of one device added up; devices in the order in which they come."""
    sums: dict[str, Share] = {}
    for one in shares:
        before = sums.get(one.device, Share(one.device))
        sums[one.device] = Share(
            one.device,
            before.layers + one.layers,
            before.weights + one.weights,
            before.kv_cache + one.kv_cache,
            before.compute + one.compute,
        )
    return tuple(sums.values())


def readable(size: float) -> str:
    """Bytes in the binary units in which memory is sold: `7.4 GiB`."""
    return f"{size / 2**30:.1f} GiB" if abs(size) >= 1000 * MIB else f"{size / MIB:.0f} MiB"
