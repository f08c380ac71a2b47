"""The curve that is found is the one that was written down, and only on a quiet machine."""

from __future__ import annotations

import random

import pytest

from edgespec.busy import Others, busy
from edgespec.calibrate import Bench, Calibration, Plan, calibrate, finish
from edgespec.costs import CostTable
from edgespec.errors import Cancelled
from edgespec.exact import exact_at, measure_exact
from edgespec.measuring import Measured
from edgespec.quick import calibrate_quick
from tests.timed_fakes import Clock, Cost, TimedModel, bench

BF16 = {1: 1.0, 2: 1.03, 3: 1.20, 4: 1.32, 8: 1.64, 16: 2.1, 24: 2.5, 32: 3.2}
Q4 = {1: 1.0, 2: 1.4, 3: 1.7, 4: 1.55, 8: 2.6, 16: 2.4, 32: 4.9}
"""Not monotone: kernels step."""
ROW = 0.05


def curve(ratios: dict[int, float], row: float = ROW, deeper: float = 1e-5) -> Cost:
    """By rows, the next entry below counts; deeper caches cost more."""

    def cost(tokens: int, depth: int, threads: int) -> float:
        step = max(n for n in ratios if n <= tokens)
        return row * ratios[step] * max(tokens / 32, 1) + deeper * depth

    return cost


def step(tokens: int, depth: int, threads: int) -> float:
    """A draft's."""
    return 0.01 + 0.002 * tokens + 1e-6 * depth


def noisy(cost: Cost, clock: Clock, often: float, seed: int = 0) -> Cost:
    """A cost that is now and then far higher."""
    rng = random.Random(seed)
    return lambda *key: cost(*key) * (rng.uniform(1.5, 9) if rng.random() < often else 1.0)


def plan(
    target: TimedModel, draft: TimedModel | None = None, threads: tuple[int, ...] = (1,)
) -> Plan:
    return Plan.full(target, draft, threads)


def calibrated(made: Bench, threads: tuple[int, ...] = (1,)) -> Calibration:
    return finish(calibrate(made, Plan.full(made.target, made.draft, threads)))


@pytest.mark.parametrize("ratios", [BF16, Q4])
def test_the_curve_that_is_found_is_the_scripted_one(ratios: dict[int, float]) -> None:
    clock = Clock()
    cost = curve(ratios)
    target, draft = TimedModel(clock, cost), TimedModel(clock, step)
    found = calibrated(bench(clock, target, draft))
    assert not found.doubts
    assert [one.depth for one in found.costs.tables] == [64, 2048]
    for one in found.costs.tables:
        assert list(one.verify) == [*range(1, 17), 20, 24, 32]
        for n, seconds in one.verify.items():
            assert seconds == pytest.approx(cost(n, one.depth, 1))
        for n, seconds in one.draft.items():
            assert seconds == pytest.approx(step(n, one.depth, 1))
        assert set(one.draft) == {1, 2, 4, 8, 16, 32}
    assert found.prefill == pytest.approx(cost(512, 800, 1) / 512, rel=0.2)
    assert found.draft_prefill == pytest.approx(step(512, 800, 1) / 512, rel=0.2)
    assert not target.tokens
    assert not draft.tokens


def test_sizes_take_turns_and_disturbances_do_not_count() -> None:
    clock = Clock()
    target = TimedModel(clock, noisy(curve(BF16), clock, 0.15))
    found = calibrated(bench(clock, target))
    for n, seconds in found.costs.tables[0].verify.items():
        assert seconds == pytest.approx(curve(BF16)(n, 64, 1), rel=0.01)
    sizes = [tokens for depth, tokens in target.passes if depth == 64]
    assert len(set(sizes[:19])) == 19, "one size after the other"
    assert len({sizes[turn * 19] for turn in range(8)}) == 8, "always the same one first"


def test_progress_counts_to_its_end() -> None:
    clock = Clock()
    target, draft = TimedModel(clock, curve(BF16)), TimedModel(clock, step)
    events = list(calibrate(bench(clock, target, draft), plan(target, draft, (1, 2))))
    assert [event.done for event in events] == list(range(1, len(events) + 1))
    assert {event.total for event in events} == {len(events)}
    verify = next(event for event in events if event.what == "verify, 1 at 64")
    assert verify.seconds == pytest.approx(curve(BF16)(1, 64, 1))


