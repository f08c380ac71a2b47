"""Laws A to D: greedy text, the cache, self-drafting, and drafters that do not drift.

A wrong drafter cannot change the text, so laws A and B do not see it; C and D do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from edgespec.drafters.base import Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import ContextFullError
from edgespec.events import DecodeEvent, Finished, FirstToken, Prefilled, Reason, Round
from edgespec.model import Token
from edgespec.sampling import Sampling
from tests.fakes import DRAFTERS, FakeModel, Scripted, chaotic, self_draft

GREEDY = Sampling(temperature=0)
CASES = [(name, seed) for name in DRAFTERS for seed in range(40)]


def tokens_of(event: DecodeEvent) -> tuple[Token, ...]:
    match event:
        case FirstToken(token=token):
            return (token,)
        case Round(tokens=tokens):
            return tokens
        case Prefilled() | Finished():
            return ()


def run(
    target: FakeModel, drafter: object, prompt: list[Token], options: DecodeOptions
) -> tuple[list[Token], Reason, list[DecodeEvent]]:
    events = list(decode(target, drafter, prompt, options))  # type: ignore[arg-type]
    emitted = [token for event in events for token in tokens_of(event)]
    assert isinstance(events[-1], Finished)
    return emitted, events[-1].reason, events


def setting(seed: int) -> tuple[int, list[Token], DecodeOptions]:
    """A random vocabulary, prompt, draft length, budget and set of end tokens."""
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(2, 12))
    prompt = rng.integers(0, vocab, int(rng.integers(1, 60))).tolist()
    options = DecodeOptions(
        sampling=GREEDY,
        draft_length=int(rng.integers(0, 12)),
        max_tokens=int(rng.integers(1, 60)),
        end_tokens=frozenset(rng.integers(0, vocab * 4, 1).tolist()),
    )
    return vocab, prompt, options


def plainly(target: FakeModel, prompt: list[Token], options: DecodeOptions) -> list[Token]:
    """Decoding written down as it is defined, without the engine."""
    text = list(prompt)
    while len(text) - len(prompt) < (options.max_tokens or 0):
        target.truncate(0)
        logits = [target.extend(text[i : i + 16], 1) for i in range(0, len(text), 16)][-1]
        text.append(int(logits[0].argmax()))
        if text[-1] in options.end_tokens:
            break
    return text[len(prompt) :]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_law_a_greedy_text_is_that_of_plain_decoding(name: str, seed: int) -> None:
    vocab, prompt, options = setting(seed)
    logits_of = chaotic(vocab, seed)
    emitted, reason, _ = run(
        FakeModel(logits_of, vocab), DRAFTERS[name](logits_of, vocab), prompt, options
    )
    assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options)
    ended = emitted[-1] in options.end_tokens
    assert reason is (Reason.END if ended else Reason.LENGTH)


def test_laws_a_and_b_die_when_refused_tokens_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without rollback the text is another one, and so is the cache."""
    logits_of = chaotic(6, 3)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=30)
    plain = plainly(FakeModel(logits_of, 6), [1, 2], options)
    monkeypatch.setattr(FakeModel, "truncate", lambda self, length: None)
    target = FakeModel(logits_of, 6)
    emitted, _, _ = run(target, Scripted(lambda text, limit: [0] * limit), [1, 2], options)
    assert emitted != plain
    assert list(target.tokens) != [1, 2, *emitted[:-1]]


def follow(
    target: FakeModel, prompt: list[Token], steps: Iterator[DecodeEvent], stop_after: int
) -> None:
    """Check law B after each of the first `stop_after` events, close, and check again."""
    emitted: list[Token] = []
    for number, event in enumerate(steps):
        emitted += tokens_of(event)
        if isinstance(event, Prefilled):
            assert list(target.tokens) == prompt[: event.done]
        elif emitted:
            assert list(target.tokens) == prompt + emitted[:-1]
        if number == stop_after:
            break
    before = list(target.tokens)
    steps.close()  # type: ignore[attr-defined]
    assert list(target.tokens) == before


