from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.tui.driving import drawn, make_app, prompt, questions, ready, send, settled, until
from tests.tui.fake_session import FakeSession, Gate, answer
from tests.tui.prompt_host import Host, at_once, paste
from tests.tui.prompt_host import send as send_to
from tui.folding import Written

PASTE = "\n".join(f"line {number} [/with] some more words in it" for number in range(1300))


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
        assert prompt(pilot).content_size.height == 1
        await pilot.press("enter")
        await settled(pilot)
        assert questions(pilot) == [f"a{PASTE}b"]
    assert session.asked == [f"a{PASTE}b"]


async def test_up_and_down_walk_the_history() -> None:
    async with make_app(FakeSession(answer("x"), answer("y"))).run_test() as pilot:
        await ready(pilot)
        await pilot.press("up")
        assert prompt(pilot).text == ""
        for text in ("first", "second\nlines"):
            await send(pilot, text)
            await settled(pilot)
        await pilot.press("d", "r", "a", "f", "t", "left", "up")
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
        await pilot.press("up", "home", "a", "up")
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


async def test_up_in_the_midst_of_several_lines_only_moves() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await send_to(pilot, host, "sent")
        await pilot.press("a", "ctrl+j", "b", "up", "c")
        assert host.prompt.text == "ac\nb"
        await pilot.press("up", "up")
        assert host.prompt.text == "sent"
        await pilot.press("down")
        assert host.prompt.text == "ac\nb"


async def test_walking_turns_round_wherever_it_left_the_cursor() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for text in ("a\nb", "c\nd", "e\nf"):
            await send_to(pilot, host, text)
        await pilot.press("up", "up", "up", "down")
        assert host.prompt.text == "c\nd"
        await pilot.press("up")
        assert host.prompt.text == "a\nb"
        await pilot.press("down", "down")
        assert host.prompt.text == "e\nf"
        await pilot.press("up", "down")
        assert host.prompt.text == "e\nf"


async def test_up_in_a_line_that_is_broken_only_moves() -> None:
    host = Host()
    async with host.run_test(size=(40, 24)) as pilot:
        await send_to(pilot, host, "sent")
        text = "many words that do not fit in this narrow terminal"
        host.prompt.load_text(text)
        host.prompt.move_cursor((0, len(text)))
        await pilot.press("up")
        assert host.prompt.text == text
        await pilot.press("up", "up")
        assert host.prompt.text == "sent"


async def test_ctrl_up_and_ctrl_down_walk_from_anywhere() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for text in ("first\nmessage", "second"):
            await send_to(pilot, host, text)
        host.prompt.load_text("a\ndraft\nhere")
        host.prompt.move_cursor((1, 2))
        await pilot.press("ctrl+up")
        assert host.prompt.text == "second"
        await pilot.press("ctrl+up")
        assert host.prompt.text == "first\nmessage"
        await pilot.press("right", "ctrl+up")
        assert host.prompt.text == "first\nmessage"
        await pilot.press("ctrl+down", "ctrl+down")
        assert host.prompt.text == "a\ndraft\nhere"
        await pilot.press("ctrl+down")
        assert host.prompt.text == "a\ndraft\nhere"


async def test_a_backslash_at_the_end_of_a_line_makes_enter_a_line_break() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"one\\", "enter", *"two\\\\\\", "enter", *"three\\\\")
        assert host.prompt.text == "one\ntwo\\\\\nthree\\\\"
        host.prompt.move_cursor((0, 3))
        await pilot.press("\\", "enter")
        assert host.prompt.text == "one\n\ntwo\\\\\nthree\\\\"
        await pilot.press("ctrl+z")
        assert host.prompt.text == "one\\\ntwo\\\\\nthree\\\\"
        await pilot.press("left", "enter")
    assert host.sent[0][0] == "one\\\ntwo\\\\\nthree\\\\"


async def test_two_backslashes_are_text() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"C:\\dir\\\\", "enter")
    assert host.sent == [("C:\\dir\\\\", "C:\\dir\\\\")]


async def test_ctrl_m_is_enter_and_ctrl_j_is_not() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a", "ctrl+j", "b", "ctrl+m")
        assert host.prompt.text == ""
    assert host.sent == [("a\nb", "a\nb")]


async def test_keys_of_the_history_keep_their_turn() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await send_to(pilot, host, "first")
        await at_once(pilot, "a", "b", "up", "enter", "c", "d", "left", "e")
        assert host.prompt.text == "ced"
    assert [text for text, _ in host.sent] == ["first", "first"]


async def test_dragged_files_are_told_and_not_written() -> None:
    seen: list[str] = []

    def dropped(text: str) -> list[Path]:
        seen.append(text)
        return [Path(line) for line in text.split() if line.startswith("/tmp/")]

    host = Host(dropped=dropped)
    async with host.run_test() as pilot:
        pilot.app.post_message(events.Paste("/tmp/a.txt\r /tmp/b.py "))
        await at_once(pilot, "x", "y")
        pilot.app.post_message(events.Paste("no file"))
        await at_once(pilot, "z")
        await until(pilot, lambda: host.prompt.text == "xyno filez")
        await paste(pilot, "/tmp/ " * 5000)
        assert host.prompt.shown == "xyno filez[pasted 30,000 characters #1]"
    assert host.files == [Path("/tmp/a.txt"), Path("/tmp/b.py")]
    assert seen == ["/tmp/a.txt\n /tmp/b.py ", "no file"]


async def test_a_message_that_is_put_back_is_sent_again_as_it_was() -> None:
    host = Host()
    texts = ["/help me", "//help", "/usr/bin is", "// code", "plain", "/"]
    async with host.run_test() as pilot:
        for text in texts:
            assert host.prompt.put_back(text)
            assert not host.prompt.put_back("another")
            await pilot.press("enter")
    assert host.sent == [(text, text) for text in texts]


async def test_filling_the_prompt_can_be_undone() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a", "ctrl+j", "b")
        host.prompt.fill(Written("other"))
        assert host.prompt.text == "other"
        await pilot.press("ctrl+z")
        assert host.prompt.text == "a\nb"


async def test_a_message_can_be_written_again() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await paste(pilot, "line\n" * 12)
        await pilot.press("enter")
        await until(pilot, lambda: bool(host.sent))
        await pilot.press(*"being written")
        host.prompt.write_again("line\n" * 12)
        assert host.prompt.shown == "[pasted 12 lines #1]"
        host.prompt.write_again("/help me")
        await pilot.press("!", "enter")
        assert host.sent[1] == ("/help me!", "/help me!")


async def test_what_was_being_written_comes_back_with_undo() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"being written")
        host.prompt.write_again("old")
        await pilot.press("ctrl+z")
        assert host.prompt.text == "being written"
