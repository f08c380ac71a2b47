"""What a draft costs beside its target, and what it is predicted to bring. Times are taken in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import geometric_mean

from edgespec.calibrate import SHALLOW, Bench
from edgespec.costs import CostTable
from edgespec.derive.agreement import Kinds
from edgespec.payoff import best
from edgespec.quick import quick_steps
from profiles.tuned import Gain

ROW_SECONDS, _MOST_SECONDS = 15.0, 120.0
"""For the rows of the target, which are measured once, at least and at most."""
_ROUNDS = 45
"""So many single rows take as long as all sizes three times, more or less."""
_STEP_SECONDS = 5.0
_STEPS = 9
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Rows:
    """What the target's passes cost."""

    table: CostTable
    doubts: tuple[str, ...]
    """Why the figures are not to be believed."""


def rows(bench: Bench, threads: tuple[int, int]) -> Iterator[Rows | None]:
    """Measure the target's passes; gives None a pass, then the result. Raises what models raise."""
    bench.fill(bench.target, 1)
    row = bench.timed(bench.target, 1, 1)
    seconds = min(max(ROW_SECONDS, _ROUNDS * row), _MOST_SECONDS)
    steps = quick_steps(bench, threads=threads, seconds=seconds)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            yield Rows(end.value.costs.tables[0], end.value.doubts)
            return
        yield None


def step_shares(bench: Bench) -> Iterator[float]:
    """A draft step as a share of a single row of the target; each figure is better than the last.

    The two take turns, so that a machine which slows down slows both. The caches are empty afterwards.
    Raises what the models raise, ValueError without a draft.
    """
    target, draft = bench.target, bench.draft
    if draft is None:
        raise ValueError("there is no draft to measure")
    depth = min(SHALLOW, target.capacity // 2, draft.capacity // 2)
    bench.fill(target, depth)
    bench.fill(draft, depth)
    end = bench.clock() + _STEP_SECONDS
    for turn in range(_STEPS):
        if turn >= _FEWEST and bench.clock() > end:
            break
        bench.add("row", bench.timed(target, 1, 1))
        bench.add("step", bench.timed(draft, 1, 1))
        yield bench.low("step") / bench.low("row")
    target.truncate(0)
    draft.truncate(0)


def gains(table: CostTable, share: float, kinds: Kinds) -> Mapping[str, Gain]:
    """Best length and speed-up by kind of text, greedy, of a draft whose step takes `share` of a row."""
    full = CostTable(table.depth, table.verify, {1: share * table.token})
    return {kind: best(full, found.likely) for kind, found in kinds.items()}


def overall(found: Mapping[str, Gain]) -> float:
    """The geometric mean of the speed-ups, as benchmarks have it."""
    return geometric_mean([gain.speedup for gain in found.values()]) if found else 1.0
