"""Characters of several bytes arrive whole, whatever cuts the answer."""

from __future__ import annotations

import pytest

from edgespec.events import Reason
from edgespec.pair import Pair
from edgespec.reply import ReplyEvent, StatsChanged
from edgespec.session import Session
from tests.real import rig
from tests.real.conftest import OpenPair
from tests.real.rig import METHODS, Step, Told

PROMPT = "Repeat after me, exactly: 🎉 🇩🇪 👨‍👩‍👧 你好世界 é"
TOKENS = 24
BROKEN = "\ufffd"

_steps: list[Step] = []


@pytest.fixture
def steps(smollm2: OpenPair) -> list[Step]:
    if not _steps:
        pair = smollm2("none")
        _steps.extend(rig.oracle(pair, rig.encode(pair, rig.question(PROMPT)), TOKENS))
    return _steps


@pytest.fixture(params=METHODS)
def pair(request: pytest.FixtureRequest, smollm2: OpenPair) -> Pair:
    return smollm2(request.param)


def is_what_the_tokens_say(session: Session, pair: Pair, told: Told) -> None:
    """Stream, last event, conversation and the bytes of the tokens all say the same."""
    stored = session.messages[-1]
    tokenizer = pair.target.weights.tokenizer
    raw = b"".join(tokenizer.piece(token) for token in stored.tokens)
    assert told.text == told.end.text == stored.content == raw.decode("utf-8", "replace")
    assert all(delta for delta in told.deltas)


def test_emoji_flags_and_other_scripts(pair: Pair, steps: list[Step]) -> None:
    session = rig.chat(pair, length=8, max_tokens=TOKENS)
    told = rig.listen(session.reply(PROMPT))
    is_what_the_tokens_say(session, pair, told)
    rig.compare_text(told.text, rig.said(steps), steps)
    assert BROKEN not in told.text.rstrip(BROKEN)
    assert any(ord(letter) > 0xFFFF for letter in told.text)


@pytest.mark.parametrize("method", ["none", "self"])
def test_the_budget_cuts_a_character(smollm2: OpenPair, steps: list[Step], method: str) -> None:
    inside = [n for n in range(1, 14) if rig.said(steps[:n]).endswith(BROKEN)]
    assert inside, "no budget cuts a character: the test tests nothing"
    pair = smollm2(method)
    for budget in inside[:3]:
        session = rig.chat(pair, length=8, max_tokens=budget)
        told = rig.listen(session.reply(PROMPT))
        is_what_the_tokens_say(session, pair, told)
        assert told.end.reason is Reason.LENGTH
        assert all(BROKEN not in delta for delta in told.deltas[:-1])
        rig.compare_text(told.text, rig.said(steps[:budget]), steps)
    again = rig.listen(session.reply("Thanks!"))
    is_what_the_tokens_say(session, pair, again)


def test_a_cancelled_answer_ends_in_the_middle_of_a_character(
    smollm2: OpenPair, steps: list[Step]
) -> None:
    cut = next(n for n in range(2, TOKENS) if rig.said(steps[:n]).endswith(BROKEN))
    pair = smollm2("none")
    session = rig.chat(pair)

    def watch(event: ReplyEvent) -> None:
        if isinstance(event, StatsChanged) and event.stats.tokens == cut:
            session.cancel()

    told = rig.listen(session.reply(PROMPT), watch)
    assert told.end.reason is Reason.CANCELLED
    is_what_the_tokens_say(session, pair, told)
    assert told.text == rig.said(steps[:cut])


@pytest.mark.parametrize("budget", [1, 3, 40, 41, 42])
@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_text(tiny: OpenPair, method: str, budget: int) -> None:
    pair = tiny("bytes", method, context=256, length=8)
    session = rig.chat(pair, length=8, max_tokens=budget, seed=budget, sampling=rig.WARM)
    told = rig.listen(session.reply("go"))
    is_what_the_tokens_say(session, pair, told)
    if budget > 3:
        assert BROKEN in told.text


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_text_cancelled_anywhere(tiny: OpenPair, method: str) -> None:
    pair = tiny("bytes", method, context=512, length=8)
    cancelled = 0
    for after in range(1, 20):
        session = rig.chat(pair, length=8, seed=after, sampling=rig.WARM)

        def watch(event: ReplyEvent, session: Session = session, after: int = after) -> None:
            if isinstance(event, StatsChanged) and event.stats.tokens >= after:
                session.cancel()

        told = rig.listen(session.reply("go"), watch)
        if told.end.reason is not Reason.END:  # one token of 280 is the end
            assert told.end.reason is Reason.CANCELLED
            assert told.end.stats.tokens >= after
            cancelled += 1
        assert len(session.messages[-1].tokens) == told.end.stats.tokens
        is_what_the_tokens_say(session, pair, told)
    assert cancelled > 10
