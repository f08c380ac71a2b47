"""The laws with lookahead: text, cache, what it remembers, and every course of a sampled answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from edgespec import judge, verify
from edgespec.drafters.lookahead import LookaheadDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Reason, Round
from edgespec.model import Logits, Token
from edgespec.sampling import Distribution, Sampling
from tests.chances import distance, law, texts
from tests.fakes import FakeModel, chaotic
from tests.test_engine_laws import follow, plainly, run, setting
from tests.test_lookahead import AMPLE, GREEDY, LogitsOf, Way, roomy


@pytest.mark.parametrize("shape", [(1, 3, 1), (2, 3, 2), (3, 4, 2), (9, 5, 9)])
@pytest.mark.parametrize("from_text", [True, False])
def test_laws_a_and_b_with_every_shape(shape: tuple[int, int, int], from_text: bool) -> None:
    """Also where the window has to shrink: the model takes 16 rows."""
    for seed in range(12):
        vocab, prompt, options = setting(seed)
        logits_of = chaotic(vocab, seed, depth=1 + seed % 3)
        drafter = LookaheadDrafter(*shape, from_text=from_text)
        emitted, reason, _ = run(FakeModel(logits_of, vocab), drafter, prompt, options)
        assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options)
        assert reason in {Reason.END, Reason.LENGTH}
        sampled = replace(
            options, sampling=Sampling(temperature=1), uniform=np.random.default_rng(seed).random
        )
        for way in (options, sampled):
            for stop_after in (2, 5, 10_000):
                target = FakeModel(logits_of, vocab)
                follow(target, prompt, decode(target, drafter, prompt, way), stop_after)


@pytest.mark.parametrize("room", range(1, 12))
def test_a_context_that_ends_shrinks_the_window_and_not_the_text(room: int) -> None:
    logits_of = chaotic(4, 4, depth=1)
    target = FakeModel(logits_of, 4, capacity=room + 3)
    options = DecodeOptions(sampling=GREEDY, draft_length=8)
    emitted, reason, _ = run(target, LookaheadDrafter(3, 4, 2), [1, 2, 3, 1], options)
    assert reason is Reason.CONTEXT
    assert len(emitted) == room
    assert list(target.tokens) == [1, 2, 3, 1, *emitted[:-1]]


def test_a_target_that_takes_no_trees_is_decoded_plainly() -> None:
    logits_of = chaotic(4, 4, depth=1)
    target = FakeModel(logits_of, 4, branches=1)
    options = DecodeOptions(sampling=GREEDY, draft_length=8, max_tokens=20)
    emitted, _, events = run(target, LookaheadDrafter(3, 3, 2), [1, 2, 3, 1], options)
    assert emitted == plainly(FakeModel(logits_of, 4), [1, 2, 3, 1], options)
    assert all(event.rows == 1 for event in events if isinstance(event, Round))


def test_rounds_tell_their_rows_and_a_window_alone_is_no_guess() -> None:
    logits_of = chaotic(50, 4)
    options = DecodeOptions(sampling=GREEDY, draft_length=8, max_tokens=9)
    drafter = LookaheadDrafter(3, 3, 2, from_text=False)
    _, _, events = run(FakeModel(logits_of, 50), drafter, [1, 2, 3, 4], options)
    first = next(event for event in events if isinstance(event, Round))
    assert (first.rows, first.proposed, first.tested, first.accepted) == (6, 0, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_law_d_those_that_were_told_the_same_propose_the_same(seed: int) -> None:
    """Its form for a drafter that learns from passes; what came before `begin` is forgotten."""
    rng = np.random.default_rng(seed)
    old, fresh = LookaheadDrafter(3, 4, 3), LookaheadDrafter(3, 4, 3)
    old.begin(rng.integers(0, 4, 10).tolist())
    live([old], rng)
    text = rng.integers(0, 4, int(rng.integers(1, 20))).tolist()
    old.begin(text)
    fresh.begin(text)
    live([old, fresh], rng)


def live(drafters: list[LookaheadDrafter], rng: np.random.Generator) -> None:
    """Rounds of arbitrary texts and passes, the same for all; random numbers are others for each."""
    for _ in range(12):
        limit = int(rng.integers(1, 6))
        drafts = [
            drafter.propose(limit, replace(AMPLE, draw=bool(i), uniform=partial(float, 0.9 * i)))
            for i, drafter in enumerate(drafters)
        ]
        assert all(draft == drafts[0] for draft in drafts)
        own = rng.integers(0, 4, drafts[0].window).tolist()
        tokens = rng.integers(0, 4, int(rng.integers(1, 4))).tolist()
        for drafter in drafters:
            drafter.observe(own)
            drafter.accept(tokens)


def test_what_the_passes_said_matters() -> None:
    """The other half of law D: a fresh drafter with the whole text does not know it."""
    drafter = LookaheadDrafter(2, 3, 2)
    drafter.begin([5, 1, 2, 3, 1])
    drafter.propose(4, AMPLE)
    drafter.observe([7, 7, 7])
    drafter.accept([2, 1])
    fresh = LookaheadDrafter(2, 3, 2)
    fresh.begin([5, 1, 2, 3, 1, 2, 1])
    assert drafter.propose(4, AMPLE) != fresh.propose(4, AMPLE)


# Law E: through the whole engine, every course of it.


def exactly(
    logits: Logits, sampling: Sampling, recent: Sequence[Token] = (), out: object = None
) -> Distribution:
    """`distribution` in double precision."""
    weights = np.exp(logits.astype(np.float64) / sampling.temperature)
    return Distribution(weights / weights.sum())


def flat(vocab: int, seed: int) -> LogitsOf:
    """Every token is likely everywhere, so that everything can happen."""

    def logits_of(text: Way) -> Logits:
        rng = np.random.default_rng([seed, *text[-2:]])
        return rng.normal(scale=0.7, size=vocab).astype(np.float32)

    return logits_of


def sampled_error(
    drafter: LookaheadDrafter, logits_of: LogitsOf, vocab: int, prompt: list[Token], length: int
) -> tuple[float, int]:
    """How far the law of texts is from the target's, and how many guesses were kept in all courses."""
    kept = 0

    def answer(uniform: Callable[[], float]) -> Way:
        nonlocal kept
        options = DecodeOptions(
            sampling=Sampling(), draft_length=3, max_tokens=length, uniform=uniform
        )
        emitted: list[Token] = []
        for event in decode(roomy(logits_of, vocab), drafter, prompt, options):
            if isinstance(event, FirstToken):
                emitted.append(event.token)
            elif isinstance(event, Round):
                emitted += event.tokens
                kept += event.accepted
        return tuple(emitted)

    found = law(answer)
    assert math.isclose(sum(found.values()), 1, abs_tol=1e-12)
    own = texts(lambda text: exactly(logits_of((*prompt, *text)), Sampling()), vocab, length)
    return distance(found, own), kept


