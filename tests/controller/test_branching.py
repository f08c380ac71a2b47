"""Second guesses beside the first: exact, and only where their rows are worth it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, CostTable
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import Round
from edgespec.model import Logits, Token
from edgespec.sampling import Sampling
from tests.controller.test_auto import CHEAP, DEAR, EXACT, Timed, auto, law_of
from tests.fakes import chaotic, noisy
from tests.simulator import Clock

FREE = CostTable(0, {1: 1.0, 2: 1.0, 16: 1.0}, {1: 0.05, 8: 0.1})
"""Rows cost nothing: a GPU that waits for its memory."""


def rounds(
    table: CostTable, sampling: Sampling, *, branches: int = 16, tokens: int = 300
) -> list[Round]:
    """An answer of a target whose draft errs now and then, mostly with the right token second."""
    clock, vocab = Clock(), 40
    target_of = chaotic(vocab, 5)
    draft = Timed(noisy(target_of, 7, 1.0), vocab, dict(table.draft), clock)
    drafter = AutoDrafter(
        Costs((table,)), LookupDrafter(9), DraftModelDrafter(draft, vocab), 12, clock
    )
    target = Timed(target_of, vocab, dict(table.verify), clock)
    target.branches = branches
    options = DecodeOptions(
        sampling=sampling,
        draft_length=12,
        max_tokens=tokens,
        uniform=np.random.default_rng(3).random,
        clock=clock,
    )
    return [e for e in decode(target, drafter, [1, 2, 3], options) if isinstance(e, Round)]


GREEDY, DRAWN = Sampling(temperature=0), Sampling(temperature=0.8)


@pytest.mark.parametrize("table", [CHEAP, FREE])
def test_law_e_second_guesses_change_no_probability(table: CostTable) -> None:
    assert law_of(lambda: auto(table)) < EXACT


def test_the_laws_above_are_of_trees() -> None:
    for sampling in (GREEDY, DRAWN):
        assert any("tree" in one.source for one in rounds(CHEAP, sampling))


@pytest.mark.parametrize("sampling", [GREEDY, DRAWN])
def test_free_rows_are_used_and_give_more_tokens_a_round(sampling: Sampling) -> None:
    with_trees, chains = (rounds(FREE, sampling, branches=branches) for branches in (16, 1))
    assert not any("tree" in one.source for one in chains)
    means = [np.mean([len(one.tokens) for one in some]) for some in (with_trees, chains)]
    assert means[0] > 1.05 * means[1]


@pytest.mark.parametrize("sampling", [GREEDY, DRAWN])
def test_dear_rows_are_not_spent_on_second_guesses(sampling: Sampling) -> None:
    found = rounds(DEAR, sampling)
    assert sum("tree" in one.source for one in found) < len(found) / 50


def test_greedy_text_is_that_of_plain_decoding() -> None:
    for table in (CHEAP, FREE):
        text = [token for one in rounds(table, GREEDY) for token in one.tokens]
        chains = [token for one in rounds(table, GREEDY, branches=1) for token in one.tokens]
        assert text == chains


def test_it_learns_whether_second_guesses_are_right() -> None:
    """A draft whose second guess is never right is not asked for one for long."""
    vocab = 40
    target_of = chaotic(vocab, 5)

    def misled(text: tuple[Token, ...]) -> Logits:
        logits = noisy(target_of, 7, 0.3)(text)
        own = int(target_of(text).argmax())
        if (len(text) % 3) == 0:
            logits[own] = -9
        return logits

    assert share_of_trees(misled, 600) < 0.5 * share_of_trees(misled, 60)


def share_of_trees(draft_of: Callable[[tuple[Token, ...]], Logits], tokens: int) -> float:
    """Of the last rounds of an answer."""
    clock, vocab = Clock(), 40
    draft = Timed(draft_of, vocab, dict(CHEAP.draft), clock)
    drafter = AutoDrafter(
        Costs((CHEAP,)), LookupDrafter(9), DraftModelDrafter(draft, vocab), 12, clock
    )
    options = DecodeOptions(sampling=GREEDY, draft_length=12, max_tokens=tokens, clock=clock)
    events = decode(
        Timed(chaotic(vocab, 5), vocab, dict(CHEAP.verify), clock), drafter, [1], options
    )
    found = [event for event in events if isinstance(event, Round)][-30:]
    return sum("tree" in one.source for one in found) / len(found)
