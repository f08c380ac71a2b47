"""The whole policy: exact whatever it decides, and deciding as it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, CostTable
from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.model import Logits, Token
from edgespec.sampling import Distribution, Sampling, distribution
from tests.chances import distance, law, texts
from tests.fakes import FakeModel, chaotic
from tests.simulator import Clock

VOCAB, LENGTH = 3, 4
SAMPLING = Sampling(temperature=1.0)
CHEAP = CostTable(0, {1: 1.0, 2: 1.05, 4: 1.1, 8: 1.3}, {1: 0.1, 8: 0.2})
DEAR = CostTable(0, {1: 1.0, 2: 1.9, 4: 3.7, 8: 7.0}, {1: 0.4, 8: 1.0})


@cache
def toy(seed: int) -> Callable[[tuple[Token, ...]], Logits]:
    @cache
    def logits_of(text: tuple[Token, ...]) -> Logits:
        rng = np.random.default_rng([seed, *text[-2:]])
        return rng.normal(scale=1.5, size=VOCAB).astype(np.float32)

    return logits_of


def law_of(make: Callable[[], Drafter]) -> float:
    """How far the law of the texts is from the target's own, at the most."""

    def run(uniform: Callable[[], float]) -> tuple[Token, ...]:
        options = DecodeOptions(
            sampling=SAMPLING, draft_length=3, max_tokens=LENGTH, uniform=uniform, clock=Clock()
        )
        text: list[Token] = []
        for event in decode(FakeModel(toy(1), VOCAB), make(), [0, 1], options):
            if isinstance(event, FirstToken):
                text.append(event.token)
            elif isinstance(event, Round):
                text.extend(event.tokens)
        return tuple(text)

    found = law(run)
    assert sum(found.values()) == pytest.approx(1)
    return distance(found, texts(own, VOCAB, LENGTH))


def own(text: tuple[Token, ...]) -> Distribution:
    return distribution(toy(1)((0, 1, *text)), SAMPLING)


def auto(table: CostTable, lookup_from: int = 9) -> AutoDrafter:
    """A draft model that is not quite the target; lookup only where a test wants it."""
    model = DraftModelDrafter(FakeModel(toy(2), VOCAB), VOCAB)
    return AutoDrafter(Costs((table,)), LookupDrafter(lookup_from), model, 3, Clock())


# float32 probabilities: the law itself is exact to their last bits.
EXACT = 1e-6


@pytest.mark.parametrize("table", [CHEAP, DEAR])
def test_law_e_the_policy_does_not_look_at_what_it_drew(table: CostTable) -> None:
    assert law_of(lambda: auto(table)) < EXACT


def test_law_e_holds_where_lookup_and_model_take_turns() -> None:
    assert law_of(lambda: auto(CHEAP, lookup_from=1)) < EXACT


class Peeking(DraftModelDrafter):
    """Drops its last token when that was an unlikely one: known to bias the text."""

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        draft = super().propose(limit, policy, after)
        q = draft.proposals[-1]
        if q is not None and q.prob(draft.tokens[-1]) < 0.3:
            return Draft(draft.tokens[:-1], draft.proposals[:-1])
        return draft


def test_law_e_a_policy_that_looks_at_the_drawn_token_fails() -> None:
    error = law_of(lambda: Peeking(FakeModel(toy(2), VOCAB), VOCAB))
    assert error > 1000 * EXACT


# Decisions, on models whose cost is read off a clock.


class Timed(FakeModel):
    """A fake model whose passes take the time that a table says."""

    def __init__(
        self, logits_of: object, vocab: int, costs: dict[int, float], clock: Clock
    ) -> None:
        super().__init__(logits_of, vocab, capacity=4096)  # type: ignore[arg-type]
        self.costs, self._clock = costs, clock

    def _feed(self, tokens: Sequence[Token]) -> None:
        known = max(n for n in self.costs if n <= len(tokens))
        self._clock.now += self.costs[known]
        super()._feed(tokens)


