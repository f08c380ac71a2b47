"""How often proposals are accepted, learnt from tested positions only.

A drafter says of each proposed token how sure it is: a draft model by the highest probability of its
distribution, lookup by the length of its match. Such a sign is sorted into bins, and each bin keeps
its own acceptance. A text is easier or harder for a drafter as a whole, so what this answer shows in
one bin moves the odds of all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = Mapping[str, object]
"""What is kept between sessions: counts by name, nested lists of numbers."""

_SURE = 0.999
"""No drafter is believed to be surer than this."""


class Acceptance:
    """Acceptance by bin of a sign."""

    PRIOR = 12.0
    """Tested positions that the prior of a bin counts for."""
    PRIOR_HERE = 3.0
    """The same for the odds of an answer: accepted and refused ones that count as expected."""
    FORGET = 0.998
    FORGET_HERE = 0.99

    def __init__(self, edges: Sequence[float], prior: Sequence[float]) -> None:
        """`edges` are the lower ends of the bins but the first; `prior` the acceptance of each bin."""
        self._edges = tuple(edges)
        self._prior = np.array(prior, np.float64)
        self._kept = np.zeros(len(prior))
        self._tested = np.zeros(len(prior))
        self.begin()

    def begin(self) -> None:
        """Another answer begins."""
        self._kept_here = self._failed_here = 0.0
        self._expected_here = self._unexpected_here = 0.0

    def bin(self, sign: float) -> int:
        """The bin of a sign."""
        return bisect_right(self._edges, sign)

    def saw(self, bin_: int, accepted: bool) -> None:
        """A position was tested."""
        expected = self._usual(bin_)
        self._kept_here = self._kept_here * self.FORGET_HERE + accepted
        self._failed_here = self._failed_here * self.FORGET_HERE + (not accepted)
        self._expected_here = self._expected_here * self.FORGET_HERE + expected
        self._unexpected_here = self._unexpected_here * self.FORGET_HERE + 1 - expected
        self._kept *= self.FORGET
        self._tested *= self.FORGET
        self._kept[bin_] += accepted
        self._tested[bin_] += 1

    def _usual(self, bin_: int) -> float:
        kept = self._prior[bin_] * self.PRIOR + self._kept[bin_]
        return float(kept / (self.PRIOR + self._tested[bin_]))

    def counts(self) -> Counts:
        """What all answers showed, for `restore`."""
        return {"kept": self._kept.tolist(), "tested": self._tested.tolist()}

    def restore(self, counts: Counts) -> None:
        """Go on from `counts`. Raises ValueError when they do not fit the bins."""
        self._kept = _like(self._kept, counts.get("kept"))
        self._tested = np.maximum(_like(self._tested, counts.get("tested")), self._kept)

    @property
    def tested(self) -> float:
        """Positions tested, old ones counting less."""
        return float(self._tested.sum())

    @property
    def mean(self) -> float | None:
        """Share of them that was accepted; None when there are none."""
        return float(self._kept.sum() / self._tested.sum()) if self._tested.any() else None

    def rates(self) -> Array:
        """The expected acceptance of each bin, rising with the sign."""
        usual = (self._prior * self.PRIOR + self._kept) / (self.PRIOR + self._tested)
        usual = np.maximum.accumulate(np.minimum(usual, _SURE))
        kept = (self._kept_here + self.PRIOR_HERE) / (self._expected_here + self.PRIOR_HERE)
        failed = (self._failed_here + self.PRIOR_HERE) / (self._unexpected_here + self.PRIOR_HERE)
        odds = usual / (1 - usual) * (kept / failed)
        rates: Array = odds / (1 + odds)
        return rates


class Frequency:
    """How often a confidence falls into each bin, after one of each kind."""

    PRIOR = 10.0
    HERE = 20.0
    """Steps that the answers before this one count for."""
    FORGET = 0.999
    FORGET_HERE = 0.95

    def __init__(self, prior: Sequence[Sequence[float]]) -> None:
        """`prior[kind][bin]`: shares."""
        self._prior = np.array(prior, np.float64)
        self._prior /= self._prior.sum(axis=1, keepdims=True)
        self._seen = np.zeros_like(self._prior)
        self._here = np.zeros_like(self._prior)

    def begin(self) -> None:
        """Another answer begins."""
        self._here[:] = 0

    def saw(self, kind: int, bin_: int) -> None:
        """A draft step said so."""
        self._seen[kind] *= self.FORGET
        self._here[kind] *= self.FORGET_HERE
        self._seen[kind, bin_] += 1
        self._here[kind, bin_] += 1

    def counts(self) -> Counts:
        """What all answers showed, for `restore`."""
        return {"seen": self._seen.tolist()}

    def restore(self, counts: Counts) -> None:
        """Go on from `counts`. Raises ValueError when they do not fit the bins."""
        self._seen = _like(self._seen, counts.get("seen"))

    def rates(self) -> Array:
        """float64[kinds, bins]; rows sum to 1."""
        total = self._seen.sum(axis=1, keepdims=True)
        usual = (self._prior * self.PRIOR + self._seen) / (self.PRIOR + total)
        here = self._here.sum(axis=1, keepdims=True)
        rates: Array = (usual * self.HERE + self._here) / (self.HERE + here)
        return rates


def _like(ours: Array, theirs: object) -> Array:
    try:
        array = np.array(theirs, np.float64)
    except TypeError as error:
        raise ValueError("not a table of numbers") from error
    if array.shape != ours.shape or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"not a table of {ours.shape} counts")
    return array
