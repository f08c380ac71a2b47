"""Measure what passes cost: rows and depths of the target, steps of the draft, threads, prompts.

Sizes take turns, so that a machine that slows down slows all of them, and of each size the low
quantile counts: nothing makes a pass quicker than it is, much makes it slower. Samples are kept by
name in a dict of the caller's, so that a measurement which was stopped goes on where it was.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from edgespec.busy import Others, busy, low
from edgespec.costs import Costs, CostTable
from edgespec.measuring import Measured
from edgespec.model import LanguageModel, Token

_T = TypeVar("_T")

Samples = dict[str, list[float]]
"""Seconds by the name of what took them."""

ROWS = (*range(1, 17), 20, 24, 32)
FED = (1, 2, 4, 8, 16, 32)
"""Tokens that a draft is fed at once, when it catches up with an accepted text."""
SHALLOW, DEEP = 64, 2048
_ROUNDS = 8
_THREAD_ROUNDS = 5
_BATCH = 8


class TimedModel(LanguageModel, Protocol):
    """A model whose threads can be set."""

    threads: int
    """For passes over one token."""
    batch_threads: int
    """For all others."""

    def set_threads(self, single: int, batch: int) -> None:
        """Processor threads for passes over one token, and for all others."""
        ...


def finish(steps: Generator[Measured, None, _T]) -> _T:
    """The result, for those who show no progress."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: _T = end.value
            return found


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found."""

    costs: Costs
    prefill: float | None
    """Seconds a token of reading a prompt."""
    draft_prefill: float | None
    threads: int
    batch_threads: int
    doubts: tuple[str, ...]
    """Why the figures are not to be believed, as sentences; none when they are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    depths: tuple[int, ...]
    """Tokens in the caches, ascending."""
    rows: tuple[int, ...]
    fed: tuple[int, ...]
    """Empty without a draft."""
    threads: tuple[int, ...]
    """To choose from; one for no choice."""
    rounds: int = _ROUNDS

    @classmethod
    def full(
        cls, target: LanguageModel, draft: LanguageModel | None, threads: Sequence[int]
    ) -> Plan:
        """All that fits the contexts."""
        room = target.capacity
        shallow = max(1, min(SHALLOW, room // 2))
        deep = min(DEEP, room // 2)
        fits = min(target.max_rows, target.batch_size, room - max(shallow, deep))
        fed = () if draft is None else FED
        return cls(
            depths=(shallow, deep) if deep >= 4 * shallow else (shallow,),
            rows=tuple(n for n in ROWS if n <= fits),
            fed=tuple(n for n in fed if draft and n <= draft.capacity // 2),
            threads=tuple(sorted(set(threads))),
        )

    @property
    def points(self) -> list[tuple[str, int]]:
        """What takes turns at each depth."""
        return [("verify", n) for n in self.rows] + [("draft", n) for n in self.fed]

    @property
    def batch(self) -> int:
        """Rows of the pass that the threads for batches are chosen by."""
        return max(n for n in self.rows if n <= _BATCH)

    def wanted(self) -> dict[str, int]:
        """How many samples by name."""
        names = {
            sample_name(*one, depth): self.rounds for depth in self.depths for one in self.points
        }
        if len(self.threads) > 1:
            for count in self.threads:
                names |= dict.fromkeys(
                    (f"threads {count} {rows}" for rows in (1, self.batch)), _THREAD_ROUNDS
                )
        return names


@dataclass(slots=True)
class Bench:
    """The models, and what was measured on them so far."""

    target: TimedModel
    draft: TimedModel | None
    samples: Samples = field(default_factory=dict)
    clock: Callable[[], float] = time.perf_counter
    others: Callable[[], float] = field(default_factory=Others)
    """Asked after each round: the share of the processor that other programs had since then."""
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def add(self, name: str, seconds: float) -> float:
        """Keep a sample."""
        self.samples.setdefault(name, []).append(seconds)
        return seconds

    def count(self, name: str) -> int:
        """How many samples there are."""
        return len(self.samples.get(name, ()))

    def low(self, name: str) -> float:
        """The low quantile of what there is."""
        return low(self.samples[name])

    def tokens(self, model: LanguageModel, count: int) -> list[Token]:
        """Any tokens."""
        return [self.random.randrange(model.vocab_size) for _ in range(count)]

    def timed(self, model: LanguageModel, tokens: int, rows: int, *, keep: bool = False) -> float:
        """Seconds of one pass; the cache is as before, or longer if it is to `keep` the tokens."""
        before = len(model.tokens)
        feed = self.tokens(model, tokens)
        begun = self.clock()
        # On a GPU nothing has happened before logits are asked for.
        model.extend(feed, rows=rows)
        seconds = self.clock() - begun
        if not keep:
            model.truncate(before)
        return seconds

    def fill(self, model: LanguageModel, depth: int, name: str = "") -> None:
        """Bring `depth` tokens into the cache; what reading takes, a token, is kept if named."""
        model.truncate(depth)
        while (left := depth - len(model.tokens)) > 0:
            piece = min(left, model.batch_size)
            seconds = self.timed(model, piece, 1, keep=True)
            if name:
                self.add(name, seconds / piece)


def calibrate(bench: Bench, plan: Plan) -> Generator[Measured, None, Calibration]:
    """Measure all of the plan that the bench has no samples of.

    The caches are empty at the end. Raises what the models raise, `Cancelled` among it.
    """
    threads = yield from _threads(bench, plan)
    bench.target.set_threads(*threads)
    if bench.draft:
        bench.draft.set_threads(*threads)
    for depth in plan.depths:
        yield from _depth(bench, plan, depth)
    _empty(bench)
    return _result(bench, plan, threads)


def _event(bench: Bench, plan: Plan, what: str, seconds: float) -> Measured:
    wanted = plan.wanted()
    done = sum(min(bench.count(name), count) for name, count in wanted.items())
    return Measured(done, sum(wanted.values()), what, seconds)


def _threads(bench: Bench, plan: Plan) -> Generator[Measured, None, tuple[int, int]]:
    """Try each number of threads; returns the best for single rows and for batches."""
    if len(plan.threads) == 1:
        return plan.threads[0], plan.threads[0]
    model = bench.target
    for turn in range(_THREAD_ROUNDS):
        for count in plan.threads:
            for rows in (1, plan.batch):
                name = f"threads {count} {rows}"
                if bench.count(name) > turn:
                    continue
                bench.fill(model, plan.depths[0])
                model.set_threads(count, count)
                seconds = bench.add(name, bench.timed(model, rows, rows))
                yield _event(bench, plan, f"{count} threads, {rows} rows", seconds)
    return _quickest(bench, plan, 1), _quickest(bench, plan, plan.batch)


def _quickest(bench: Bench, plan: Plan, rows: int) -> int:
    """The fewest threads that are within 3 % of the best: what they gain is noise."""
    took = {count: bench.low(f"threads {count} {rows}") for count in plan.threads}
    return min(count for count in took if took[count] <= 1.03 * min(took.values()))


def _depth(bench: Bench, plan: Plan, depth: int) -> Iterator[Measured]:
    """Rows and steps with `depth` tokens in the caches, in turns."""
    begun = False
    for turn in range(plan.rounds):
        missing = [one for one in plan.points if bench.count(sample_name(*one, depth)) <= turn]
        if not missing:
            continue
        _fill_both(bench, plan, depth, anew=not begun)
        begun = True
        bench.others()
        # Begun at another size each time: what comes at regular times hits all of them.
        start = turn * len(missing) // plan.rounds
        for kind, n in missing[start:] + missing[:start]:
            seconds = bench.add(sample_name(kind, n, depth), _pass(bench, kind, n))
            yield _event(bench, plan, f"{kind}, {n} at {depth}", seconds)
        bench.add("others", bench.others())


def sample_name(kind: str, n: int, depth: int) -> str:
    """What the samples of a pass are called."""
    return f"{kind} {depth} {n}"


def _pass(bench: Bench, kind: str, n: int) -> float:
    if kind == "verify":
        return bench.timed(bench.target, n, n)
    if bench.draft is None:
        raise ValueError("there is no draft to measure")
    return bench.timed(bench.draft, n, 1)


def _fill_both(bench: Bench, plan: Plan, depth: int, *, anew: bool) -> None:
    if anew:
        _empty(bench)
    bench.fill(bench.target, depth, "prefill target")
    if bench.draft:
        # A draft that looks back less far than the target does not get slower beyond that.
        room = bench.draft.capacity - max(plan.fed, default=1)
        bench.fill(bench.draft, min(depth, room), "prefill draft")


def _empty(bench: Bench) -> None:
    for model in (bench.target, bench.draft):
        if model:
            model.truncate(0)


def _result(bench: Bench, plan: Plan, threads: tuple[int, int]) -> Calibration:
    tables = tuple(table(bench, depth, plan.rows, plan.fed) for depth in plan.depths)
    return Calibration(
        costs=Costs(tables),
        prefill=bench.low("prefill target"),
        draft_prefill=bench.low("prefill draft") if bench.draft else None,
        threads=threads[0],
        batch_threads=threads[1],
        doubts=busy(bench.samples, tables[0]),
    )


def table(bench: Bench, depth: int, rows: Sequence[int], fed: Sequence[int]) -> CostTable:
    """The low quantiles of what was measured at a depth."""

    def lows(kind: str, sizes: Sequence[int]) -> dict[int, float]:
        names = {n: sample_name(kind, n, depth) for n in sizes}
        return {n: bench.low(name) for n, name in names.items() if bench.count(name)}

    return CostTable(depth, lows("verify", rows), lows("draft", fed))