@pytest.mark.parametrize(("name", "seed"), CASES)
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0, top_k=3)])
def test_law_b_the_cache_is_exact_after_every_event(
    name: str, seed: int, sampling: Sampling
) -> None:
    vocab, prompt, options = setting(seed)
    options = DecodeOptions(
        sampling=sampling,
        draft_length=options.draft_length,
        max_tokens=options.max_tokens,
        end_tokens=options.end_tokens,
        uniform=np.random.default_rng(seed).random,
    )
    logits_of = chaotic(vocab, seed)
    for stop_after in (0, 1, 3, 6, 10_000):
        target = FakeModel(logits_of, vocab)
        drafter = DRAFTERS[name](logits_of, vocab)
        follow(target, prompt, decode(target, drafter, prompt, options), stop_after)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.8)])
def test_law_c_the_target_as_its_own_draft_is_accepted_in_full(
    seed: int, sampling: Sampling
) -> None:
    vocab, prompt, _ = setting(seed)
    logits_of = chaotic(vocab, seed)
    options = DecodeOptions(
        sampling=sampling,
        draft_length=5,
        max_tokens=40,
        uniform=np.random.default_rng(seed).random,
    )
    drafter = self_draft(logits_of, vocab)
    _, _, events = run(FakeModel(logits_of, vocab), drafter, prompt, options)
    rounds = [event for event in events if isinstance(event, Round)]
    assert rounds
    assert all(event.accepted == event.tested == event.proposed for event in rounds)
    assert rounds[0].proposed == 5


