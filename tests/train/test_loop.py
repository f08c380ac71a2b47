"""The training loop, on a head of one number: it stops, goes on, keeps the best, and ends by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec.errors import EdgeSpecError, UsageError
from edgespec.train.events import Point
from edgespec.train.shards import Shard
from tests.train.models import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

import torch

from edgespec.train.loop import Limits, Trainer

torch.set_num_threads(1)  # two wait for each other where the machine is busy


class Line:
    """Learns that 3 is right; its guess counts as right within a tenth."""

    def __init__(self, truth: float = 3.0) -> None:
        self.weights = {"x": torch.zeros(1, requires_grad=True)}
        self.rates = {"x": 0.3}
        self.truth = truth
        self.asked: list[float] = []

    def batches(self, shards: Sequence[Shard], rng: np.random.Generator) -> list[float]:
        found = [self.truth + float(rng.normal()) / 50 for shard in shards for _ in range(2)]
        self.asked += found
        return found

    def steps_in(self, shards: Sequence[Shard]) -> int:
        return 2 * len(shards)

    def loss(self, batch: float) -> tuple[torch.Tensor, int]:
        return ((self.weights["x"] - batch) ** 2).sum(), 1

    def right(self, shard: Shard) -> NDArray[np.bool_]:
        near = abs(float(self.weights["x"].detach()) - 3) * 10
        return np.array([[near < n, near < n - 1] for n in range(1, 40)])


def shards(many: int) -> list[Shard]:
    return [Shard(n, False, 0.0, (), np.zeros((0, 1), np.float16), None) for n in range(many)]


def trainer(path: Path, learner: Line, many: int = 20) -> Trainer:
    ticks = count()
    return Trainer(learner, shards(many), shards(1), path, seed=0, clock=lambda: float(next(ticks)))


def run(one: Trainer, limits: Limits, stop: int | None = None) -> list[Point]:
    steps = one.steps(limits)
    looks = []
    for number, point in enumerate(steps):
        looks += [point] if point else []
        if number == stop:
            steps.close()
            break
    return looks


def of(points: Sequence[Point]) -> list[tuple[object, ...]]:
    """All but the first one's loss, which is NaN."""
    return [(one.step, one.seen, one.shares, one.loss if one.step else 0) for one in points]


LIMITS = Limits(seconds=1e9, steps=70, every=7)


@pytest.mark.parametrize("stops", [[0], [1], [8], [9], [33, 20], [3, 3, 3]])
def test_stopped_and_gone_on_with_it_is_the_same(tmp_path: Path, stops: list[int]) -> None:
    learner = Line()
    whole = trainer(tmp_path / "whole", learner)
    run(whole, LIMITS)
    for stop in stops:
        run(trainer(tmp_path / "parts", Line()), LIMITS, stop)
    again = Line()
    parts = trainer(tmp_path / "parts", again)
    run(parts, LIMITS)
    assert of(parts.curve) == of(whole.curve)
    assert parts.best == whole.best
    assert float(again.weights["x"].detach()) == float(learner.weights["x"].detach())


def test_it_learns_and_has_the_best_weights_in_the_end(tmp_path: Path) -> None:
    learner = Line()
    one = trainer(tmp_path / "s", learner)
    looks = run(one, LIMITS)
    assert looks == list(one.curve)
    assert looks[0].step == 0
    assert looks[one.best].tokens == max(point.tokens for point in looks)
    assert looks[one.best].tokens > looks[0].tokens
    assert learner.right(shards(1)[0]).mean(axis=0).tolist() == list(looks[one.best].shares)


def test_it_ends_where_nothing_is_gained(tmp_path: Path) -> None:
    one = trainer(tmp_path / "s", Line())
    run(one, Limits(seconds=1e9, steps=100_000, every=7))
    assert 50 < one.step < 2000
    assert one.curve[one.best].tokens > 2.9
    step = one.step
    run(trainer(tmp_path / "s", Line()), Limits(seconds=1e9, steps=100_000, every=7))
    assert one.step == step


def test_it_goes_on_where_more_was_collected(tmp_path: Path) -> None:
    limits = Limits(seconds=1e9, steps=100_000, every=7)
    first = trainer(tmp_path / "s", Line(), many=10)
    run(first, limits)
    more = trainer(tmp_path / "s", Line(), many=12)
    run(more, limits)
    assert more.step > first.step
    assert list(more.curve[: len(first.curve)])[1:] == list(first.curve)[1:]


def test_a_state_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"none")
    with pytest.raises(EdgeSpecError, match="cannot be used"):
        trainer(tmp_path / "s", Line())


def test_it_ends_in_time(tmp_path: Path) -> None:
    one = trainer(tmp_path / "s", Line())
    run(one, Limits(seconds=30, steps=100_000, every=7))
    assert one.curve[-1].seconds >= 30
    assert one.step < 40
    other = trainer(tmp_path / "s", Line())
    run(other, Limits(seconds=60, steps=100_000, every=7))
    assert one.step < other.step < 70


def test_all_is_seen_once_an_epoch(tmp_path: Path) -> None:
    learner = Line()
    run(trainer(tmp_path / "s", learner, many=10), Limits(1e9, 20, 100))
    assert len(learner.asked) == 20
    assert len(set(learner.asked)) == 20


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too short to learn from"):
        run(trainer(tmp_path / "s", Line(), many=0), LIMITS)
