"""How often proposals are accepted, learnt from tested positions only.

A drafter says of each proposed token how sure it is: a draft model by the highest probability of its
distribution, lookup by the length of its match. Such a sign is sorted into bins, and each bin keeps
its own acceptance. A text is easier or harder for a drafter as a whole, so what this answer shows in
one bin moves the odds of all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = Mapping[str, object]
"""What is kept between sessions: counts by name, nested lists of numbers."""

_SURE = 0.999
"""No drafter is believed to be surer than this."""


class Acceptance:
    """Acceptance by bin of a sign. Plain numbers: a dozen of them are no work for numpy."""

    PRIOR = 12.0
    """Tested positions that the prior of a bin counts for."""
    PRIOR_HERE = 3.0
    """The same for the odds of an answer: accepted and refused ones that count as expected."""
    FORGET = 0.998
    FORGET_HERE = 0.99

    def __init__(self, edges: Sequence[float], prior: Sequence[float]) -> None:
        """`edges` are the lower ends of the bins but the first; `prior` the acceptance of each bin."""
        self._edges = tuple(edges)
        self._prior = tuple(prior)
        self._kept = [0.0] * len(prior)
        self._tested = [0.0] * len(prior)
        self.begin()

    def begin(self) -> None:
        """Another answer begins."""
        self._kept_here = self._failed_here = 0.0
        self._expected_here = self._unexpected_here = 0.0
        self._rates: list[float] | None = None

    def bin(self, sign: float) -> int:
        """The bin of a sign."""
        return bisect_right(self._edges, sign)

    def saw(self, bin_: int, accepted: bool) -> None:
        """A position was tested."""
        expected, fade = self._usual(bin_), self.FORGET_HERE
        self._kept_here = self._kept_here * fade + accepted
        self._failed_here = self._failed_here * fade + (not accepted)
        self._expected_here = self._expected_here * fade + expected
        self._unexpected_here = self._unexpected_here * fade + 1 - expected
        # A bin forgets as it learns, however rare its sign is.
        self._kept[bin_] = self._kept[bin_] * self.FORGET + accepted
        self._tested[bin_] = self._tested[bin_] * self.FORGET + 1
        self._rates = None

    def _usual(self, bin_: int) -> float:
        kept = self._prior[bin_] * self.PRIOR + self._kept[bin_]
        return min(kept / (self.PRIOR + self._tested[bin_]), _SURE)

    def counts(self) -> Counts:
        """What all answers showed, for `restore`."""
        return {"kept": list(self._kept), "tested": list(self._tested)}

    def restore(self, counts: Counts) -> None:
        """Go on from `counts`. Raises ValueError when they do not fit the bins."""
        kept = _like(np.array(self._kept), counts.get("kept"))
        tested = _like(np.array(self._tested), counts.get("tested"))
        self._kept, self._tested = kept.tolist(), np.maximum(tested, kept).tolist()
        self._rates = None

    @property
    def mean(self) -> float | None:
        """Share of the tested positions that was accepted; None when none was tested."""
        return sum(self._kept) / sum(self._tested) if any(self._tested) else None

    def rates(self) -> list[float]:
        """The expected acceptance of each bin, rising with the sign."""
        if self._rates is None:
            kept = (self._kept_here + self.PRIOR_HERE) / (self._expected_here + self.PRIOR_HERE)
            failed = self._failed_here + self.PRIOR_HERE
            failed /= self._unexpected_here + self.PRIOR_HERE
            usual = accumulate(map(self._usual, range(len(self._prior))), max)
            odds = (rate / (1 - rate) * kept / failed for rate in usual)
            self._rates = [chance / (1 + chance) for chance in odds]
        return self._rates


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
        seen, here = self._seen[kind], self._here[kind]
        seen *= self.FORGET
        here *= self.FORGET_HERE
        seen[bin_] += 1
        here[bin_] += 1

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
