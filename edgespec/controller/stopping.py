"""When to stop drafting: the optimal stopping rule for what is known of costs and confidences.

Drafting is a sequence of bets. Before each step of the draft model stands the question whether the
step is worth its time; after it, with the confidence known, whether the token is worth a row of the
verify pass. A row is worth it when the expected tokens exceed what the time would have earned
elsewhere, at `rate` tokens a second; a kernel step (4, 8, 16 rows) can make one more row worthless
and four more worth a lot, so the rule looks ahead to the end. It is computed backwards, by dynamic
programming over (tokens drafted, probability that all of them survive, kind of the last confidence).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LEVELS = 20
_RATIO = 0.79
_SURVIVAL = _RATIO ** np.arange(_LEVELS)
"""The levels at which survival is looked at; the last is a hundredth."""
_LEVEL_LIST: list[float] = _SURVIVAL.tolist()


class StoppingRule:
    """Answers in microseconds; making one takes less than a millisecond."""

    def __init__(
        self,
        verify: Sequence[float],
        step: float,
        rate: float,
        acceptance: Array,
        frequency: Array,
        kind_of: Sequence[int],
        longest: int,
    ) -> None:
        """`verify[n]` seconds of n rows, `step` of a draft step, `rate` tokens a second.

        `acceptance[bin]`; `frequency[kind, bin]` how often a confidence falls into a bin after one of
        the kind, row 0 for the first of a round; `kind_of[bin]` gives the kind of a bin.
        """
        self.longest = longest
        self._acceptance: list[float] = acceptance.tolist()
        self._kind_of = list(kind_of)
        kinds = len(frequency)
        # Surviving a bin leads to a place between two levels.
        survives = np.maximum(_SURVIVAL[:, None] * acceptance[None, :], _SURVIVAL[-1])
        low = np.minimum(np.log(survives) / math.log(_RATIO), _LEVELS - 2).astype(np.int64)
        part = (_SURVIVAL[low] - survives) / (_SURVIVAL[low] - _SURVIVAL[low + 1])
        place = np.array(kind_of)[None, :] * _LEVELS + low
        gain = _SURVIVAL[:, None] * acceptance[None, :]
        stop = -rate * np.array(verify)
        shares = frequency.T.copy()
        self._stop: list[float] = stop.tolist()
        self._step = np.empty((longest, _LEVELS, kinds))
        self._best = np.empty((longest + 1, kinds, _LEVELS))
        self._best[longest] = stop[longest + 1]
        for drafted in range(longest - 1, -1, -1):
            after = self._best[drafted + 1].ravel()
            here = after.take(place)
            here += part * (after.take(place + 1) - here)
            here += gain
            np.maximum(here, stop[drafted + 1], out=here)
            worth = np.matmul(here, shares, out=self._step[drafted])
            worth -= rate * step
            np.maximum(worth.T, stop[drafted + 1], out=self._best[drafted])

    def value(self) -> float:
        """Expected tokens of the round less what its time would have earned, drafting one or more."""
        return 1 + float(self._step[0, 0, 0])

    def plain(self) -> float:
        """The same for a round without a draft."""
        return 1 + self._stop[1]

    def gain(self, drafted: int, survival: float, kind: int) -> float:
        """What another step is worth after `drafted` tokens, the last of `kind`, over stopping here."""
        if drafted >= self.longest:
            return 0.0
        return _at(self._step[drafted, :, kind], survival) - self._stop[drafted + 1]

    def keep(self, drafted: int, survival: float, bin_: int) -> bool:
        """Whether a token of this bin is worth a row, after `drafted` others."""
        survives = survival * self._acceptance[bin_]
        best = _at(self._best[drafted + 1, self._kind_of[bin_]], survives)
        return survives + best > self._stop[drafted + 1]

    def survives(self, survival: float, bin_: int) -> float:
        """The probability that all survive, one of this bin included."""
        return survival * self._acceptance[bin_]


def _at(levels: Array, survival: float) -> float:
    """The value at `survival`, between the two levels around it."""
    if survival <= _LEVEL_LIST[-1]:
        return float(levels[-1])
    low = min(int(math.log(survival) / math.log(_RATIO)), _LEVELS - 2)
    above, below = _LEVEL_LIST[low], _LEVEL_LIST[low + 1]
    value = float(levels[low])
    return value + (float(levels[low + 1]) - value) * (above - survival) / (above - below)
