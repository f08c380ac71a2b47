"""An answer can be stopped anywhere, and the chat goes on as if the rest had never been computed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psutil
import pytest

from edgespec.events import Prefilled, Reason
from edgespec.pair import Pair
from edgespec.reply import ReplyEvent, StatsChanged
from edgespec.session import Session
from tests.real import rig
from tests.real.conftest import OpenPair
from tests.real.rig import METHODS, Told

COUNT = "Count from 1 to 30, separated by commas."
PASTE = "Some words that say little but are many. " * 170
LIMIT = 30.0
"""Seconds; only a cancel that does nothing takes so long."""


def cancel_at(session: Session, tokens: int) -> Callable[[ReplyEvent], None]:
    def watch(event: ReplyEvent) -> None:
        if isinstance(event, StatsChanged) and event.stats.tokens >= tokens:
            session.cancel()

    return watch


def next_is_exact(session: Session, pair: Pair, plain: Pair, text: str, count: int = 10) -> Told:
    """The next answer is what a new process says to the same messages; only what is new is computed."""
    cached = list(pair.target.model.tokens)
    told = rig.listen(session.reply(text), cancel_at(session, count))
    prompt = rig.encode(pair, session.messages[:-1])
    steps = rig.oracle(plain, prompt, max(told.end.stats.tokens, count))
    stored = session.messages[-1].tokens
    rig.compare(stored, steps[: len(stored)])
    shared = 0
    while shared < min(len(cached), len(prompt) - 1) and cached[shared] == prompt[shared]:
        shared += 1
    assert told.prefilled[0].reused == told.end.stats.reused_tokens == shared
    return told


@pytest.mark.parametrize("method", METHODS)
def test_before_anything_is_computed(smollm2: OpenPair, method: str) -> None:
    pair = smollm2(method)
    session = rig.chat(pair, length=8, max_tokens=12)
    events = session.reply("hello")
    session.cancel()
    told = rig.listen(events)
    assert (told.end.reason, told.text, told.end.stats.tokens) == (Reason.CANCELLED, "", 0)
    assert session.messages == tuple(rig.question("hello"))
    next_is_exact(session, pair, smollm2("none"), "Write a Python function that adds two numbers.")


@pytest.mark.parametrize("method", METHODS)
def test_after_three_tokens_and_inside_a_block(smollm2: OpenPair, method: str) -> None:
    pair = smollm2(method)
    session = rig.chat(pair, length=8, max_tokens=24)
    told = rig.listen(session.reply(COUNT), cancel_at(session, 3))
    assert told.end.reason is Reason.CANCELLED
    assert 3 <= told.end.stats.tokens <= 3 + 8
    stored = session.messages[-1]
    assert (stored.content, stored.complete) == (told.text, False)
    assert len(stored.tokens) == told.end.stats.tokens
    used = session.context_used
    after = next_is_exact(session, pair, smollm2("none"), "And backwards?")
    assert after.end.stats.reused_tokens == used, "the cancelled answer was computed again"


@pytest.mark.parametrize("method", ["none", "self"])
def test_in_the_midst_of_a_prefill_from_another_thread(smollm2: OpenPair, method: str) -> None:
    pair = smollm2(method)
    session = rig.chat(pair, length=8, max_tokens=12)
    timer = threading.Timer(0.02, session.cancel)

    def watch(event: ReplyEvent) -> None:
        if isinstance(event, Prefilled) and event.done == 0:
            timer.start()

    told = rig.listen(session.reply(PASTE), watch)
    timer.join()
    assert (told.end.reason, told.text) == (Reason.CANCELLED, "")
    assert told.prefilled[0].total > 1400
    assert told.prefilled[-1].done < told.prefilled[0].total
    assert session.context_used == told.prefilled[-1].done, "only whole pieces stay"
    told = rig.listen(session.edit(0, COUNT))
    steps = rig.oracle(smollm2("none"), rig.encode(pair, rig.question(COUNT)), 12)
    rig.compare(session.messages[-1].tokens, steps)


def test_while_the_draft_reads_the_prompt(smollm2: OpenPair) -> None:
    """It reads all of a prompt of one piece before the target does."""
    pair = smollm2("self")
    assert pair.draft is not None
    session = rig.chat(pair, length=8, max_tokens=12)
    timer = threading.Timer(0.01, session.cancel)

    def watch(event: ReplyEvent) -> None:
        if isinstance(event, Prefilled):
            timer.start()

    told = rig.listen(session.reply(PASTE[:800]), watch)
    timer.join()
    assert told.end.reason is Reason.CANCELLED
    assert len(told.prefilled) == 1
    assert (told.end.stats.tokens, session.context_used) == (0, 0)
    assert len(pair.draft.model.tokens) == 0
    next_is_exact(session, pair, smollm2("none"), "And now?", count=6)


@pytest.mark.parametrize("method", METHODS)
def test_between_the_pieces_of_a_long_prompt(tiny: OpenPair, method: str) -> None:
    pair = tiny("rambler", method)
    session = rig.chat(pair, length=8, max_tokens=12)

    def watch(event: ReplyEvent) -> None:
        if isinstance(event, Prefilled) and event.done:
            session.cancel()

    told = rig.listen(session.reply(PASTE), watch)
    assert (told.end.reason, told.text) == (Reason.CANCELLED, "")
    assert session.context_used == pair.target.model.batch_size
    after = next_is_exact(session, pair, pair, "go on")
    assert after.end.stats.reused_tokens == pair.target.model.batch_size


@pytest.mark.parametrize("method", METHODS)
def test_twenty_times_over(tiny: OpenPair, method: str) -> None:
    pair = tiny("rambler", method)
    session = rig.chat(pair, length=8)
    process = psutil.Process()
    threads = process.num_threads()
    for number in range(20):
        told = rig.listen(session.reply(f"again {number}"), cancel_at(session, number % 5 + 1))
        assert told.end.reason is Reason.CANCELLED
        assert told.end.stats.tokens > number % 5
    assert process.num_threads() <= threads
    session = rig.chat(pair, length=8)
    for number in range(3):
        rig.listen(session.reply(f"again {number}"), cancel_at(session, 3))
    next_is_exact(session, pair, pair, "and again")


def test_a_running_answer_stops_soon_when_another_thread_says_so(smollm2: OpenPair) -> None:
    session = rig.chat(smollm2("self"), length=8)
    begun = threading.Event()
    told: list[Told] = []

    def answer() -> None:
        told.append(rig.listen(session.reply(COUNT), lambda _: begun.set()))

    worker = threading.Thread(target=answer)
    worker.start()
    assert begun.wait(LIMIT)
    session.cancel()
    worker.join(LIMIT)
    assert not worker.is_alive()
    assert told[0].end.reason is Reason.CANCELLED


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_that_is_given_up_leaves_a_session_to_go_on_with(
    smollm2: OpenPair, method: str
) -> None:
    pair = smollm2(method)
    session = rig.chat(pair, length=8, max_tokens=24)
    events = session.reply(COUNT)
    told = Told()
    while not told.counts or told.counts[-1] < 3:
        told.take(next(events))
    events.close()  # type: ignore[attr-defined]
    assert session.messages[-1].content == told.text
    assert not session.messages[-1].complete
    next_is_exact(session, pair, smollm2("none"), "And backwards?", count=6)


@pytest.mark.parametrize("method", METHODS)
def test_regenerate_and_edit_compute_only_what_is_new(smollm2: OpenPair, method: str) -> None:
    pair = smollm2(method)
    session = rig.chat(pair, length=8, max_tokens=8)
    first = rig.listen(session.reply(COUNT))
    again = rig.listen(session.regenerate())
    assert again.text == first.text
    assert again.end.stats.reused_tokens == again.end.stats.prompt_tokens - 1
    assert len(session.messages) == 2
    rig.listen(session.reply("And backwards?"))
    edited = rig.listen(session.edit(2, "And in French?"))
    prompt = rig.encode(pair, session.messages[:-1])
    start = len(rig.encode(pair, session.messages[:2]))
    assert edited.end.stats.prompt_tokens == len(prompt)
    assert edited.end.stats.reused_tokens >= start - 4, "all before the edit was in the cache"
    steps = rig.oracle(smollm2("none"), prompt, 8)
    stored = session.messages[-1].tokens
    rig.compare(stored, steps[: len(stored)])
