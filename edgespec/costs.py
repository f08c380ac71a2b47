"""What things cost on one machine with one pair: the tables that drafting is decided on. Pure.

A batch of n rows costs neither n times a row nor the same as one: quantised kernels work in groups of
4 or 8 rows and change with the batch's width, so the costs are a measured table, not a formula
(llama.cpp ggml/src/ggml-cpu/repack.cpp; ggml-cuda/mmvq.cu up to 8 rows, mmq.cu beyond).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise


def between(table: Mapping[int, float], n: int) -> float:
    """The value at `n`, on straight lines between the entries.

    Beyond the last it rises as from the first to the last: the last step alone may be noise.
    A table of one entry is taken as proportional. Raises ValueError when the table is empty.
    """
    if n in table:
        return table[n]
    known = sorted(table)
    if not known:
        raise ValueError("an empty cost table")
    if len(known) == 1:
        return table[known[0]] * n / known[0]
    right = min(max(bisect_left(known, n), 1), len(known) - 1)
    a, b = known[right - 1], known[right]
    if n > known[-1]:
        a = known[0]
        slope = max((table[b] - table[a]) / (b - a), 0.0)
        return table[b] + slope * (n - b)
    slope = (table[b] - table[a]) / (b - a)
    return max(table[a] + slope * (n - a), min(table.values()))


@dataclass(frozen=True, slots=True)
class CostTable:
    """Seconds, with `depth` tokens in the caches."""

    depth: int
    verify: Mapping[int, float]
    """Rows in one pass of the target, logits of all of them -> seconds. Has an entry for 1."""
    draft: Mapping[int, float] = field(default_factory=dict)
    """Tokens fed to the draft model in one pass, logits of the last -> seconds; 1 is a draft step.
    Empty without a draft model."""

    @property
    def token(self) -> float:
        """Seconds of a token by plain decoding."""
        return self.verify[1]


@dataclass(frozen=True, slots=True)
class Costs:
    """Tables at one depth or more."""

    tables: tuple[CostTable, ...]
    """Ascending by depth; at least one. All have the same keys."""

    def at(self, depth: int) -> CostTable:
        """The table at `depth`: on a line between two measured ones, and no flatter than level."""
        if len(self.tables) == 1:
            return self.tables[0]
        pairs = list(pairwise(self.tables))
        a, b = next((pair for pair in pairs if depth <= pair[1].depth), pairs[-1])
        share = (depth - a.depth) / (b.depth - a.depth)
        return CostTable(depth, _mix(a.verify, b.verify, share), _mix(a.draft, b.draft, share))


def _mix(a: Mapping[int, float], b: Mapping[int, float], share: float) -> dict[int, float]:
    # Attention grows with depth; a deeper table that is cheaper was measured on a faster minute.
    return {n: a[n] + share * max(b[n] - a[n], 0.0) for n in a}
