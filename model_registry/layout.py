"""Where the bytes of a model lie: what belongs to which layer, to its input and to its output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_BLOCK = re.compile(r"blk\.(\d{1,6})\.")
_EMBEDDING = "token_embd.weight"
_INPUT = ("token_embd", "per_layer_token_embd", "position_embd", "token_types")
"""Tensors that llama.cpp always keeps in RAM (src/llama-arch.cpp: LLM_TENSOR_LAYER_INPUT)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Bytes of tensors, without the padding between them."""

    blocks: tuple[tuple[int, int], ...] = ()
    """Number of a layer and the bytes of its tensors, ascending."""
    input: int = 0
    embedding: int = 0
    """The part of `input` that is the matrix of token embeddings."""
    output: int = 0
    """The output matrix, its norm, and what belongs to no layer."""
    has_output: bool = False
    """False where the output uses the matrix of embeddings."""

    @property
    def total(self) -> int:
        """All bytes."""
        return self.input + self.output + sum(size for _, size in self.blocks)


class LayoutSum:
    """Adds up tensors one by one: names are not kept, there may be 65 536 of them."""

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        self._input = self._embedding = self._output = 0
        self._has_output = False

    def add(self, name: str, size: int) -> None:
        """Count one tensor."""
        if match := _BLOCK.match(name):
            number = int(match[1])
            self._blocks[number] = self._blocks.get(number, 0) + size
        elif name.partition(".")[0] in _INPUT:
            self._input += size
            self._embedding += size if name == _EMBEDDING else 0
        else:
            self._output += size
            self._has_output |= name == "output.weight"

    @property
    def layout(self) -> Layout:
        """The sums so far."""
        blocks = tuple(sorted(self._blocks.items()))
        return Layout(blocks, self._input, self._embedding, self._output, self._has_output)


def joined(layouts: Iterable[Layout]) -> Layout:
    """The layout of a model whose files have these."""
    blocks: dict[int, int] = {}
    parts = list(layouts)
    for part in parts:
        for number, size in part.blocks:
            blocks[number] = blocks.get(number, 0) + size
    return Layout(
        tuple(sorted(blocks.items())),
        sum(part.input for part in parts),
        sum(part.embedding for part in parts),
        sum(part.output for part in parts),
        any(part.has_output for part in parts),
    )
