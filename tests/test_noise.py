"""The noise itself: the same everywhere, independent, and what it picks is found without looking at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec.noise import SharedNoise, _split_mix, _unit
from edgespec.sampling import Distribution

BLOCK = 64
MASK = 2**64 - 1


# The same numbers everywhere.


def split_mix(start: int, number: int) -> int:
    bits = (start + number * 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def by_hand(seed: int | Sequence[int], position: int, token: int) -> float:
    """The definition once more, in whole numbers of Python."""
    keys = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    own, block = (split_mix(int(key), position) for key in keys)
    of_block = split_mix(block, token // BLOCK)
    least = -math.log(((of_block >> 11) + 1) / 2**53) / BLOCK
    if of_block % BLOCK == token % BLOCK:
        return least
    return least - math.log(((split_mix(own, token) >> 11) + 1) / 2**53)


def test_it_is_split_mix_64() -> None:
    """The outputs that others print for the seed 1234567."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    numbers = np.arange(1, 5, dtype=np.uint64)
    assert _split_mix(1234567, numbers).tolist() == known
    assert [_split_mix(1234567, number) for number in range(1, 5)] == known


@pytest.mark.parametrize("seed", [0, 7, (7, 3, 1500), 2**70])
def test_a_number_follows_from_seed_place_and_token_alone(seed: int | tuple[int, ...]) -> None:
    for position in (0, 1, 4095, 1_000_000):
        noise = SharedNoise(seed)
        ids = np.array([0, 1, 63, 64, 65, 40_000, 151_935, 262_143])
        ids = np.append(ids, 640 + noise.exponential(position, np.arange(640, 704)).argmin())
        found = noise.exponential(position, ids)
        wanted = [by_hand(seed, position, int(token)) for token in ids]
        assert found.tolist() == pytest.approx(wanted, rel=1e-14, abs=0)
        assert found[-1] < 0.5, "the least of 64"
        some = SharedNoise(seed).exponential(position, ids[[5, 2]])
        assert some.tolist() == pytest.approx([wanted[5], wanted[2]], rel=1e-14, abs=0)


def test_the_texts_of_old_seeds_stay_what_they_are() -> None:
    """Whoever changes the noise changes all texts that somebody wrote a seed down for."""
    found = SharedNoise((7, 1, 0)).exponential(100, np.array([0, 1, 2, 512, 151_935]))
    assert found.tolist() == pytest.approx(PINNED, rel=1e-13, abs=0)


PINNED = [
    0.6456678947498161,
    0.4472385977716764,
    0.6431900960063364,
    2.2205508663440074,
    0.2698426773440412,
]


# What is picked.


def row(size: int, seed: int, spread: float) -> Distribution:
    rng = np.random.default_rng(seed)
    probs = np.exp(rng.normal(scale=spread, size=size)).astype(np.float32)
    probs[rng.random(size) < 0.1] = 0
    probs[rng.integers(size)] = 1
    return Distribution(probs / probs.sum())


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 5000, 33_000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0, 12.0])
def test_the_first_are_found_without_looking_at_all(size: int, spread: float) -> None:
    for seed in range(12):
        noise, p = SharedNoise(seed), row(size, seed, spread)
        ids = p.probs.nonzero()[0]
        times = noise.exponential(seed, ids) / p.probs[ids]
        order = ids[times.argsort(kind="stable")]
        for count in (1, 2, 7, 600):
            assert noise.best(p, seed, count) == order[:count].tolist()
        assert noise.pick(p, seed) == order[0]
        assert noise.best(Distribution(p.probs[ids], ids), seed, 7) == order[:7].tolist()


def test_most_of_a_large_vocabulary_is_not_looked_at() -> None:
    """It is what keeps a pick cheap beside a pass; the noise of all of them would not be."""
    looked: list[int] = []

    class Counting(SharedNoise):
        def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
            looked.append(len(ids))
            return super().exponential(position, ids)

    size, noise = 152_000, Counting(1)
    for seed in range(20):
        noise.pick(row(size, seed, 4.0), seed)
    assert sum(looked) / 20 < size / 10


