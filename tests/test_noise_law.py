"""Law E of picking by noise, exactly.

What is picked depends on comparisons of noise only. With three tokens these cut the plane of noise
ratios into few cells, whose probabilities have a closed form: asking once in each cell gives the law of
a pick, and of two picks that share their noise, without drawing anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec.noise import SharedNoise
from edgespec.sampling import Distribution
from tests.fakes import dense
from tests.test_verify import PAIRS

EXACT = 1e-12


class Told(SharedNoise):
    """Noise that the test writes down."""

    def __init__(self, *noise: float) -> None:
        super().__init__(0)
        self._noise = np.array(noise)

    def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._noise[ids]

    def _least(
        self, position: int, blocks: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return np.zeros(len(blocks)), np.zeros(len(blocks), np.int64)


Line = tuple[float, float]
"""v = a + b u."""


def cells(ratios: Sequence[Sequence[float]]) -> Iterator[tuple[tuple[float, float, float], float]]:
    """Noise (1, u, v) in every cell between the lines where a comparison turns, with its probability.

    Token i comes before j where E_i / E_j < p_i / p_j. For three exponential numbers u = E_1 / E_0 and
    v = E_2 / E_0 have the density 2 / (1 + u + v)^3.
    """
    lines: set[Line] = {(0.0, 0.0), (math.inf, 0.0)}
    breaks = {0.0, math.inf}
    for first, second, third in ratios:
        if first:
            breaks.add(second / first)
            lines.add((third / first, 0.0))
        if second:
            lines.add((0.0, third / second))
    for (a, b), (c, d) in product(lines, repeat=2):
        if b != d and math.isfinite(a) and math.isfinite(c):
            breaks.add(max((c - a) / (b - d), 0.0))
    for low, high in pairwise(sorted(breaks)):
        middle = (low + high) / 2 if high < math.inf else low * 2 + 1
        stack = sorted(lines, key=lambda line: line[0] + line[1] * middle)
        for lower, upper in pairwise(stack):
            chance = _above(lower, low, high) - _above(upper, low, high)
            bottom, top = (a + b * middle for a, b in (lower, upper))
            inside = (bottom + top) / 2 if top < math.inf else bottom * 2 + 1
            yield (1.0, middle, inside), chance


def _above(line: Line, low: float, high: float) -> float:
    """The probability of all above a line, between two values of u."""
    a, b = line
    if a == math.inf:
        return 0.0
    ends = [0.0 if u == math.inf else 1 / (1 + a + (1 + b) * u) for u in (low, high)]
    return (ends[0] - ends[1]) / (1 + b)


def law(
    *tables: Sequence[float], run: Callable[[SharedNoise, list[Distribution]], Hashable]
) -> dict[Hashable, float]:
    """The probability of everything that `run` can return, as dense rows and as sparse ones."""
    laws: list[dict[Hashable, list[float]]] = [{}, {}]
    ids = np.arange(3)
    rows = [[dense(*probs) for probs in tables]]
    rows.append([Distribution(one.probs, ids) for one in rows[0]])
    for noise, chance in cells(tables):
        for found, made in zip(laws, rows, strict=True):
            found.setdefault(run(Told(*noise), made), []).append(chance)
    sums = [{key: math.fsum(chances) for key, chances in found.items()} for found in laws]
    assert sums[0] == sums[1]
    return sums[0]


def pick_all(noise: SharedNoise, rows: list[Distribution]) -> tuple[int, ...]:
    return tuple(noise.pick(one, 0) for one in rows)


def error(found: dict[Hashable, float], wanted: dict[Hashable, float]) -> float:
    return max(abs(found.get(key, 0.0) - wanted.get(key, 0.0)) for key in {*found, *wanted})


def agreement(p: Sequence[float], q: Sequence[float]) -> dict[Hashable, float]:
    """P(both pick j) = 1 / sum of max(p_i / p_j, q_i / q_j), for every j."""
    return {
        j: 1 / sum(max(p[i] / p[j], q[i] / q[j]) for i in range(len(p)))
        for j in range(len(p))
        if p[j] and q[j]
    }


CASES = [
    *PAIRS.values(),
    ([0.7, 0.2, 0.1], [0.05, 0.9, 0.05]),
    ([0.3, 0.3, 0.4], [0.25, 0.35, 0.4]),
]


@pytest.mark.parametrize(("p", "q"), CASES)
def test_law_e_a_pick_has_the_law_of_its_distribution(p: list[float], q: list[float]) -> None:
    joint = law(p, q, run=pick_all)
    assert math.fsum(joint.values()) == pytest.approx(1, abs=EXACT)
    for side, probs in enumerate((p, q)):
        alone: dict[Hashable, float] = dict.fromkeys(range(3), 0.0)
        for picks, chance in joint.items():
            assert isinstance(picks, tuple)
            alone[picks[side]] += chance
        assert error(alone, dict(enumerate(probs))) < EXACT


@pytest.mark.parametrize(("p", "q"), CASES)
def test_law_e_two_that_share_their_noise_agree_as_often_as_the_formula_says(
    p: list[float], q: list[float]
) -> None:
    joint = law(p, q, run=pick_all)
    both: dict[Hashable, float] = {j: joint.get((j, j), 0.0) for j in range(3)}
    assert error(both, agreement(p, q)) < EXACT
    apart = sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    assert sum(both.values()) >= (1 - apart) / (1 + apart) - EXACT


@pytest.mark.parametrize(("p", "_q"), CASES)
def test_law_e_the_best_are_drawn_without_replacement(p: list[float], _q: list[float]) -> None:
    orders = law(p, run=lambda noise, rows: tuple(noise.best(rows[0], 0, 2)))
    wanted: dict[Hashable, float] = {
        (i, j): p[i] * p[j] / (1 - p[i])
        for i, j in product(range(3), repeat=2)
        if i != j and p[i] and p[j]
    }
    assert error(orders, wanted or {(p.index(1.0),): 1.0}) < EXACT


@pytest.mark.parametrize(
    "mistake",
    [
        lambda noise, p: int((noise * p.probs).argmin()),  # the race run backwards
        lambda noise, p: int((np.log(p.probs) + noise).argmax()),  # Gumbel noise is -log E
        lambda noise, p: int((np.log(p.probs) - noise).argmax()),
    ],
)
def test_law_e_known_mistakes_have_another_law(
    mistake: Callable[[NDArray[np.float64], Distribution], int],
) -> None:
    """The cells are those of the right rule, so their probabilities are what they were."""
    p = [0.5, 0.3, 0.2]
    found: dict[Hashable, float] = {}
    for noise, chance in cells([p, [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]):
        key = mistake(np.array(noise), dense(*p))
        found[key] = found.get(key, 0.0) + chance
    assert error(found, dict(enumerate(p))) > 0.01
