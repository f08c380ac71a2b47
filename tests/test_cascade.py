"""Copying and drafting in one round: who goes on where, and that the law of the text stays the target's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.drafters.cascade import CascadeDrafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.suffix import SuffixDrafter
from edgespec.engine import DecodeOptions
from edgespec.events import Round
from edgespec.model import Logits, Token
from edgespec.sampling import Distribution, Sampling, distribution
from edgespec.verify import verify_sampled
from tests import chances
from tests.fakes import FakeModel, chaotic, noisy
from tests.test_engine_laws import plainly, run

GREEDY = Sampling(temperature=0)
DRAWN = Sampling(temperature=1.0)
POLICY = Policy(GREEDY, lambda: 0.0, draw=False)


def counting(vocab: int, sure: float = 20.0) -> Callable[[tuple[Token, ...]], Logits]:
    """A model that says the next number."""

    def logits_of(text: tuple[Token, ...]) -> Logits:
        logits = np.zeros(vocab, np.float32)
        logits[(text[-1] + 1) % vocab] = sure
        return logits

    return logits_of


def cascade(
    logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int, prompt: list[Token], **how: float
) -> tuple[CascadeDrafter, FakeModel]:
    model = FakeModel(logits_of, vocab)
    made = CascadeDrafter(SuffixDrafter(), DraftModelDrafter(model, vocab), **how)
    made.begin(prompt)
    return made, model


LONG = list(range(40, 60))
"""A passage long enough that its copy is trusted."""


def test_a_strong_match_is_copied_without_the_model() -> None:
    made, model = cascade(counting(64), 64, [*LONG, 1, *LONG[:12]])
    fed = model.fed
    draft = made.propose(6, POLICY)
    assert draft.tokens == tuple(LONG[12:18])
    assert draft.source == "lookup"
    assert model.fed == fed


def test_the_model_goes_on_where_the_copies_part_and_reads_them_first() -> None:
    text = [*LONG[:15], 7, *LONG[:15], 8, *LONG[:12]]
    made, model = cascade(counting(64), 64, text)
    fed = model.fed
    draft = made.propose(5, POLICY)
    assert draft.tokens == tuple(LONG[12:17])
    assert draft.source == "draft+lookup"
    assert list(model.tokens) == [*text, *LONG[12:16]]
    assert model.fed == fed + 5


def test_a_weak_copy_does_not_keep_the_model_from_being_asked() -> None:
    made, model = cascade(counting(64), 64, [5, 6, 30, 6, 1, *LONG, 5, 6])
    draft = made.propose(4, POLICY)
    assert draft.source == "draft"
    assert draft.tokens == (7, 8, 9, 10)
    assert list(model.tokens[-4:]) == [6, 7, 8, 9]


def test_a_draft_that_runs_into_a_match_is_copied_on() -> None:
    # The model counts from 39 into the passage; after some tokens the passage is known by itself.
    made, model = cascade(counting(64), 64, [*LONG[:18], 0, 1, 39])
    draft = made.propose(16, POLICY)
    assert draft.tokens == tuple(LONG[:16])
    assert draft.source == "draft+lookup"
    assert model.fed < 21 + 14


class Recorder(SuffixDrafter):
    """Keeps what it is asked for."""

    asked: list[list[Token]]

    def expected(self, drafted: Sequence[Token], limit: int) -> list[tuple[Token, float]]:
        self.asked.append(list(drafted))
        return super().expected(drafted, limit)


def test_each_goes_on_where_the_other_stops_more_than_once() -> None:
    # Model into the passage, copies up to where they part, and the model again.
    text = [*LONG[:8], 0, *LONG[:8], 2, 1, 39]
    copier = Recorder()
    copier.asked = []
    model = FakeModel(counting(64), 64)
    made = CascadeDrafter(copier, DraftModelDrafter(model, 64))
    made.begin(text)
    fed = model.fed
    draft = made.propose(12, POLICY)
    assert draft.tokens == tuple(range(40, 52))
    assert draft.source == "draft+lookup"
    assert model.fed == fed + 12
    assert all(list(draft.tokens[: len(one)]) == one for one in copier.asked)


def test_a_copy_ends_where_all_of_it_is_hardly_ever_kept() -> None:
    text = [*LONG, *range(20), 1, *LONG]
    made, model = cascade(counting(64), 64, text, least=0.5)
    fed = model.fed
    draft = made.propose(31, POLICY)
    chances = [chance for _, chance in made._copier.expected((), 31)]
    assert math.prod(chances[: len(draft.tokens)]) >= 0.5
    assert math.prod(chances[: len(draft.tokens) + 1]) < 0.5
    assert model.fed == fed


@pytest.mark.parametrize(("sure", "steps", "kept"), [(0.56, 2, 2), (0.6, 3, 2), (0.7, 3, 3)])
def test_a_draft_ends_where_all_of_it_is_hardly_ever_kept(
    sure: float, steps: int, kept: int
) -> None:
    """And where it most likely would with the next step, that is not made."""

    def of(text: tuple[Token, ...]) -> Logits:
        probs = np.full(64, (1 - sure) / 63)
        probs[(text[-1] + 1) % 64] = sure
        logits: Logits = np.log(probs).astype(np.float32)
        return logits

    made, model = cascade(of, 64, [1, 2, 3])
    fed = model.fed
    draft = made.propose(9, POLICY)
    assert draft.tokens == tuple(range(4, 4 + kept))
    assert model.fed == fed + steps


def test_where_the_model_is_not_sure_a_weak_copy_will_do() -> None:
    text = [3, 4, 5, 20, 21, 22, 30, 3, 4, 5]
    sure, _ = cascade(counting(64), 64, text, strong=0.95)
    assert sure.propose(2, POLICY).tokens == (6, 7)
    doubtful, _ = cascade(counting(64, sure=0.5), 64, text, strong=0.95)
    draft = doubtful.propose(2, POLICY)
    assert draft.tokens[0] == 20
    assert draft.source == "lookup"


def test_nothing_is_drafted_where_nothing_is_likely() -> None:
    made, _ = cascade(counting(64, sure=0.5), 64, [1, 2, 3])
    assert made.propose(8, POLICY).tokens == ()


@pytest.mark.parametrize("limit", range(1, 12))
@pytest.mark.parametrize("seed", range(8))
def test_no_more_is_drafted_than_may_be(limit: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = rng.integers(0, 4, 30).tolist()
    made, _ = cascade(noisy(counting(4), seed, 4.0), 4, text, least=0.01)
    draft = made.propose(limit, Policy(DRAWN, rng.random, draw=True))
    assert 0 < len(draft.tokens) <= limit
    assert len(draft.proposals) == len(draft.tokens)


@pytest.mark.parametrize("seed", range(20))
def test_laws_a_and_b_hold_while_it_learns(seed: int) -> None:
    vocab = 2 + seed % 5
    target_of = chaotic(vocab, seed, depth=2)
    model = FakeModel(noisy(target_of, 7, 1.0), vocab)
    made = CascadeDrafter(
        SuffixDrafter(), DraftModelDrafter(model, vocab), strong=0.4 + seed % 3 / 5, least=0.1
    )
    sources: set[str] = set()
    for answer in range(3):
        target = FakeModel(target_of, vocab)
        prompt = [answer % vocab, 1]
        options = DecodeOptions(sampling=GREEDY, draft_length=6, max_tokens=60)
        emitted, _, events = run(target, made, prompt, options)
        assert emitted == plainly(FakeModel(target_of, vocab), prompt, options)
        assert list(target.tokens) == prompt + emitted[:-1]
        sources |= {event.source for event in events if isinstance(event, Round)}
    assert "draft" in "".join(sources)
    assert "lookup" in "".join(sources)


# A draft model that goes on after what others drafted.


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("draw", [False, True])
def test_a_model_continues_as_if_the_tokens_before_were_text(seed: int, draw: bool) -> None:
    """Called several times in a round, after right and wrong guesses, and then told the text."""
    rng = np.random.default_rng(seed)
    vocab = 6
    logits_of = chaotic(vocab, seed, depth=5)
    sampling = Sampling(temperature=0.9, repeat_penalty=1.3) if draw else GREEDY
    text = rng.integers(0, vocab, 8).tolist()
    old = DraftModelDrafter(FakeModel(logits_of, vocab), vocab)
    old.begin(text)
    for step in range(8):
        after: list[Token] = []
        given: list[tuple[Distribution, np.ndarray]] = []
        for part in range(3):
            if rng.random() < 0.7:
                after += rng.integers(0, vocab, int(rng.integers(1, 4))).tolist()
            fresh = DraftModelDrafter(FakeModel(logits_of, vocab), vocab)
            fresh.begin([*text, *after])
            policies = [
                Policy(sampling, np.random.default_rng([step, part]).random, draw) for _ in "ab"
            ]
            ours = old.propose(2, policies[0], after=after)
            theirs = fresh.propose(2, policies[1])
            assert ours.tokens == theirs.tokens
            for mine, other in zip(ours.proposals, theirs.proposals, strict=True):
                if mine is None or other is None:
                    assert mine is other is None
                    continue
                assert np.array_equal(mine.probs, other.probs)
                given.append((mine, other.probs.copy()))
            after += ours.tokens
        assert all(np.array_equal(one.probs, probs) for one, probs in given), "overwritten"
        new = [*after[: int(rng.integers(0, len(after) + 1))], int(rng.integers(0, vocab))]
        old.accept(new)
        text += new


@pytest.mark.parametrize("refuses", [False, True])
def test_a_model_s_own_context_ends_behind_the_tokens_before(refuses: bool) -> None:
    model = FakeModel(counting(32), 32, capacity=8, refuses=refuses)
    ours = DraftModelDrafter(model, 32)
    ours.begin([1, 2, 3])
    assert ours.propose(9, POLICY, after=[4, 5]).tokens == (6, 7, 8, 9)
    assert ours.propose(9, POLICY, after=[4, 9, 1]).tokens == (2, 3, 4)
    assert ours.propose(9, POLICY, after=[4, 5, 6, 7, 8]).tokens == (9,)
    assert ours.propose(9, POLICY, after=[4, 5, 6, 7, 8, 9]).tokens == ()
    ours.accept([4])
    assert ours.propose(2, POLICY).tokens == (5, 6)


def test_a_copied_token_that_the_model_does_not_know_ends_its_part() -> None:
    ours = DraftModelDrafter(FakeModel(counting(8), 8), 16)
    ours.begin([1, 2])
    assert ours.propose(2, POLICY, after=[12]).tokens == ()
    assert ours.propose(2, POLICY, after=[5]).tokens == (6, 7)


# Law E.

VOCAB, LENGTH = 3, 4
PROMPT = (0, 1, 2, 0, 1)
Uniform = Callable[[], float]


@cache
def table(seed: int, text: tuple[Token, ...]) -> Distribution:
    """Distributions in double precision, by the last two tokens."""
    weights = np.exp(np.random.default_rng([seed, *text[-2:]]).normal(scale=1.5, size=VOCAB))
    return Distribution(weights / weights.sum())


class TableModel:
    """A draft model that is a table, and stops where its pace says so."""

    def __init__(self) -> None:
        self._text: list[Token] = []

    def begin(self, prompt: Sequence[Token]) -> None:
        self._text = list(prompt)

    def accept(self, tokens: Sequence[Token]) -> None:
        self._text += tokens

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        tokens: list[Token] = []
        proposals: list[Distribution | None] = []
        pace = policy.pace
        assert pace
        while len(tokens) < limit and pace.step(tokens):
            q = table(2, (*self._text, *after, *tokens))
            if not pace.keep(q.highest):
                break
            tokens.append(q.draw(policy.uniform()))
            proposals.append(q)
        return Draft(tuple(tokens), tuple(proposals), "draft")

    def close(self) -> None: ...


def error(make: Callable[[], Drafter], length: int = LENGTH) -> tuple[float, set[str]]:
    """How far the law of texts is from the target's, at the most, and who drafted."""
    sources: set[str] = set()

    def write(uniform: Uniform) -> tuple[Token, ...]:
        made, text = make(), list(PROMPT)
        made.begin(text)
        while (left := length + len(PROMPT) - len(text)) > 0:
            policy = Policy(DRAWN, uniform, draw=True)
            draft = made.propose(left - 1, policy) if left > 1 else Draft()
            sources.add(draft.source)
            guessed = (*text, *draft.tokens)
            past = [guessed[: len(text) + row] for row in range(len(draft.tokens) + 1)]
            verdict = verify_sampled(
                draft.tokens,
                draft.proposals,
                lambda row, past=past: table(1, past[row]),  # type: ignore[misc]
                uniform,
            )
            new = [*draft.tokens[: verdict.accepted], verdict.token]
            made.accept(new)
            text += new
        return tuple(text[len(PROMPT) :])

    wanted = chances.texts(lambda text: table(1, (*PROMPT, *text)), VOCAB, length)
    return chances.distance(chances.law(write), wanted), sources