@pytest.mark.parametrize("stop", ["close", "cancel"])
def test_what_was_stopped_goes_on(stop: str) -> None:
    clock, samples = Clock(), dict[str, list[float]]()
    target = TimedModel(clock, curve(Q4))
    steps = calibrate(bench(clock, target, samples=samples), plan(target))
    for _ in range(100):
        next(steps)
    if stop == "close":
        steps.close()
    else:
        target.cancel_at = len(target.passes)
        with pytest.raises(Cancelled):
            next(steps)
        target.cancel_at = None
    first = sum(len(row) for name, row in samples.items() if name.startswith("verify"))
    assert first == 100
    target.truncate(0)
    events = list(calibrate(bench(clock, target, samples=samples), plan(target)))
    assert events[0].done == 101
    assert len(events) == events[-1].total - 100
    assert {len(row) for name, row in samples.items() if name.startswith("verify")} == {8}


def test_nothing_is_measured_twice() -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16))
    made = bench(clock, target)
    first = calibrated(made)
    count = len(target.passes)
    assert calibrated(made) == first
    assert len(target.passes) == count


def threaded(tokens: int, depth: int, threads: int) -> float:
    """Memory-bound single rows gain nothing from the third thread; batches do."""
    return 0.03 / min(threads, 2) * 0.99**threads if tokens == 1 else 0.01 * tokens / threads


def test_the_threads_that_win_are_found_and_set() -> None:
    clock = Clock()
    target, draft = TimedModel(clock, threaded), TimedModel(clock, threaded)
    found = calibrated(bench(clock, target, draft), (1, 2, 4))
    assert (found.threads, found.batch_threads) == (2, 4), "2 % are no reason for two more threads"
    assert (target.threads, target.batch_threads) == (2, 4)
    assert (draft.threads, draft.batch_threads) == (2, 4)
    table = found.costs.tables[0]
    assert table.verify[1] == pytest.approx(threaded(1, 64, 2))
    assert table.verify[8] == pytest.approx(threaded(8, 64, 4))


@pytest.mark.parametrize(("capacity", "max_rows"), [(40, 32), (256, 9), (600, 2), (3, 2)])
def test_small_contexts_and_few_rows(capacity: int, max_rows: int) -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16), capacity=capacity, max_rows=max_rows)
    draft = TimedModel(clock, step, capacity=max(capacity // 2, 3))
    found = calibrated(bench(clock, target, draft))
    assert found.costs.tables[0].verify[1] > 0
    assert max(found.costs.tables[0].verify) <= max_rows
    quick = calibrate_quick(bench(clock, target, draft), threads=(1, 1))
    assert max(quick.costs.tables[0].verify) <= max_rows


# The quick form.


def test_quick_finds_the_curve() -> None:
    clock = Clock()
    cost = curve(Q4, row=0.01)
    begun = clock.now
    target, draft = TimedModel(clock, cost), TimedModel(clock, step)
    found = calibrate_quick(bench(clock, target, draft), threads=(2, 4))
    assert clock.now - begun < 10
    (table,) = found.costs.tables
    assert set(table.verify) == {1, 2, 3, 4, 6, 8, 12, 16, 32}
    for n, seconds in table.verify.items():
        assert seconds == pytest.approx(cost(n, table.depth, 1))
    assert table.draft == pytest.approx({n: step(n, table.depth, 1) for n in (1, 2, 4, 16)})
    assert (found.threads, found.batch_threads) == (2, 4)
    assert (target.threads, target.batch_threads) == (1, 1), "set by whoever loaded it"
    assert not target.tokens
    assert not found.doubts


@pytest.mark.parametrize("row", [0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 6.0])
def test_quick_does_not_keep_a_slow_machine_longer(row: float) -> None:
    clock = Clock()
    linear = {n: float(n) for n in range(1, 33)}
    target = TimedModel(clock, curve(linear, row, deeper=0))
    draft = TimedModel(clock, lambda tokens, depth, threads: row / 4 * tokens)
    begun = clock.now
    found = calibrate_quick(bench(clock, target, draft), threads=(1, 1), seconds=10)
    # The compulsory ones: a first token and a measured one of each model.
    assert clock.now - begun <= max(10, 2.5 * row) + 1e-6
    (table,) = found.costs.tables
    assert table.verify[1] == pytest.approx(row)
    assert table.draft[1] == pytest.approx(row / 4)
    if row <= 0.2:
        assert {4, 8} <= set(table.verify)


def test_quick_gives_each_size_its_turn() -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16, 0.4))
    made = bench(clock, target)
    calibrate_quick(made, threads=(1, 1), seconds=10)
    counts = [len(row) for name, row in made.samples.items() if name.startswith("verify")]
    assert max(counts) - min(counts) <= 1
    assert len(counts) >= 6


