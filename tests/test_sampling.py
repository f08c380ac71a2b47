"""Logits to distributions, against a slow and obvious rendering of llama.cpp's default chain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgespec.errors import UsageError
from edgespec.sampling import Distribution, Sampling, choose, distribution, residual, without
from tests.fakes import dense

SIZES = [3, 64, 700, 5000]


def row(size: int, seed: int, scale: float = 4) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(scale=scale, size=size).astype(np.float32)


def obvious(
    logits: np.ndarray[tuple[int], np.dtype[np.float32]], sampling: Sampling
) -> dict[int, float]:
    """Sort everything, then cut: penalties aside, what `distribution` must equal."""
    order = sorted(range(len(logits)), key=lambda i: (-float(logits[i]), i))
    if sampling.top_k:
        order = order[: sampling.top_k]
    weights = [math.exp(float(logits[i]) - float(logits[order[0]])) for i in order]
    kept, reached = [], 0.0
    for i, weight in zip(order, weights, strict=True):
        kept.append(i)
        reached += weight
        if sampling.top_p < 1 and reached >= sampling.top_p * sum(weights):
            break
    if sampling.min_p:
        floor = float(np.float32(logits[order[0]]) + np.float32(math.log(sampling.min_p)))
        kept = [i for i in kept if logits[i] >= floor]
    hot = {i: math.exp(float(logits[i] - logits[order[0]]) / sampling.temperature) for i in kept}
    return {i: weight / sum(hot.values()) for i, weight in hot.items()}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.3),
        Sampling(temperature=2, top_k=2),
        Sampling(top_k=40),
        Sampling(top_p=0.9),
        Sampling(top_p=0.999),
        Sampling(min_p=0.05),
        Sampling(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05),
        Sampling(top_k=100_000, top_p=0.5),
    ],
)
def test_distribution_equals_the_obvious_one(size: int, sampling: Sampling) -> None:
    for seed, scale in ((0, 4), (1, 0.5), (2, 12)):
        logits = row(size, seed, scale)
        found = distribution(logits, sampling)
        expected = obvious(logits, sampling)
        assert {t for t in range(size) if found.prob(t) > 0} <= set(expected)
        for token, probability in expected.items():
            assert found.prob(token) == pytest.approx(probability, rel=2e-4, abs=1e-7)
        assert found.probs.sum() == pytest.approx(1, abs=1e-5)


def test_equal_logits_are_cut_by_id() -> None:
    found = distribution(np.zeros(1000, np.float32), Sampling(top_k=3))
    assert found.ids is not None
    assert found.ids.tolist() == [0, 1, 2]


def test_infinitely_unlikely_tokens_are_never_drawn() -> None:
    logits = np.full(600, -np.inf, np.float32)
    logits[[5, 599]] = 0
    found = distribution(logits, Sampling())
    assert {found.draw(u) for u in np.linspace(0, 1, 50, endpoint=False)} == {5, 599}


def test_the_given_row_is_used_and_the_logits_are_left_alone() -> None:
    logits, out = row(100, 1), np.empty(100, np.float32)
    before = logits.copy()
    found = distribution(logits, Sampling(repeat_penalty=1.3), [1, 2], out=out)
    assert found.probs is out
    assert np.array_equal(logits, before)


@pytest.mark.parametrize("size", [3, 512, 513, 5000])
def test_draw_follows_the_cumulative_distribution(size: int) -> None:
    found = distribution(row(size, 3), Sampling())
    cumulative = found.probs.astype(np.float64).cumsum()
    for uniform in np.random.default_rng(0).random(300):
        place = int(np.searchsorted(cumulative / cumulative[-1], uniform, side="right"))
        drawn = found.draw(float(uniform))
        near = abs(cumulative - uniform).min() < 1e-5  # float32 sums of blocks round differently
        assert drawn == place or near


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 1e-16, math.nextafter(1, 0)])
def test_the_ends_of_the_interval_draw_possible_tokens(uniform: float) -> None:
    probs = np.zeros(1500, np.float32)
    probs[[3, 700]] = 0.5
    for ids in (None, np.arange(1500)):
        assert Distribution(probs, ids).draw(uniform) in {3, 700}


def test_residual_of_padded_vocabularies() -> None:
    """The draft's row may be shorter than the target's, and the other way round."""
    short, long = dense(0.5, 0.5), dense(0.25, 0.25, 0.5)
    assert residual(long, short).probs.tolist() == [0, 0, 1]
    assert residual(short, long).probs.tolist() == [0.5, 0.5]


def test_residual_of_equals_is_the_target_itself() -> None:
    p = dense(0.5, 0.5)
    assert residual(p, p) is p


def test_without_takes_one_token_out() -> None:
    assert without(dense(0.2, 0.3, 0.5), 2).probs.tolist() == [0.4, 0.6, 0]
    sparse = Distribution(np.array([0.2, 0.8]), np.array([4, 9]))
    assert without(sparse, 9).prob(4) == 1
    assert without(sparse, 5).prob(9) == 0.8


def test_probabilities_outside_the_vocabulary_are_zero() -> None:
    assert dense(0.5, 0.5).prob(7) == 0
    sparse = Distribution(np.array([0.2, 0.8]), np.array([4, 9]))
    assert [sparse.prob(t) for t in (0, 4, 5, 9, 10)] == [0, 0.2, 0, 0.8, 0]
    assert sparse.at(np.array([9, 3, 12, 4])).tolist() == [0.8, 0, 0, 0.2]


def test_penalties_are_llama_cpps() -> None:
    sampling = Sampling(
        temperature=0, repeat_penalty=2, presence_penalty=0.1, frequency_penalty=0.2
    )
    # 0 occurs twice: 2 / 2 - 2 * 0.2 - 0.1 = 0.5; 2 once: 1 / 2 - 0.2 - 0.1 = 0.2
    lowered = np.array([2.0, -2.0, 1.0, 0.49], np.float32)
    assert choose(lowered, sampling, [0, 0, 2]) == 0
    raised = np.array([2.0, -2.0, 1.0, 0.51], np.float32)
    assert choose(raised, sampling, [0, 0, 2]) == 3
    assert choose(np.array([-1.0, -1.5], np.float32), sampling, [0]) == 1  # -1 * 2 - 0.3 < -1.5


def test_the_window_bounds_what_penalties_count() -> None:
    sampling = Sampling(repeat_penalty=1.5, penalty_window=2)
    assert list(sampling.window([1, 2, 3])) == [2, 3]
    assert list(Sampling().window([1, 2, 3])) == []
    assert list(Sampling(repeat_penalty=2, penalty_window=0).window([1])) == []


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": 1.5},
        {"min_p": -0.1},
        {"min_p": 2},
        {"repeat_penalty": 0},
        {"presence_penalty": math.nan},
        {"frequency_penalty": math.inf},
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(values)).replace("_", "-")):
        Sampling(**values)  # type: ignore[arg-type]
