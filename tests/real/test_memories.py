"""Every kind of memory answers as plain decoding does, whatever drafts, turn after turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Prefilled, Reason, Round
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.reply import ReplyEvent, StatsChanged
from tests.real import rig
from tests.tiny_models import KINDS, Kind, tiny_model

COUNT = 48
NEAR, FAR = 0.05, 0.5
"""Noise in the weights of a draft that is often right, and of one that seldom is."""
TEXT = "the sea and the land and the sea and the sun of the land. " * 3

Open = Callable[..., Pair]
DRAFTS = ("lookup", "self", "near", "far")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memories")


def written(folder: Path, kind: Kind, noise: float = 0.0) -> Path:
    path = folder / f"{kind}-{noise}.gguf"
    return path if path.exists() else tiny_model(kind, path, noise=noise)


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    pairs: list[Pair] = []

    def open_pair(target: Kind, draft: str, draft_kind: Kind | None = None) -> Pair:
        kind = draft_kind or target
        noise = {"self": 0.0, "near": NEAR, "far": FAR}
        named = str(written(folder, kind, noise[draft])) if draft in noise else draft
        model = str(written(folder, target))
        pairs.append(Pair.open(rig.load(named, model=model, context=1024, length=12)))
        return pairs[-1]

    yield open_pair
    for pair in pairs:
        pair.close()


def prompt_of(pair: Pair, text: str = TEXT) -> list[Token]:
    return rig.encode(pair, rig.question(text))


def options(pair: Pair, length: int) -> DecodeOptions:
    return DecodeOptions(
        sampling=rig.GREEDY, draft_length=length, max_tokens=COUNT, end_tokens=pair.end_tokens
    )


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_text_is_that_of_plain_decoding_and_the_cache_is_exact(
    opened: Open, kind: Kind, draft: str
) -> None:
    pair = opened(kind, draft)
    prompt = prompt_of(pair)
    steps = rig.oracle(pair, prompt, COUNT)
    for length in (3, 12):
        rig.empty(pair)
        target, emitted, rounds = pair.target.model, [], []
        for event in decode(target, pair.drafter, prompt, options(pair, length)):
            match event:
                case Prefilled():
                    assert list(target.tokens) == prompt[: event.done]
                case FirstToken(token=token):
                    emitted.append(token)
                case Round():
                    emitted += event.tokens
                    rounds.append(event)
                case _:
                    pass
            if emitted:
                assert list(target.tokens) == prompt + emitted[:-1]
        rig.compare(emitted, steps)
        proposed, accepted = (
            sum(getattr(one, n) for one in rounds) for n in ("proposed", "accepted")
        )
        if draft == "self":
            assert accepted > 0.9 * proposed
        if draft == "near":
            assert 0 < accepted < proposed, "neither always right nor always wrong"


@pytest.mark.parametrize(
    ("target", "draft"),
    [("mamba", "llama"), ("llama", "mamba"), ("lfm2", "jamba"), ("gemma3", "qwen35")],
)
def test_target_and_draft_of_different_kinds(opened: Open, target: Kind, draft: Kind) -> None:
    pair = opened(target, "self", draft)
    assert pair.method == "draft"
    assert not any("take back" in text for text in pair.notices)
    prompt = prompt_of(pair)
    steps = rig.oracle(pair, prompt, COUNT)
    rig.compare(rig.drafted(pair, prompt, 5, COUNT), steps)


@pytest.mark.parametrize("stop", [2, 3, 5, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_given_up_leaves_what_it_was_computed_from(
    opened: Open, kind: Kind, stop: int
) -> None:
    pair, other = opened(kind, "near"), opened(kind, "none")
    prompt = prompt_of(pair)
    emitted: list[Token] = []
    steps = decode(pair.target.model, pair.drafter, prompt, options(pair, 5))
    for number, event in enumerate(steps):
        match event:
            case FirstToken(token=token):
                emitted.append(token)
            case Round():
                emitted += event.tokens
            case _:
                pass
        if number == stop:
            break
    steps.close()
    target, fresh = pair.target.model, other.target.model
    assert list(target.tokens) == prompt + emitted[:-1]
    got = target.extend(emitted[-1:], rows=1)[0].copy()
    fresh.truncate(0)
    expected = fresh.extend(prompt + emitted, rows=1)[0]
    assert np.abs(got - expected).max() < 0.02 * np.ptp(expected)


@pytest.mark.parametrize("draft", ["none", "lookup", "near"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_of_two_turns(opened: Open, kind: Kind, draft: str) -> None:
    pair, plain = opened(kind, draft), opened(kind, "none")
    session = rig.chat(pair, length=8, max_tokens=24)
    for text in (TEXT, "and the moon?"):
        cached = list(pair.target.model.tokens)
        told = rig.listen(session.reply(text))
        prompt = rig.encode(pair, session.messages[:-1])
        steps = rig.oracle(plain, prompt, 24)
        rig.compare(session.messages[-1].tokens, steps[: len(session.messages[-1].tokens)])
        shared = next(
            (n for n, (a, b) in enumerate(zip(cached, prompt[:-1], strict=False)) if a != b),
            min(len(cached), len(prompt) - 1),
        )
        if shared == len(cached):
            assert told.end.stats.reused_tokens == shared, "nothing had to be taken back"
    again = rig.listen(session.regenerate())
    rig.compare(session.messages[-1].tokens, steps[: len(session.messages[-1].tokens)])
    assert again.end.stats.reused_tokens <= len(prompt) - 1


@pytest.mark.parametrize("kind", ["mamba", "lfm2", "jamba"])
def test_another_answer_to_a_long_question_reads_nothing_again(opened: Open, kind: Kind) -> None:
    pair = opened(kind, "near")
    session = rig.chat(pair, length=8, max_tokens=24)
    rig.listen(session.reply(TEXT))
    again = rig.listen(session.regenerate())
    assert again.end.stats.reused_tokens == again.end.stats.prompt_tokens - 1
    edited = rig.listen(session.edit(0, "The moon."))
    assert edited.end.stats.reused_tokens < 64


@pytest.mark.parametrize("draft", ["none", "near"])
@pytest.mark.parametrize("kind", ["mamba", "lfm2", "jamba"])
def test_a_cancelled_answer_and_the_next(opened: Open, kind: Kind, draft: str) -> None:
    pair, plain = opened(kind, draft), opened(kind, "none")
    session = rig.chat(pair, length=8)

    def watch(event: ReplyEvent) -> None:
        if isinstance(event, StatsChanged) and event.stats.tokens >= 20:
            session.cancel()

    told = rig.listen(session.reply(TEXT), watch)
    assert told.end.reason is Reason.CANCELLED
    for _ in range(2):
        rig.listen(session.reply("and the moon?"), watch)
        prompt = rig.encode(pair, session.messages[:-1])
        tokens = session.messages[-1].tokens
        rig.compare(tokens, rig.oracle(plain, prompt, len(tokens)))


def test_where_nothing_can_be_taken_back_one_sentence_says_so(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "llama_state_seq_set_data_ext", lambda *_: 0)
    pair = opened("mamba", "near")
    (told,) = [text for text in pair.notices if "take back" in text]
    assert told.endswith("cannot take back tokens, so nothing is drafted for it.")
    assert pair.method == "plain"
    prompt = prompt_of(pair)
    steps = rig.oracle(pair, prompt, COUNT)
    rig.compare(rig.drafted(pair, prompt, 8, COUNT), steps)


@pytest.mark.parametrize("kind", ["mamba", "lfm2", "gemma3"])
def test_auto_measures_and_drafts(folder: Path, kind: Kind) -> None:
    load = rig.load(str(written(folder, kind, NEAR)), model=str(written(folder, kind)), context=512)
    pair = Pair.open(replace(load, draft_length=None))
    try:
        assert pair.method == "auto"
        prompt = prompt_of(pair)
        steps = rig.oracle(pair, prompt, COUNT)
        rig.compare(rig.drafted(pair, prompt, 12, COUNT), steps)
    finally:
        pair.close()
