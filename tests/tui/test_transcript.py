from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.tui.driving import (
    answers,
    drawn,
    make_app,
    ready,
    send,
    settled,
    transcript,
    until,
)
from tests.tui.fake_session import FakeSession, Gate, Step, answer

LONG = "\n\n".join(f"Paragraph {number}." for number in range(60))


def slow_answer(gate: Gate) -> list[Step]:
    whole = answer(LONG, "\n\nA new end.")
    return [*whole[:3], gate, *whole[3:]]


def at_end(pilot: Pilot[None]) -> bool:
    return transcript(pilot).scroll_y == transcript(pilot).max_scroll_y


def reading(pilot: Pilot[None]) -> list[str]:
    """The rows of the transcript, without its scroll bar."""
    return [line[:78].rstrip() for line in drawn(pilot).split("╭")[0].splitlines()[1:]]


async def stream_until_the_gate(pilot: Pilot[None], gate: Gate) -> None:
    await ready(pilot)
    await send(pilot, "go")
    await until(pilot, lambda: gate.reached.is_set() and "Paragraph 59" in drawn(pilot))


async def test_the_end_is_followed_while_the_reader_is_there() -> None:
    gate = Gate()
    async with make_app(FakeSession(slow_answer(gate))).run_test(size=(80, 24)) as pilot:
        await stream_until_the_gate(pilot, gate)
        assert at_end(pilot)
        gate.open()
        await settled(pilot)
        assert at_end(pilot)
        assert "A new end." in drawn(pilot)


@pytest.mark.parametrize("how", ["pageup", "wheel", "ctrl+home"])
async def test_a_reader_who_scrolled_away_stays_where_they_are(how: str) -> None:
    gate = Gate()
    async with make_app(FakeSession(slow_answer(gate))).run_test(size=(80, 24)) as pilot:
        await stream_until_the_gate(pilot, gate)
        if how == "wheel":
            transcript(pilot)._scroll_up_for_pointer(animate=False)
        else:
            await pilot.press(how)
        await pilot.wait_for_animation()
        await pilot.pause()
        assert not at_end(pilot)
        place, picture = transcript(pilot).scroll_y, reading(pilot)
        gate.open()
        await settled(pilot)
        assert transcript(pilot).scroll_y == place
        assert reading(pilot)[:-1] == picture[:-1]
        assert "more below" in reading(pilot)[-1]


async def test_back_at_the_end_it_is_followed_again() -> None:
    gate = Gate()
    async with make_app(FakeSession(slow_answer(gate))).run_test(size=(80, 24)) as pilot:
        await stream_until_the_gate(pilot, gate)
        await pilot.press("pageup")
        await pilot.wait_for_animation()
        assert not at_end(pilot)
        await pilot.press("ctrl+end")
        await pilot.wait_for_animation()
        gate.open()
        await settled(pilot)
        assert "A new end." in drawn(pilot)


async def test_the_last_of_many_notices_is_seen() -> None:
    session = FakeSession()
    session.notices = tuple(f"Notice {number}." for number in range(40))
    async with make_app(session).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        assert "Notice 39." in drawn(pilot)


async def test_sending_goes_to_the_end() -> None:
    session = FakeSession(answer(LONG), answer("short"))
    async with make_app(session).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await send(pilot, "go")
        await settled(pilot)
        await pilot.press("ctrl+home")
        await pilot.wait_for_animation()
        await send(pilot, "on")
        await settled(pilot)
        assert "short" in drawn(pilot)


async def test_a_growing_answer_leaves_the_others_alone() -> None:
    gate = Gate()
    session = FakeSession(answer("first"), [*answer("a")[:-1], gate, *answer("ab")])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "one")
        before = await settled(pilot)
        blocks = list(before.walk_children())
        await send(pilot, "two")
        await until(pilot, gate.reached.is_set)
        gate.open()
        await settled(pilot)
        assert answers(pilot)[0] is before
        assert list(before.walk_children()) == blocks


async def test_a_short_conversation_stands_above_the_prompt() -> None:
    async with make_app(FakeSession(answer("text"))).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await settled(pilot)
        before = drawn(pilot)
        await pilot.press("pageup")
        await pilot.wait_for_animation()
        assert drawn(pilot) == before