# Busy machines.


def test_other_programs_are_noticed() -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16))
    assert not calibrated(bench(clock, target, others=lambda: 0.1)).doubts
    (doubt,) = calibrated(bench(clock, target, others=lambda: 0.4)).doubts
    assert "40%" in doubt
    (doubt,) = calibrate_quick(bench(clock, target, others=lambda: 0.4), threads=(1, 1)).doubts
    assert "40%" in doubt


def test_one_busy_round_is_no_busy_machine() -> None:
    clock, shares = Clock(), iter([0.0, 0.9] + [0.0] * 100)
    target = TimedModel(clock, curve(BF16))
    assert not calibrated(bench(clock, target, others=lambda: next(shares))).doubts


def test_the_spread_of_a_size_is_noticed() -> None:
    clock = Clock()
    target = TimedModel(clock, noisy(curve(BF16), clock, 0.6))
    (doubt,) = calibrated(bench(clock, target)).doubts
    assert "The same pass took" in doubt


def test_the_first_point_is_not_dearer_than_the_fourth() -> None:
    assert not busy({}, CostTable(0, {1: 1.05, 4: 1.0}))
    (doubt,) = busy({}, CostTable(0, {1: 1.2, 4: 1.0}))
    assert "--mmap" in doubt


def test_kernel_steps_are_no_doubt() -> None:
    assert not busy({}, CostTable(0, {n: ROW * ratio for n, ratio in Q4.items()}))


def test_the_share_of_others_is_one() -> None:
    others = Others()
    sum(range(2_000_000))
    assert 0 <= others() <= 1


# Exact rows.


@pytest.mark.parametrize(
    ("alike", "expected"),
    [
        (lambda depth: 99, {200: 16, 300: 16, 1000: 16}),
        (lambda depth: 3, {200: 3, 300: 3, 1000: 3}),
        (lambda depth: 1, {200: 1, 300: 1, 1000: 1}),
        (lambda depth: 16 if depth < 256 else 1, {200: 16, 300: 1, 1000: 1}),
    ],
)
def test_exact_rows(alike: object, expected: dict[int, int]) -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16), rounds_alike=alike)  # type: ignore[arg-type]
    assert finish(measure_exact(bench(clock, target))) == expected
    assert not target.tokens


def test_exact_rows_go_on_where_they_were() -> None:
    clock, samples = Clock(), dict[str, list[float]]()
    target = TimedModel(clock, curve(BF16))
    steps = measure_exact(bench(clock, target, samples=samples))
    events = [next(steps) for _ in range(3)]
    assert [event.done for event in events] == [1, 2, 3]
    steps.close()
    rest = list(measure_exact(bench(clock, target, samples=samples)))
    assert [event.done for event in rest] == [4, 5, 6]
    assert list(rest)[-1] == Measured(6, 6, rest[-1].what, rest[-1].seconds)


def test_a_row_that_differs_once_is_not_exact() -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16))
    seen = iter([99] * 240)  # until the last of all comparisons has begun
    target.rounds_alike = lambda depth: next(seen, 5)
    assert min(finish(measure_exact(bench(clock, target))).values()) == 5


def test_what_a_pass_leaves_in_the_cache_counts() -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16), taints_from=7)
    assert set(finish(measure_exact(bench(clock, target))).values()) == {6}


def test_few_rows_or_a_small_context() -> None:
    clock = Clock()
    target = TimedModel(clock, curve(BF16), capacity=60, max_rows=4)
    assert finish(measure_exact(bench(clock, target))) == {43: 4}


def test_between_two_depths_both_must_be_exact() -> None:
    exact = {200: 16, 300: 3, 1000: 8}
    rows = {1: 16, 200: 16, 201: 3, 300: 3, 500: 3, 1000: 8, 9000: 8}
    assert {depth: exact_at(exact, depth) for depth in rows} == rows
