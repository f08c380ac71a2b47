"""What passes cost now: the measured tables, corrected by what rounds really took.

A machine that others use, or that gets warm, drifts by a third within minutes. Each round tells what
one pass of one width took; neighbouring widths are taken to have drifted alike, far ones less so,
until they are seen themselves.
"""

from __future__ import annotations

import math

import numpy as np

from edgespec.costs import Costs, CostTable, between

_LEARN = 0.2
_LEARN_AGREED = 0.6
_CLIP = 0.4
"""A pass that took far longer was interrupted by something else; it moves the estimate this much."""
_QUICK = 0.2
"""A pass that took so much less cannot be an accident, since others only make it longer..."""
_LEARN_QUICK = 0.8
"""...and is followed so far."""
_OWN = 0.5
"""How much less others move a width that was just seen itself."""
_KNOWN = 16.0
"""In about so many passes that is forgotten."""
_ALIKE = 0.5
"""How much of a width's drift is believed of one that is far away."""


class Timing:
    """Seconds of a pass of the target by rows, and of the draft by tokens fed."""

    def __init__(self, costs: Costs, max_rows: int) -> None:
        self._costs = costs
        self._rows = max_rows
        self._verify: list[float] = []
        self._draft_drift = self._draft_off = 0.0
        self._off = [0.0] * (max_rows + 1)
        """By rows, how far the last pass was off, as a logarithm."""
        self._drift = np.zeros(max_rows + 1)
        self._age = np.full(max_rows, math.inf)
        """By rows less one, passes since one of that width."""
        octaves = np.log2(np.arange(1, max_rows + 1))
        near = np.exp(-((octaves[:, None] - octaves[None, :]) ** 2))
        self._weights = _ALIKE + (1 - _ALIKE) * near
        self._depth = -1
        self._table: CostTable = costs.tables[0]
        self.move(self._table.depth)

    def move(self, depth: int) -> None:
        """Look at the costs with `depth` tokens in the cache."""
        # Cost changes by a percent or so in a hundred tokens.
        if abs(depth - self._depth) < 64 and self._depth >= 0:
            return
        self._depth = depth
        self._table = self._costs.at(depth)
        rows = range(1, self._rows + 1)
        self._verify = [0.0, *(between(self._table.verify, n) for n in rows)]

    @property
    def token(self) -> float:
        """Seconds of a token by plain decoding."""
        return self.verify(1)

    def verify(self, rows: int) -> float:
        """Seconds of a pass of the target over `rows` rows, and of what comes with it."""
        return self._verify[rows] * math.exp(self._drift[rows])

    def verify_all(self) -> list[float]:
        """By rows; entry 0 means nothing."""
        return [
            cost * math.exp(drift) for cost, drift in zip(self._verify, self._drift, strict=True)
        ]

    def draft(self, tokens: int) -> float:
        """Seconds of feeding `tokens` to the draft model, the next token's distribution included."""
        return between(self._table.draft, tokens) * math.exp(self._draft_drift)

    def saw_verify(self, rows: int, seconds: float) -> None:
        """A pass took so long."""
        off = math.log(max(seconds, 1e-9) / self.verify(rows))
        step = _step(off, self._off[rows])
        self._off[rows] = off
        # What was seen itself a moment ago is known better than by what another width took.
        self._age += 1
        self._age[rows - 1] = math.inf
        self._drift[1:] += step * self._weights[rows - 1] * (1 - _OWN * np.exp(-self._age / _KNOWN))
        self._age[rows - 1] = 0

    def saw_draft(self, tokens: int, seconds: float) -> None:
        """Feeding `tokens` to the draft model took so long."""
        off = math.log(max(seconds, 1e-9) / self.draft(tokens))
        self._draft_drift += _step(off, self._draft_off)
        self._draft_off = off


def _step(off: float, before: float) -> float:
    """How far to follow a pass that was `off`: two in a row that agree are no accident."""
    if off < -_QUICK:
        return _LEARN_QUICK * off
    if off * before > 0:
        agreed = math.copysign(min(abs(off), abs(before)), off)
        return _LEARN_AGREED * agreed
    return _LEARN * min(max(off, -_CLIP), _CLIP)
