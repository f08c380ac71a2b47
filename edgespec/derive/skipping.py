"""A low-bit copy of the target whose layers can be switched off one by one, in memory.

To write a file for each set of layers would wear out disks: hundreds of them, gigabytes each. A layer
adds to what comes in the outputs of two matrices; where these are zero it passes on what came, exactly.
The copy is mapped, so what is written to its file is what llama.cpp computes with: the system keeps one
set of pages for both (llama_mmap maps MAP_SHARED, src/llama-mmap.cpp).
"""

from __future__ import annotations

import mmap
import re
import shutil
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from edgespec.errors import EdgeSpecError
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from model_registry.extents import Extent, tensor_extents

_OUTPUTS = re.compile(
    r"blk\.(?P<layer>\d+)\."
    r"(?:attn_output|ffn_down(?:_exps|_shexp|_chexps)?|post_attention_norm|post_ffw_norm)"
    r"\.(?:weight|bias)"
)
"""What a layer's two branches end in (src/llama-arch.cpp), and their biases."""


class UnskippableError(EdgeSpecError):
    """Layers that end in other matrices than are known here."""


class SkippingModel:
    """A model on a copy of a file; `model` computes without the layers that are skipped."""

    def __init__(
        self, original: Path, copy: Path, *, context: int, threads: int, max_rows: int
    ) -> None:
        """Copy the file and load the copy onto the CPU: other devices copy what they are given.

        Raises ModelFileError, OutOfMemoryError, OSError, UnskippableError.
        """
        self._outputs = layer_outputs(original)
        self._skipped: frozenset[int] = frozenset()
        with ExitStack() as opened:
            shutil.copyfile(original, copy)
            opened.callback(copy.unlink)
            self._whole = opened.enter_context(_mapped(original, "rb", mmap.ACCESS_READ))
            self._pages = opened.enter_context(_mapped(copy, "r+b", mmap.ACCESS_WRITE))
            weights = Weights(copy, mmap=True, gpu_layers=0, devices=(), rearranged=False)
            opened.callback(weights.close)
            self.model = LlamaModel(weights, context=context, threads=threads, max_rows=max_rows)
            opened.callback(self.model.close)
            self._opened = opened.pop_all()

    def skip(self, layers: Collection[int]) -> None:
        """Do without these layers, and with all others. The cache is emptied: it was theirs."""
        self.model.truncate(0)
        wanted = frozenset(layers)
        for layer in self._skipped ^ wanted:
            for extent in self._outputs[layer]:
                piece = slice(extent.start, extent.start + extent.size)
                zeros = bytes(extent.size) if layer in wanted else None
                self._pages[piece] = self._whole[piece] if zeros is None else zeros
        self._skipped = wanted

    def close(self) -> None:
        """Free everything, and remove the copy."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def layer_outputs(path: Path) -> dict[int, list[Extent]]:
    """By layer, what must be zero for it to add nothing.

    Raises UnskippableError where a layer does not end in an attention and a feed-forward matrix, and
    GGUFError.
    """
    found: dict[int, list[Extent]] = {}
    branches: dict[int, set[str]] = {}
    layers = set()
    for name, extent in tensor_extents(path).items():
        if name.startswith("blk."):
            layers.add(int(name.split(".")[1]))
        if match := _OUTPUTS.fullmatch(name):
            layer = int(match["layer"])
            found.setdefault(layer, []).append(extent)
            branches.setdefault(layer, set()).add(name.split(".")[2][:4])
    if not layers or any(not {"attn", "ffn_"} <= branches.get(one, set()) for one in layers):
        raise UnskippableError(
            "The layers of this kind of model cannot be tried one by one.",
            "Leave layers out by number with --drop, or none with --layers all.",
        )
    return found


def _mapped(path: Path, mode: str, access: int) -> mmap.mmap:
    with path.open(mode) as file:
        return mmap.mmap(file.fileno(), 0, access=access)