def play(
    table: CostTable, draft_of: Callable[[tuple[Token, ...]], Logits], answers: int = 1
) -> list[list[Round]]:
    """Greedy answers of 96 tokens with one drafter, on a target that repeats nothing."""
    clock = Clock()
    vocab = 64
    target_of = chaotic(vocab, 5)
    model = DraftModelDrafter(Timed(draft_of, vocab, dict(table.draft), clock), vocab)
    drafter = AutoDrafter(Costs((table,)), LookupDrafter(3), model, 7, clock)
    options = DecodeOptions(
        sampling=Sampling(temperature=0), draft_length=7, max_tokens=96, clock=clock
    )
    played = []
    for answer in range(answers):
        target = Timed(target_of, vocab, dict(table.verify), clock)
        events = list(decode(target, drafter, [answer, 2, 3], options))
        played.append([event for event in events if isinstance(event, Round)])
    return played


def sharp(
    logits_of: Callable[[tuple[Token, ...]], Logits],
) -> Callable[[tuple[Token, ...]], Logits]:
    """The same choices, surely."""
    return lambda text: logits_of(text) * 20


def test_a_perfect_draft_is_used_at_full_length() -> None:
    (rounds,) = play(CHEAP, sharp(chaotic(64, 5)))
    assert sum(r.accepted for r in rounds) > 75
    assert max(r.proposed for r in rounds) == 7


@pytest.mark.parametrize("table", [CHEAP, DEAR])
def test_a_draft_that_errs_surely_is_given_up_and_costs_next_to_nothing(table: CostTable) -> None:
    played = play(table, sharp(chaotic(64, 99)), answers=6)
    plain = 95 * table.token
    for rounds in played:
        assert sum(r.seconds for r in rounds) < plain / 0.97
    # A draft model that is only tried now and then is not asked each round to find that out.
    assert sum(r.draft_seconds > 0 for r in played[-1]) <= 6


def test_drafting_comes_back_when_an_easier_answer_comes() -> None:
    easy = {0, 1, 2, 3}

    def draft_of(text: tuple[Token, ...]) -> Logits:
        return sharp(chaotic(64, 99 if text[0] in easy else 5))(text)

    played = play(CHEAP, draft_of, answers=12)
    assert sum(r.accepted for r in played[3]) < 5
    assert max(sum(r.accepted for r in rounds) for rounds in played[4:]) > 60


def test_what_was_learnt_can_be_forgotten() -> None:
    drafter = auto(CHEAP)
    drafter.begin([0, 1])
    first = drafter.propose(3, Policy(SAMPLING, lambda: 0.5, True)).tokens
    for _ in range(30):
        drafter.accept([2])
        drafter.propose(3, Policy(SAMPLING, lambda: 0.5, True))
    drafter.forget()
    drafter.begin([0, 1])
    assert drafter.propose(3, Policy(SAMPLING, lambda: 0.5, True)).tokens == first


def test_what_was_learnt_serves_a_later_session() -> None:
    drafter = auto(CHEAP)
    drafter.begin([0, 1])
    for _ in range(40):
        drafter.propose(3, Policy(SAMPLING, lambda: 0.5, True))
        drafter.accept([2])
    later = auto(CHEAP)
    later.restore(json.loads(json.dumps(drafter.learned())))
    assert later.learned()["drawn"] == drafter.learned()["drawn"]
    fresh = auto(CHEAP).learned()
    for rubbish in ({}, {"version": 99}, {"version": 1, "drawn": {"confidences": []}}):
        other = auto(CHEAP)
        other.restore(rubbish)
        assert other.learned() == fresh


def test_other_costs_hold_at_once_and_what_was_learnt_stays() -> None:
    drafter = auto(CHEAP)
    drafter.begin([0, 1])
    for _ in range(40):
        drafter.propose(3, Policy(SAMPLING, lambda: 0.5, True))
        drafter.accept([2])
    learned = drafter.learned()
    other = CostTable(0, {1: 7.0, 2: 14.0, 4: 28.0}, {1: 21.0, 8: 42.0})
    drafter.go_by(Costs((other,)))
    assert drafter.costs.tables == (other,)
    assert drafter.plain_seconds == pytest.approx(7.0)
    assert drafter.standing().step == pytest.approx(3.0)
    assert drafter.learned() == learned
    drafter.begin([0, 1])
    assert drafter.propose(3, Policy(SAMPLING, lambda: 0.5, True)).tokens == ()
