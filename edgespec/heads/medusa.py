"""Medusa heads in numpy: from one hidden state to logits for the next tokens (Cai et al. 2024).

Head k says what follows k tokens after the one that the state itself predicts:

    logits_k = output · (SiLU(block_k · x) + x)

`x` is the target's final state, after the last norm. All heads share `output`, rows of the target's own
output matrix or trained ones, for a part of the vocabulary. With zero blocks every head predicts what
the target itself says next: where training starts.

What a pass costs is reading the matrices once: 88 MB for 4 heads on 1536 numbers and 8192 tokens. BLAS
packs large matrices anew for each product, which takes several times longer, and wakes threads that
disturb those of llama.cpp. So they are multiplied in pieces small enough for its kernels for small ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgespec.model import HiddenStates, Logits, Token

_SMALL = 800_000
"""Multiplications of a piece with all heads: OpenBLAS's kernels for small matrices take 1,000,000."""
_ALONE = 9_000
"""Numbers of a piece that meets a single vector: above 9,216 OpenBLAS takes threads for it."""
_LONGEST = 128
"""Rows of a piece at most."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes the probabilities of a head honest: how often it is right when it says 0.6."""

    temperature: float = 1.0
    """Its logits are divided by this."""
    coverage: float = 1.0
    """How often the token is in the part of the vocabulary that the head knows."""


class MedusaHeads:
    """Heads, ready to be asked. Not thread-safe."""

    def __init__(
        self,
        blocks: ArrayLike,
        output: ArrayLike,
        vocabulary: ArrayLike,
        calibration: Sequence[Calibration] = (),
    ) -> None:
        """Of arrays of any float type, which are copied:

        `blocks` [heads, width, width], `output` [tokens, width], and `vocabulary` [tokens], the
        target's ids of the rows of `output`, ascending. One calibration a head, or none.
        """
        self.vocabulary: NDArray[np.int64] = np.array(vocabulary, np.int64)
        """int64[tokens], ascending."""
        found = np.asarray(blocks)
        self.count, self.width = int(found.shape[0]), int(found.shape[1])
        """Heads, and numbers in a state."""
        self.calibration = tuple(calibration) or (Calibration(),) * self.count
        self._blocks = [_in_pieces(block, _ALONE // self.width) for block in found]
        several = max(self.count, 2) * self.width
        self._output = _in_pieces(np.asarray(output), _SMALL // several)

    @property
    def nbytes(self) -> int:
        """What the matrices take in memory."""
        return self._output.nbytes + sum(block.nbytes for block in self._blocks)

    def logits(self, state: HiddenStates, count: int, first: int = 0) -> Logits:
        """float32[count, tokens] of `count` heads from `first` on, calibrated, for float32[width]."""
        hidden = np.empty((count, self.width), np.float32)
        for row, block in zip(hidden, self._blocks[first : first + count], strict=True):
            row[:] = (block @ state).ravel()[: self.width]
        hidden /= 1 + np.exp(-np.maximum(hidden, -80))  # below, SiLU is 0 and exp() overflows
        hidden += state
        found = (self._output @ hidden.T).reshape(-1, count)[: len(self.vocabulary)]
        scale = [1 / one.temperature for one in self.calibration[first : first + count]]
        logits: Logits = np.multiply(found.T, np.array(scale, np.float32)[:, None], order="C")
        return logits

    def seconds(self) -> float:
        """What one head takes, measured now: the quickest of a few times."""
        state = np.ones(self.width, np.float32)
        took = []
        for _ in range(5):
            begun = time.perf_counter()
            self.logits(state, 1)
            took.append(time.perf_counter() - begun)
        return min(took)

    @property
    def coverage(self) -> Sequence[float]:
        """By head, how often the token is one that it knows."""
        return [one.coverage for one in self.calibration]

    def places(self, tokens: Sequence[Token]) -> NDArray[np.int64]:
        """Where the vocabulary has those of `tokens` that it knows; the others are left out."""
        wanted = np.array(tokens, np.int64)
        last = len(self.vocabulary) - 1
        found: NDArray[np.int64] = self.vocabulary.searchsorted(wanted).clip(max=last)
        known: NDArray[np.int64] = found[self.vocabulary[found] == wanted]
        return known


def _in_pieces(matrix: NDArray[Any], most: int) -> NDArray[np.float32]:
    """float32[pieces, rows, width] of at most `most` rows a piece, zeros behind the last row."""
    size = 1 << max(1, min(_LONGEST, most)).bit_length() - 1
    count = -(-len(matrix) // size)
    pieces = np.zeros((count * size, matrix.shape[1]), np.float32)
    pieces[: len(matrix)] = matrix
    return pieces.reshape(count, size, -1)


def calibrated(logits: Logits, truth: NDArray[np.integer]) -> Calibration:
    """The calibration of a head by float32[n, tokens] of uncalibrated logits and what was right.

    `truth` holds places in the vocabulary, -1 for a token that it lacks. The temperature is the one
    that makes the truth likeliest (Guo et al. 2017), found by golden section between 1/8 and 8.
    """
    known = truth >= 0
    if not known.any():
        return Calibration(1.0, 0.0)
    rows = logits[known].astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    right = rows[np.arange(len(rows)), truth[known]]

    def surprise(power: float) -> float:
        scale = 2.0**-power
        return float(np.log(np.exp(rows * scale).sum(axis=1)).mean() - right.mean() * scale)

    low, high = -3.0, 3.0
    ratio = (5**0.5 - 1) / 2
    while high - low > 0.01:
        left, middle = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, middle) if surprise(left) < surprise(middle) else (left, high)
    return Calibration(2.0 ** ((low + high) / 2), float(known.mean()))