@pytest.mark.parametrize(("strong", "least"), [(0.3, 0.02), (0.4, 0.05), (0.6, 0.02)])
def test_law_e_the_cascade_writes_what_the_target_would(strong: float, least: float) -> None:
    off, sources = error(
        lambda: CascadeDrafter(SuffixDrafter(), TableModel(), strong=strong, least=least)
    )
    assert off < 1e-12
    assert sources >= {"draft", "draft+lookup"}


def test_law_e_holds_for_lookup_that_learns() -> None:
    off, sources = error(lambda: SuffixDrafter(least=0.05))
    assert off < 1e-12
    assert "lookup" in sources


class Judging(CascadeDrafter):
    """Drops a drawn token where a copy says otherwise: known to bias the text."""

    def propose(self, limit: int, policy: Policy) -> Draft:
        draft = super().propose(limit, policy)
        for n, (token, q) in enumerate(zip(draft.tokens, draft.proposals, strict=True)):
            copies = self._copier.expected(draft.tokens[:n], 1)
            if q is not None and copies and copies[0][0] != token:
                return Draft(draft.tokens[:n], draft.proposals[:n])
        return draft


def test_law_e_dies_when_a_drawn_token_is_judged_by_a_copy() -> None:
    """Negative control."""
    made = lambda: Judging(SuffixDrafter(), TableModel(), strong=0.9, least=0.05)  # noqa: E731
    assert error(made, length=3)[0] > 1e-4


def test_law_e_holds_with_a_draft_model_in_the_engine() -> None:
    target_of, draft_of = soft(1), soft(2)

    def write(uniform: Uniform) -> tuple[Token, ...]:
        model = DraftModelDrafter(FakeModel(draft_of, VOCAB), VOCAB)
        made = CascadeDrafter(SuffixDrafter(), model, strong=0.3, least=0.05)
        options = DecodeOptions(sampling=DRAWN, draft_length=3, max_tokens=LENGTH, uniform=uniform)
        return tuple(run(FakeModel(target_of, VOCAB), made, list(PROMPT), options)[0])

    wanted = chances.texts(
        lambda text: distribution(target_of((*PROMPT, *text)), DRAWN), VOCAB, LENGTH
    )
    # Single precision, as models give it.
    assert chances.distance(chances.law(write), wanted) < 1e-6


def soft(seed: int) -> Callable[[tuple[Token, ...]], Logits]:
    return lambda text: np.log(table(seed, text).probs).astype(np.float32)
