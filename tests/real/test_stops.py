"""A stop string ends an answer at the same place whether or not it came in an accepted block."""

from __future__ import annotations

import pytest

from edgespec.events import Reason
from edgespec.pair import Pair
from tests.real import rig
from tests.real.conftest import OpenPair
from tests.real.rig import METHODS, Step, Told

PROMPT = "Count from 1 to 30, separated by commas."
LENGTH = 16

_steps: list[Step] = []


def expected(pair: Pair) -> list[Step]:
    if not _steps:
        _steps.extend(rig.oracle(pair, rig.encode(pair, rig.question(PROMPT)), 34))
    return _steps


def completes(stop: str, steps: list[Step]) -> int:
    """Tokens after which `stop` is in the text."""
    return next(n for n in range(1, len(steps) + 1) if stop in rig.said(steps[:n]))


def ends_at(steps: list[Step], stop: str, told: Told, count: int) -> None:
    """The answer ends before the stop, which token `count` completed."""
    text = rig.said(steps)
    if not rig.compare_text(told.text, text[: text.index(stop)], steps):
        return
    assert (told.end.reason, told.end.stats.tokens) == (Reason.STOP, count)
    assert told.counts[-1] == count


@pytest.fixture(params=METHODS)
def pair(request: pytest.FixtureRequest, smollm2: OpenPair) -> Pair:
    return smollm2(request.param)


def stop_across_tokens(steps: list[Step]) -> str:
    """The end of one token and the beginning of the next, for the first time in the text."""
    for n in range(8, len(steps)):
        stop = (steps[n - 1].piece + steps[n].piece).decode()
        if completes(stop, steps) == n + 1 and (n + 1) % (LENGTH + 1) not in {0, 1}:
            return stop
    raise AssertionError("the model says nothing that could be a stop")


def test_a_stop_inside_a_block_and_across_two_tokens(pair: Pair, smollm2: OpenPair) -> None:
    steps = expected(smollm2("none"))
    stop = stop_across_tokens(steps)
    session = rig.chat(pair, length=LENGTH, stop=(stop,), max_tokens=len(steps))
    told = rig.listen(session.reply(PROMPT))
    ends_at(steps, stop, told, completes(stop, steps))
    assert session.messages[-1].content == told.text
    assert stop not in told.text
    assert session.messages[-1].complete


def test_the_longest_stop_and_the_first_of_several(pair: Pair, smollm2: OpenPair) -> None:
    steps = expected(smollm2("none"))
    early = stop_across_tokens(steps)
    late = rig.said(steps)[-4:]
    session = rig.chat(pair, length=LENGTH, stop=(late, early), max_tokens=len(steps))
    ends_at(steps, early, rig.listen(session.reply(PROMPT)), completes(early, steps))


@pytest.mark.parametrize("spare", [0, 1, 3])
def test_a_budget_that_ends_in_the_same_block_after_the_stop(
    pair: Pair, smollm2: OpenPair, spare: int
) -> None:
    steps = expected(smollm2("none"))
    stop = stop_across_tokens(steps)
    count = completes(stop, steps)
    session = rig.chat(pair, length=LENGTH, stop=(stop,), max_tokens=count + spare)
    ends_at(steps, stop, rig.listen(session.reply(PROMPT)), count)


def test_a_budget_that_ends_inside_the_stop_shows_its_beginning(
    pair: Pair, smollm2: OpenPair
) -> None:
    steps = expected(smollm2("none"))
    stop = stop_across_tokens(steps)
    count = completes(stop, steps) - 1
    session = rig.chat(pair, length=LENGTH, stop=(stop,), max_tokens=count)
    told = rig.listen(session.reply(PROMPT))
    if rig.compare_text(told.text, rig.said(steps[:count]), steps):
        assert (told.end.reason, told.end.stats.tokens) == (Reason.LENGTH, count)
        assert session.messages[-1].content == told.text


def test_the_chat_goes_on_after_a_stop(pair: Pair, smollm2: OpenPair) -> None:
    """What the model computed beyond the stop is in the cache, and must not be in the next prompt."""
    stop = stop_across_tokens(expected(smollm2("none")))
    session = rig.chat(pair, length=LENGTH, stop=(stop,), max_tokens=34)
    rig.listen(session.reply(PROMPT))
    told = rig.listen(session.reply("And now?"))
    prompt = rig.encode(pair, session.messages[:3])
    steps = rig.oracle(smollm2("none"), prompt, 34)
    text = rig.said(steps).split(stop, maxsplit=1)[0]
    rig.compare_text(told.text, text, steps)
