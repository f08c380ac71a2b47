from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from tests.tui.driving import drawn, make_app, prompt, questions, ready, send, settled, until
from tests.tui.fake_session import FakeSession, Gate, answer

PASTE = "\n".join(f"line {number} [/with] some more words in it" for number in range(1300))


async def paste(pilot: Pilot[None], text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_line_break_does_not_send(key: str) -> None:
    session = FakeSession(answer("x"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await pilot.press("a", key, "b")
        assert prompt(pilot).text == "a\nb"
        assert session.asked == []
        await pilot.press("enter")
        await settled(pilot)
    assert session.asked == ["a\nb"]


async def test_keys_that_come_at_once_keep_their_order() -> None:
    session = FakeSession(answer("x"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        for key in ("o", "n", "e", "ctrl+j", "t", "w", "o", "enter", "z"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await settled(pilot)
        assert prompt(pilot).text == "z"
    assert session.asked == ["one\ntwo"]


async def test_a_second_message_typed_at_once_is_kept() -> None:
    gate = Gate()
    session = FakeSession([gate, *answer("x")])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        for key in ("a", "enter", "b", "enter", "c"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: gate.reached.is_set() and prompt(pilot).text == "bc")
        gate.open()
        await settled(pilot)
    assert session.asked == ["a"]


async def test_the_prompt_grows_to_eight_lines() -> None:
    async with make_app(FakeSession()).run_test() as pilot:
        await ready(pilot)
        heights = []
        for _ in range(10):
            heights.append(prompt(pilot).content_size.height)
            await pilot.press("ctrl+j")
        assert heights == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]
        prompt(pilot).load_text("")
        await pilot.pause()
        assert prompt(pilot).content_size.height == 1


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
async def test_a_large_paste_goes_in_whole_and_is_not_sent(line_end: str) -> None:
    session = FakeSession(answer("x"))
    assert len(PASTE) > 50_000
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await pilot.press("a")
        await paste(pilot, PASTE.replace("\n", line_end))
        await pilot.press("b")
        assert prompt(pilot).text == f"a{PASTE}b"
        assert session.asked == []
        assert prompt(pilot).content_size.height == 8
        await pilot.press("enter")
        await settled(pilot)
        assert questions(pilot) == [f"a{PASTE}b"]
    assert session.asked == [f"a{PASTE}b"]


async def test_up_at_the_start_and_down_at_the_end_walk_the_history() -> None:
    async with make_app(FakeSession(answer("x"), answer("y"))).run_test() as pilot:
        await ready(pilot)
        await pilot.press("up")
        assert prompt(pilot).text == ""
        for text in ("first", "second\nlines"):
            await send(pilot, text)
            await settled(pilot)
        await pilot.press("d", "r", "a", "f", "t", "up")
        assert prompt(pilot).text == "draft", "the cursor was not at the start"
        await pilot.press("up")
        assert prompt(pilot).text == "second\nlines"
        await pilot.press("up")
        assert prompt(pilot).text == "first"
        await pilot.press("up")
        assert prompt(pilot).text == "first"
        await pilot.press("down")
        assert prompt(pilot).text == "second\nlines"
        await pilot.press("down")
        assert prompt(pilot).text == "draft"
        await pilot.press("down")
        assert prompt(pilot).text == "draft"


async def test_a_changed_entry_is_moved_in_like_any_text() -> None:
    async with make_app(FakeSession(answer("x"))).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "one\ntwo")
        await settled(pilot)
        await pilot.press("up", "a", "down", "b")
        assert prompt(pilot).text == "aone\ntbwo"
        await pilot.press("up", "up", "up")
        assert prompt(pilot).text == "one\ntwo"


async def test_a_changed_entry_is_not_lost_by_walking_on() -> None:
    async with make_app(FakeSession(answer("x"))).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "one")
        await settled(pilot)
        await pilot.press("up", "a", "home", "up")
        assert prompt(pilot).text == "one"
        await pilot.press("down")
        assert prompt(pilot).text == "aone"
        await pilot.press("end", "down")
        assert prompt(pilot).text == "aone"


async def test_a_repeated_message_is_one_entry() -> None:
    async with make_app(FakeSession(answer("1"), answer("2"), answer("3"))).run_test() as pilot:
        await ready(pilot)
        for text in ("a", "b", "b"):
            await send(pilot, text)
            await settled(pilot)
        await pilot.press("up", "up")
        assert prompt(pilot).text == "a"


async def test_the_prompt_keeps_the_keyboard() -> None:
    async with make_app(FakeSession(answer("x"))).run_test() as pilot:
        await ready(pilot)
        await pilot.click("#transcript")
        await pilot.press("tab", "h", "i")
        await until(pilot, lambda: "hi" in drawn(pilot))
        assert prompt(pilot).text.strip() == "hi"
