"""Noise that follows from a seed, a place in the text and a token: for texts that a seed repeats. Pure.

The Gumbel-max trick, told as a race: token x of a distribution p arrives at the time E(x) / p(x), where
E is exponential noise, independent, of mean 1. The first to arrive is distributed as p: it is the
arg-max of log p + G, G = -log E being Gumbel noise. A target and its draft that run the race for one
place with the same noise mostly agree on who is first: with probability (1 - d) / (1 + d) at least, d
the total variation distance of the two (Daliri, Musco, Suresh 2024, arXiv:2408.07978).

The noise is a hash, not a stream: whoever asks for a token at a place gets its number, whatever was
asked before and however large the vocabulary is. Whole numbers give the same bits on every machine;
the logarithm of them may differ in its last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgespec.model import Token
from edgespec.sampling import Distribution

_Bits = TypeVar("_Bits", int, NDArray[Any])  # uint64, which numpy's stubs lose beside whole numbers

_BLOCK = 64
"""Neighbouring ids whose least noise is known without looking at each. A power of two up to 2048; with
another the seeds of old texts would make other texts."""
_ROUNDING = 1 + 1e-12
"""Two logarithms of the same number may differ in the last bit, by where in an array it stands."""


class SharedNoise:
    """The noise of one text."""

    def __init__(self, seed: int | Sequence[int] | None = None) -> None:
        """Of a seed, or of several numbers that make one, each 0 or more; None for a fresh one."""
        words = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._of_tokens, self._of_blocks = (int(word) for word in words)

    def pick(self, distribution: Distribution, position: int) -> Token:
        """The token that the noise at a place of the text takes from a distribution.

        `position` counts all tokens of the text before it, prompt included.
        """
        return self.best(distribution, position, 1)[0]

    def best(self, distribution: Distribution, position: int, count: int) -> list[Token]:
        """The `count` tokens that arrive first, in order; fewer where fewer are possible.

        As drawn without replacement (Gumbel-top-k, Kool et al. 2019): for the children in a tree.
        """
        ids, probs = distribution.ids, distribution.probs
        if ids is None:
            ids = self._contenders(probs, position, count)
            probs = probs[ids]
        possible = probs > 0
        ids = ids[possible]
        first = self._times(position, ids, probs[possible]).argsort(kind="stable")[:count]
        return [int(token) for token in ids[first]]

    def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """The noise of some tokens at a place of the text: independent, exponential, of mean 1."""
        least, place = self._least(position, ids // _BLOCK)
        bits = _split_mix(_split_mix(self._of_tokens, position), ids.astype(np.uint64))
        return least + np.where(ids % _BLOCK == place, 0.0, -np.log(_unit(bits)))

    def _least(
        self, position: int, blocks: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The least noise in each block, and which of its tokens has it.

        Of n exponential numbers the least is exponential with mean 1 / n, each may be it, and what
        the others have beyond it is exponential with mean 1, as if nothing had been before.
        """
        bits = _split_mix(_split_mix(self._of_blocks, position), blocks.astype(np.uint64))
        return -np.log(_unit(bits)) / _BLOCK, (bits % _BLOCK).astype(np.int64)

    def _times(
        self, position: int, ids: NDArray[np.int64], probs: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        return self.exponential(position, ids) / probs

    def _contenders(
        self, probs: NDArray[np.floating], position: int, count: int
    ) -> NDArray[np.int64]:
        """Ids of a whole vocabulary among which the first `count` are, found without looking at all.

        The likeliest of every block run first: their times bound that of the last of `count`. A block
        whose least noise is too late even for its likeliest token has nobody who is in time.
        """
        tops = _likeliest(probs)
        tops = tops[probs[tops] > 0]
        times = self._times(position, tops, probs[tops])
        bound = np.partition(times, count - 1)[count - 1] if count <= len(times) else np.inf
        blocks = tops // _BLOCK
        least, _ = self._least(position, blocks)
        near = blocks[least / probs[tops] <= bound * _ROUNDING]
        ids = (near[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        return ids[ids < len(probs)]


def _likeliest(probs: NDArray[np.floating]) -> NDArray[np.int64]:
    """The id of the highest probability in every block."""
    whole = len(probs) - len(probs) % _BLOCK
    tops = probs[:whole].reshape(-1, _BLOCK).argmax(axis=1) + np.arange(0, whole, _BLOCK)
    return np.append(tops, whole + probs[whole:].argmax()) if whole < len(probs) else tops


def _unit(bits: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers from (0, 1] in steps of 2^-53, by bits of uint64.

    With 24 bits the least of 150,000 would often be shared, which favours low ids by half a percent.
    """
    return ((bits >> 11) + 1).astype(np.float64) * 2.0**-53


def _split_mix(start: int, number: _Bits) -> _Bits:
    """An output of SplitMix64 from the state `start`, by its number (Steele, Lea, Flood 2014)."""
    word = 2**64 - 1
    bits = (number * 0x9E3779B97F4A7C15 + start) & word
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & word
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & word
    return bits ^ (bits >> 31)
