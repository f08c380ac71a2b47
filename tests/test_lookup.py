"""Prompt lookup against a slow search written as the rule is told."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.drafters.base import Policy
from edgespec.drafters.lookup import LookupDrafter
from edgespec.model import Token
from edgespec.sampling import Sampling

POLICY = Policy(Sampling(temperature=0), lambda: 0.0, draw=False)


def told(text: list[Token], limit: int, least: int, most: int) -> list[Token]:
    for length in range(min(most, len(text) - 1), least - 1, -1):
        for start in range(len(text) - length - 1, -1, -1):
            if text[start : start + length] == text[-length:]:
                grown = list(text)
                for _ in range(limit):
                    grown.append(grown[start + length + len(grown) - len(text)])
                return grown[len(text) :]
    return []


@pytest.mark.parametrize("seed", range(200))
def test_the_most_recent_longest_match_wins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    least, most = int(rng.integers(1, 4)), int(rng.integers(4, 8))
    drafter = LookupDrafter(least, most)
    text = rng.integers(0, int(rng.integers(1, 5)), int(rng.integers(1, 60))).tolist()
    drafter.begin(text)
    for _ in range(5):
        limit = int(rng.integers(1, 9))
        draft = drafter.propose(limit, POLICY)
        assert list(draft.tokens) == told(text, limit, least, most)
        assert draft.proposals == (None,) * len(draft.tokens)
        new = rng.integers(0, 3, 2).tolist()
        drafter.accept(new)
        text += new


def test_recent_beats_old() -> None:
    drafter = LookupDrafter(2)
    drafter.begin([1, 2, 7, 0, 1, 2, 8, 0, 1, 2])
    assert drafter.propose(1, POLICY).tokens == (8,)


def test_long_beats_recent() -> None:
    drafter = LookupDrafter(2)
    drafter.begin([5, 1, 2, 7, 0, 4, 1, 2, 8, 0, 5, 1, 2])
    assert drafter.propose(1, POLICY).tokens == (7,)


def test_a_repetition_goes_on() -> None:
    drafter = LookupDrafter(2)
    drafter.begin([1, 2, 3, 1, 2, 3, 1, 2])
    assert drafter.propose(7, POLICY).tokens == (3, 1, 2, 3, 1, 2, 3)


def test_a_new_text_forgets_the_old_one() -> None:
    drafter = LookupDrafter(2)
    drafter.begin([1, 2, 3, 4, 1, 2])
    drafter.begin([9, 1, 2])
    assert drafter.propose(3, POLICY).tokens == ()


def test_the_text_may_be_long() -> None:
    drafter = LookupDrafter(3)
    text = np.random.default_rng(0).integers(0, 50_000, 5000).tolist()
    drafter.begin(text)
    drafter.accept(text[100:110])
    assert drafter.propose(4, POLICY).tokens == tuple(text[110:114])