@pytest.mark.parametrize(
    ("vocab", "length", "prompt", "from_text"),
    [(2, 5, [0, 1], False), (2, 5, [0, 1, 1, 0, 0, 1, 0], True), (3, 4, [2, 0, 1, 2, 1, 0], True)],
)
@pytest.mark.parametrize("shape", [(1, 3, 1), (2, 3, 2), (2, 4, 3)])
def test_law_e_the_pool_of_earlier_rounds_leaves_the_law_of_texts_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int, int],
    vocab: int,
    length: int,
    prompt: list[Token],
    from_text: bool,
) -> None:
    monkeypatch.setattr(judge, "distribution", exactly)
    drafter = LookaheadDrafter(*shape, from_text=from_text)
    error, kept = sampled_error(drafter, flat(vocab, 3), vocab, prompt, length)
    assert error < 1e-12
    assert kept > 0


def test_law_e_fails_when_refused_guesses_keep_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control, which also shows that guesses are refused in these courses."""
    monkeypatch.setattr(judge, "distribution", exactly)
    monkeypatch.setattr(verify, "without", forgetful)
    drafter = LookaheadDrafter(2, 3, 2)
    error, _ = sampled_error(drafter, flat(2, 3), 2, [0, 1, 1, 0, 0, 1, 0], 4)
    assert error > 0.01


def forgetful(p: Distribution, token: Token) -> Distribution:
    """A mistake: nothing is taken out."""
    return p