def test_what_cannot_follow_is_never_picked() -> None:
    sparse = Distribution(np.array([0.0, 1.0, 0.0]), np.array([3, 900, 2000]))
    one_hot = np.zeros(3000)
    one_hot[2999] = 1
    for position in range(200):
        noise = SharedNoise(position)
        assert noise.best(sparse, position, 3) == [900]
        assert noise.best(Distribution(one_hot), position, 3) == [2999]


# Whether the numbers behave as if they were random. Thresholds are far above what chance gives.

LEVELS = 2.0 ** -np.arange(12, -3, -1)
"""Of noise, small ones closer together: who comes first has little."""


def excess(counts: NDArray[np.intp], chances: NDArray[np.float64]) -> float:
    """Chi-square's distance from its mean, in standard deviations."""
    expected = chances / chances.sum() * counts.sum()
    kept = expected > 5
    total = float(((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    freedom = int(kept.sum()) - 1
    return (total - freedom) / math.sqrt(2 * freedom)


def shares() -> NDArray[np.float64]:
    """The probability of each level."""
    below = np.concatenate([[0], -np.expm1(-LEVELS), [1]])
    return np.diff(below)


def unlike(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """How far pairs of numbers are from being independent and exponential."""
    edges = np.concatenate([[0], LEVELS, [np.inf]])
    levels = [np.searchsorted(edges, values, side="right") - 1 for values in (one, other)]
    counts = np.bincount(levels[0] * (len(edges) - 1) + levels[1], minlength=(len(edges) - 1) ** 2)
    return excess(counts, np.outer(shares(), shares()).ravel())


MANY = np.arange(1 << 19)


@pytest.mark.parametrize("seed", [0, 1, (5, 2)])
def test_the_noise_is_exponential_and_independent(seed: int | tuple[int, ...]) -> None:
    noise = SharedNoise(seed)
    here = noise.exponential(17, MANY)
    beside = {
        "the next place": noise.exponential(18, MANY),
        "the next seed": SharedNoise(6).exponential(17, MANY),
        "the next token": np.roll(here, -1),
        "the same place of the next block": np.roll(here, -BLOCK),
        "the next token at the next place": np.roll(noise.exponential(18, MANY), -1),
    }
    for name, other in beside.items():
        assert abs(unlike(here, other)) < 6, name


def test_along_the_text_the_noise_of_a_token_is_independent_too() -> None:
    noise = SharedNoise(3)
    ids = np.array([5, 6, 700])
    table = np.array([noise.exponential(position, ids) for position in range(12_000)])
    for column in table.T:
        assert abs(unlike(column[:-1], column[1:])) < 6
    assert abs(unlike(table[:, 0], table[:, 1])) < 6
    assert abs(unlike(table[:, 0], table[:, 2])) < 6


class Unled(SharedNoise):
    """Mistaken: forgets that one of a block has its least noise."""

    def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        bits = _split_mix(_split_mix(self._of_tokens, position), ids.astype(np.uint64))
        least, _ = self._least(position, ids // BLOCK)
        return least - np.log(_unit(bits))


class Unplaced(SharedNoise):
    """Mistaken: the same noise all along the text."""

    def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return super().exponential(0, ids)


def test_noise_that_is_not_independent_is_told_apart() -> None:
    """Negative controls."""
    unplaced, unled = Unplaced(0), Unled(0)
    assert unlike(unplaced.exponential(17, MANY), unplaced.exponential(18, MANY)) > 100
    assert unlike(unled.exponential(17, MANY), unled.exponential(18, MANY)) > 100


class Coarse(SharedNoise):
    """Mistaken: numbers of few bits, as float32 has in a large vocabulary."""

    def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        unit = np.exp(-super().exponential(position, ids))
        return np.asarray(-np.log(np.ceil(unit * 2**10) / 2**10), np.float64)


def test_ties_of_coarse_noise_favour_low_ids_and_those_of_fine_noise_do_not() -> None:
    """With 10 bits and 256 tokens; with the 24 of float32 it would take some million."""
    flat = Distribution(np.full(256, 1 / 256, np.float32), np.arange(256))
    places, deviation = 6000, 256 / math.sqrt(12 * 6000)
    means = [
        float(np.mean([noise.pick(flat, position) for position in range(places)]))
        for noise in (SharedNoise(2), Coarse(2))
    ]
    assert abs(means[0] - 127.5) < 5 * deviation
    assert means[1] < 127.5 - 5 * deviation