# What the controller proposes depends on times and on what it has learnt, by design.
@pytest.mark.parametrize("name", [name for name in DRAFTERS if name != "auto"])
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("draw", [False, True])
def test_law_d_a_drafter_fed_step_by_step_proposes_what_a_fresh_one_does(
    name: str, seed: int, draw: bool
) -> None:
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(2, 8))
    logits_of = chaotic(vocab, seed)
    text: list[Token] = rng.integers(0, vocab, int(rng.integers(1, 30))).tolist()
    old = DRAFTERS[name](logits_of, vocab)
    old.begin(text)
    for step in range(12):
        limit = int(rng.integers(1, 9))
        fresh = DRAFTERS[name](logits_of, vocab)
        fresh.begin(text)
        drafts = [drafter.propose(limit, _policy(seed + step, draw)) for drafter in (old, fresh)]
        assert drafts[0].tokens == drafts[1].tokens
        kept = list(drafts[0].tokens[: int(rng.integers(0, len(drafts[0].tokens) + 1))])
        new = [*kept, int(rng.integers(0, vocab))]
        old.accept(new)
        text += new
        if step == 6:  # a new text that shares only its beginning
            text = [*text[: len(text) // 2], 0, 1]
            old.begin(text)


def _policy(seed: int, draw: bool) -> Policy:
    sampling = Sampling(temperature=1.0) if draw else GREEDY
    return Policy(sampling, np.random.default_rng(seed).random, draw)


def test_law_d_dies_without_the_draft_s_rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a draft that keeps refused tokens drafts after another text."""
    vocab = 6
    logits_of = chaotic(vocab, 1, depth=12)
    drafter = self_draft(logits_of, vocab)
    monkeypatch.setattr(type(drafter), "_cut", lambda self, length: None)
    drafter.begin([1, 2, 3])
    drafted = drafter.propose(4, _policy(0, False)).tokens
    refused = [(token + 1) % vocab for token in drafted] + [0, 1]
    drafter.accept(refused)
    fresh = self_draft(logits_of, vocab)
    fresh.begin([1, 2, 3, *refused])
    assert (
        drafter.propose(4, _policy(0, False)).tokens != fresh.propose(4, _policy(0, False)).tokens
    )


@pytest.mark.parametrize("name", list(DRAFTERS))
@pytest.mark.parametrize("room", [1, 2, 3, 9])
def test_a_full_context_ends_the_answer_and_nothing_else(name: str, room: int) -> None:
    vocab = 5
    logits_of = chaotic(vocab, 4)
    prompt = [1, 2, 3, 4]
    options = DecodeOptions(sampling=GREEDY, draft_length=8)
    target = FakeModel(logits_of, vocab, capacity=len(prompt) + room - 1)
    emitted, reason, _ = run(target, DRAFTERS[name](logits_of, vocab), prompt, options)
    assert reason is Reason.CONTEXT
    assert len(emitted) == room
    assert list(target.tokens) == prompt + emitted[:-1]


@pytest.mark.parametrize("prompt", [[], [0] * 9])
def test_a_prompt_that_does_not_fit_is_refused(prompt: list[Token]) -> None:
    target = FakeModel(chaotic(4, 0), 4, capacity=8)
    with pytest.raises(ContextFullError, match="8"):
        list(decode(target, DRAFTERS["none"](chaotic(4, 0), 4), prompt, DecodeOptions()))


@pytest.mark.parametrize("draft_room", [1, 2, 3, 4, 12, 20])
def test_a_draft_with_a_smaller_context_stops_drafting_and_the_text_goes_on(
    draft_room: int,
) -> None:
    vocab = 5
    logits_of = chaotic(vocab, 8)
    prompt = [1, 2, 3]
    options = DecodeOptions(sampling=GREEDY, draft_length=8, max_tokens=40)
    drafter = DraftModelDrafter(FakeModel(logits_of, vocab, capacity=draft_room), vocab)
    emitted, reason, events = run(FakeModel(logits_of, vocab), drafter, prompt, options)
    assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options)
    assert reason is Reason.LENGTH
    assert isinstance(events[-2], Round)
    assert events[-2].proposed == 0


@pytest.mark.parametrize("name", list(DRAFTERS))
@pytest.mark.parametrize("fail_at", [1, 20, 40, 50, 60])
def test_an_interrupted_pass_ends_the_answer_with_an_exact_cache(name: str, fail_at: int) -> None:
    vocab = 5
    logits_of = chaotic(vocab, 5)
    prompt: list[Token] = [1, 2, 3, 4, 0] * 8
    target = FakeModel(logits_of, vocab)
    target.fail_at = fail_at
    drafter = DRAFTERS[name](logits_of, vocab)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=60)
    emitted, reason, _ = run(target, drafter, prompt, options)
    assert reason is Reason.CANCELLED
    whole = plainly(FakeModel(logits_of, vocab), prompt, options)
    assert emitted == whole[: len(emitted)]
    target.fail_at = None
    again, _, events = run(target, drafter, prompt, options)
    assert again == whole
    computed = next(event for event in events if isinstance(event, Prefilled))
    assert computed.reused >= min(len(prompt) - 1, len(target.tokens), fail_at // 16 * 16 - 16)


@pytest.mark.parametrize("name", list(DRAFTERS))
def test_asking_to_cancel_is_heard_before_the_next_pass(name: str) -> None:
    vocab = 5
    logits_of = chaotic(vocab, 5)
    heard: list[DecodeEvent] = []
    options = DecodeOptions(
        sampling=GREEDY, draft_length=4, max_tokens=60, cancelled=lambda: len(heard) >= 4
    )
    drafter = DRAFTERS[name](logits_of, vocab)
    heard.extend(decode(FakeModel(logits_of, vocab), drafter, [1, 2], options))
    assert len(heard) == 5
    assert heard[-1] == Finished(Reason.CANCELLED)


def test_a_second_answer_computes_only_what_is_new() -> None:
    vocab = 6
    logits_of = chaotic(vocab, 2)
    target = FakeModel(logits_of, vocab)
    drafter = self_draft(logits_of, vocab)
    options = DecodeOptions(sampling=GREEDY, draft_length=3, max_tokens=10)
    prompt = [1, 2, 3, 4, 5] * 6
    emitted, _, _ = run(target, drafter, prompt, options)
    longer = [*prompt, *emitted, 0, 1, 2]
    before = target.fed
    _, _, events = run(target, drafter, longer, DecodeOptions(sampling=GREEDY, max_tokens=1))
    assert target.fed - before == 4  # the last token of the answer, and three new ones
    assert next(e for e in events if isinstance(e, Prefilled)).reused == len(longer) - 4


def test_a_memory_that_refuses_to_roll_back_is_filled_again() -> None:
    vocab = 6
    logits_of = chaotic(vocab, 2)
    target = FakeModel(logits_of, vocab, refuses=True)
    options = DecodeOptions(sampling=GREEDY, draft_length=0, max_tokens=5)
    none = DRAFTERS["none"](logits_of, vocab)
    run(target, none, [1, 2, 3], options)
    emitted, _, _ = run(target, none, [1, 4, 3], options)
    assert emitted == plainly(FakeModel(logits_of, vocab), [1, 4, 3], options)


@pytest.mark.parametrize("name", list(DRAFTERS))
def test_penalties_count_the_accepted_prefix_of_a_draft(name: str) -> None:
    """Greedy with penalties is another text; a draft must not change it either."""
    sampling = Sampling(
        temperature=0,
        repeat_penalty=1.7,
        presence_penalty=0.4,
        frequency_penalty=0.6,
        penalty_window=6,
    )
    options = DecodeOptions(sampling=sampling, draft_length=5, max_tokens=40)
    for seed in range(20):
        vocab = 5
        logits_of = chaotic(vocab, seed)
        prompt = [1, 2, 3]
        emitted, _, _ = run(
            FakeModel(logits_of, vocab), DRAFTERS[name](logits_of, vocab), prompt, options
        )
        text = list(prompt)
        for _ in range(40):
            counts = np.bincount(text[-6:], minlength=vocab)
            logits = logits_of(tuple(text)).astype(np.float64)
            seen = counts > 0
            logits[seen] = np.where(logits[seen] <= 0, logits[seen] * 1.7, logits[seen] / 1.7)
            text.append(int((logits - counts * 0.6 - seen * 0.4).argmax()))
        assert emitted == text[3:]


def test_a_vocabulary_that_the_draft_pads_never_reaches_the_target() -> None:
    """The draft would love ids 5 to 7, which the target does not have."""
    vocab = 5
    logits_of = chaotic(vocab, 3)

    def padded(text: tuple[Token, ...]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        return np.concatenate([logits_of(text), np.full(3, 100, np.float32)])

    for sampling in (GREEDY, Sampling(temperature=1)):
        options = DecodeOptions(sampling=sampling, draft_length=4, max_tokens=30)
        drafter = DraftModelDrafter(FakeModel(padded, vocab + 3), vocab)
        _, _, events = run(FakeModel(logits_of, vocab), drafter, [1], options)
        assert all(e.accepted == e.proposed for e in events if isinstance(e, Round))


def test_a_token_that_the_draft_does_not_know_stops_drafting() -> None:
    logits_of = chaotic(8, 3)
    drafter = DraftModelDrafter(FakeModel(chaotic(5, 3), 5), 8)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=30)
    emitted, _, _ = run(FakeModel(logits_of, 8), drafter, [7, 6], options)
    assert emitted == plainly(FakeModel(logits_of, 8), [7, 6], options)


@pytest.mark.parametrize("name", list(DRAFTERS))
@pytest.mark.parametrize("seed", range(10))
def test_a_seed_gives_the_same_text_whatever_drafts(name: str, seed: int) -> None:
    vocab, prompt, _ = setting(seed)
    logits_of = chaotic(vocab, seed)

    def text(drafter: str, length: int) -> list[Token]:
        options = DecodeOptions(
            sampling=Sampling(temperature=0.9, top_p=0.95),
            draft_length=length,
            max_tokens=40,
            acceptance="equal",
            uniform=np.random.default_rng(seed).random,
        )
        made = DRAFTERS[drafter](logits_of, vocab)
        return run(FakeModel(logits_of, vocab), made, prompt, options)[0]

    assert text(name, 6) == text("none", 0) == text(name, 2)
