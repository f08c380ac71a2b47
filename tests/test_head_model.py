"""Heads in the place of a draft model: laws A to E for a chain, and for the controller over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, CostTable
from edgespec.drafters.base import NOTHING, StateReader
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.head_model import HeadModel
from edgespec.drafters.headed import HeadedDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import Reason, Round
from edgespec.model import Logits, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Sampling, distribution
from tests.chances import distance, law, texts
from tests.fakes import FakeModel, chaotic
from tests.head_fakes import FakeHeads
from tests.test_engine_laws import GREEDY, follow, plainly, run, setting
from tests.test_medusa import policy

LogitsOf = Callable[[tuple[Token, ...]], Logits]


def model_of(logits_of: LogitsOf, vocab: int, scale: float = 0.5, count: int = 4) -> HeadModel:
    return HeadModel(FakeHeads(logits_of, vocab, scale=scale, count=count), vocab)


def chain(logits_of: LogitsOf, vocab: int, scale: float = 0.5) -> HeadedDrafter:
    model = model_of(logits_of, vocab, scale)
    return HeadedDrafter(DraftModelDrafter(model, vocab), model)


def narrow(logits_of: LogitsOf, vocab: int) -> HeadedDrafter:
    model = HeadModel(FakeHeads(logits_of, vocab, known=range(1, vocab, 2)), vocab)
    return HeadedDrafter(DraftModelDrafter(model, vocab), model)


def auto(logits_of: LogitsOf, vocab: int) -> HeadedDrafter:
    """The controller, where drafting is cheap enough to be used."""
    costs = Costs((CostTable(0, {1: 1.0, 2: 1.1, 16: 2.0}, {1: 0.1, 31: 0.1}),))
    clock = iter(range(1_000_000))
    model = model_of(logits_of, vocab, 0.2)
    drafter = DraftModelDrafter(model, vocab)
    own = AutoDrafter(costs, LookupDrafter(min_match=1), drafter, 12, lambda: next(clock) / 2)
    return HeadedDrafter(own, model)


MAKERS = {"chain": chain, "narrow": narrow, "auto": auto}
CASES = [(name, seed) for name in MAKERS for seed in range(20)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_law_a_greedy_text_is_that_of_plain_decoding(name: str, seed: int) -> None:
    vocab, prompt, options = setting(seed)
    logits_of = chaotic(vocab, seed, depth=2)
    emitted, _, _ = run(
        FakeModel(logits_of, vocab), MAKERS[name](logits_of, vocab), prompt, options
    )
    assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options)


@pytest.mark.parametrize(("name", "seed"), CASES)
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0, top_k=3)])
def test_law_b_the_cache_is_exact_after_every_event(
    name: str, seed: int, sampling: Sampling
) -> None:
    vocab, prompt, options = setting(seed)
    uniform = np.random.default_rng(seed).random
    options = replace(options, sampling=sampling, uniform=uniform)
    logits_of = chaotic(vocab, seed, depth=2)
    for stop_after in (0, 3, 10_000):
        target, drafter = FakeModel(logits_of, vocab), MAKERS[name](logits_of, vocab)
        follow(target, prompt, decode(target, drafter, prompt, options), stop_after)


@pytest.mark.parametrize("seed", range(20))
def test_law_c_heads_that_know_the_target_are_accepted_in_full(seed: int) -> None:
    vocab, prompt, _ = setting(seed)
    logits_of = chaotic(vocab, seed, depth=2)
    options = DecodeOptions(sampling=GREEDY, draft_length=6, max_tokens=41)
    _, _, events = run(FakeModel(logits_of, vocab), chain(logits_of, vocab, 0), prompt, options)
    rounds = [event for event in events if isinstance(event, Round)]
    assert [len(event.tokens) for event in rounds] == [5] * 8


@pytest.mark.parametrize("seed", range(8))
def test_law_c_of_drawn_tokens(seed: int) -> None:
    """Where the last tokens do not matter, heads know the distribution of every token to come."""
    fixed = np.random.default_rng(seed).normal(size=7).astype(np.float32)
    options = DecodeOptions(
        Sampling(temperature=0.8, top_p=0.9),
        draft_length=4,
        max_tokens=41,
        uniform=np.random.default_rng(seed).random,
    )
    target = FakeModel(lambda text: fixed, 7)
    _, _, events = run(target, chain(lambda text: fixed, 7, 0), [1, 2], options)
    rounds = [event for event in events if isinstance(event, Round)]
    assert [len(event.tokens) for event in rounds] == [5] * 8


def told(drafter: HeadedDrafter, text: Sequence[Token]) -> None:
    before = (-1, -1, *text)[-3:-1]
    drafter.read_states(len(text) - 1, np.array([(len(text) - 1, *before)], np.float32))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0, repeat_penalty=1.3)])
def test_law_d_a_drafter_fed_step_by_step_proposes_what_a_fresh_one_does(
    seed: int, sampling: Sampling
) -> None:
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(3, 8))
    logits_of = chaotic(vocab, seed, depth=2)
    text: list[Token] = rng.integers(0, vocab, int(rng.integers(2, 30))).tolist()
    old = chain(logits_of, vocab)
    old.begin(text)
    for step in range(12):
        limit = int(rng.integers(1, 9))
        fresh = chain(logits_of, vocab)
        fresh.begin(text)
        told(old, text)
        told(fresh, text)
        noise = SharedNoise(seed) if step % 2 and not sampling.greedy else None
        asked = [policy(seed + step, sampling, noise=noise) for _ in range(2)]
        draft = old.propose(limit, asked[0])
        assert draft.tokens == fresh.propose(limit, asked[1]).tokens
        assert len(draft.tokens) == min(limit, 4)
        new = [*draft.tokens[: int(rng.integers(0, 4))], int(rng.integers(0, vocab))]
        old.accept(new)
        text += new
        if step == 6:  # a new text that shares only its beginning
            text = [*text[: len(text) // 2], 0, 1]
            old.begin(text)


def test_law_e_through_the_engine() -> None:
    """Whole answers by enumeration, to the last bits of float32; tokens are drawn from the heads."""
    logits_of = chaotic(3, 5, depth=2)
    sampling = Sampling(temperature=0.7)

    def answer(uniform: Callable[[], float]) -> tuple[Token, ...]:
        options = DecodeOptions(sampling, draft_length=2, max_tokens=3, uniform=uniform)
        return tuple(run(FakeModel(logits_of, 3), chain(logits_of, 3), [0, 1], options)[0])

    wanted = texts(lambda text: distribution(logits_of((0, 1, *text)), sampling), 3, 3)
    assert distance(law(answer), wanted) < 1e-6


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("fail_at", [1, 20, 40, 50, 60])
def test_an_interrupted_pass_ends_the_answer_with_an_exact_cache(name: str, fail_at: int) -> None:
    logits_of = chaotic(5, 5, depth=2)
    target, drafter = FakeModel(logits_of, 5), MAKERS[name](logits_of, 5)
    prompt: list[Token] = [1, 2, 3, 4, 0] * 8
    target.fail_at = fail_at
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=60)
    emitted, reason, _ = run(target, drafter, prompt, options)
    assert reason is Reason.CANCELLED
    whole = plainly(FakeModel(logits_of, 5), prompt, options)
    assert emitted == whole[: len(emitted)]
    target.fail_at = None
    assert run(target, drafter, prompt, options)[0] == whole


def test_it_guesses_only_from_the_state_that_the_last_token_was_said_from() -> None:
    drafter = chain(chaotic(5, 1, depth=2), 5)
    assert isinstance(drafter, StateReader)
    assert drafter.states_held([1, 2, 3]) == 3
    asked = policy(0)
    drafter.begin([1, 2, 3])
    assert drafter.propose(4, asked) == NOTHING
    told(drafter, [1, 2, 3])
    assert len(drafter.propose(9, asked).tokens) == 4
    drafter.accept([4])
    assert drafter.propose(4, asked) == NOTHING
    drafter.read_states(3, np.empty((0, 3), np.float32))
    assert drafter.propose(4, asked) == NOTHING


def test_each_step_asks_one_head_and_reading_asks_none() -> None:
    heads = FakeHeads(chaotic(5, 1, depth=2), 5)
    model = HeadModel(heads, 5)
    inner = DraftModelDrafter(model, 5)
    drafter = HeadedDrafter(inner, model)
    drafter.begin([1, 2, 3] * 20)
    assert inner.unread == 1
    for _ in range(50):
        drafter.accept([1, 2])
    assert inner.unread == 1
    assert heads.asked == []
    told(drafter, [*[1, 2, 3] * 20, *[1, 2] * 50])
    drafter.propose(3, policy(0))
    assert heads.asked == [1, 1, 1]


def test_tokens_that_the_heads_do_not_know_are_never_drafted() -> None:
    heads = FakeHeads(chaotic(6, 1, depth=2), 6, known=[1, 4])
    model = HeadModel(heads, 6)
    drafter = HeadedDrafter(DraftModelDrafter(model, 6), model)
    drafter.begin([1, 2, 3])
    told(drafter, [1, 2, 3])
    for seed in range(20):
        for sampling in (GREEDY, Sampling(temperature=3.0)):
            assert set(drafter.propose(4, policy(seed, sampling)).tokens) <= {1, 4}


def test_beyond_the_last_head_nothing_is_said() -> None:
    model = model_of(chaotic(5, 1, depth=2), 5, count=2)
    model.begin([1, 2])
    with pytest.raises(ValueError, match="no head sees"):
        model.extend([2], rows=1)
    assert model.tokens == [1]
    model.read_states(1, np.array([[1, -1, 1]], np.float32))
    assert model.capacity == 3
    model.extend([2], rows=1)
    model.extend([0], rows=1)
    with pytest.raises(ValueError, match="no head sees"):
        model.extend([0], rows=1)


def test_the_controller_drafts_with_heads() -> None:
    """The laws above would hold if it never did. Until the text repeats itself, there is nothing else."""
    options = DecodeOptions(sampling=GREEDY, draft_length=12, max_tokens=80)
    for seed in range(8):
        logits_of = chaotic(8, seed, depth=2)
        _, _, events = run(FakeModel(logits_of, 8), auto(logits_of, 8), [1, 2], options)
        rounds = [event for event in events if isinstance(event, Round)]
        assert all(event.source.startswith("draft") for event in rounds[:3])
        assert sum(event.accepted for event in rounds[:3]) > 3


def test_what_was_learnt_is_forgotten_by_whoever_learnt_it() -> None:
    drafter = auto(chaotic(8, 2, depth=2), 8)
    seen: list[str] = []
    drafter._drafter.forget = lambda: seen.append("forgotten")  # type: ignore[attr-defined]
    drafter.forget()
    assert seen == ["forgotten"]
    chain(chaotic(8, 2, depth=2), 8).forget()
