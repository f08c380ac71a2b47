from __future__ import annotations

import pytest

from edgespec.errors import DecodeError, EdgeSpecError
from edgespec.events import Prefilled, Reason
from edgespec.reply import Notice, ReplyDone, StatsChanged, TextDelta
from tests.tui.driving import (
    answers,
    drawn,
    errors,
    make_app,
    notices,
    prompt,
    questions,
    ready,
    screen,
    send,
    settled,
    status,
    until,
)
from tests.tui.fake_session import STATS, FakeSession, Gate, answer
from tui.phase import Phase
from tui.widgets.turn import AnswerTurn

MARKDOWN = (
    "# Title\n\nSome **bold** text with a [late link][target].\n\n1. one\n2. two\n   - nested\n\n"
    "```python\ndef f(x):\n    return x\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    "[target]: http://example.org\n"
)


async def test_an_answer_is_streamed_and_its_final_text_is_drawn() -> None:
    gate = Gate()
    session = FakeSession(
        [TextDelta("Hello"), StatsChanged(STATS), gate, *answer(" world")[1:-1],
         ReplyDone("Hello world", Reason.END, STATS)]
    )  # fmt: skip
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "Hi there")
        await until(pilot, lambda: gate.reached.is_set() and answers(pilot)[0].source == "Hello")
        assert questions(pilot) == ["Hi there"]
        assert prompt(pilot).text == ""
        assert "Hello" in drawn(pilot)
        assert "world" not in drawn(pilot)
        gate.open()
        turn = await settled(pilot)
        assert turn.text == turn.source == "Hello world"
        assert turn.note == ""
        assert "Hello world" in drawn(pilot)
    assert session.asked == ["Hi there"]


async def test_an_answer_that_the_template_begins_inside_a_thought_is_folded() -> None:
    session = FakeSession(answer("All of this is a thought."), answer("One more.\n</think>\nDone."))
    session.opens_thought = True
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "Hi there")
        await settled(pilot)
        assert "All of this" not in drawn(pilot)
        await send(pilot, "And now?")
        await until(pilot, lambda: "Done." in drawn(pilot))
        assert "One more." not in drawn(pilot)


@pytest.mark.parametrize("width", [1, 3, 7, 50])
async def test_markdown_in_pieces_ends_as_the_whole_would(width: int) -> None:
    pieces = [MARKDOWN[i : i + width] for i in range(0, len(MARKDOWN), width)]
    session = FakeSession(answer(*pieces), answer(MARKDOWN))
    async with make_app(session).run_test(size=(80, 60)) as pilot:
        await ready(pilot)
        await send(pilot, "in pieces")
        turn = await settled(pilot)
        assert turn.text == turn.source == MARKDOWN
        in_pieces = drawn(pilot).partition("in pieces")[2].partition("╭")[0].strip()
        assert "return x" in in_pieces
        assert "late link" in in_pieces
        assert "[target]" not in in_pieces
        await send(pilot, "as a whole")
        await settled(pilot)
        assert drawn(pilot).partition("as a whole")[2].partition("╭")[0].strip() == in_pieces


async def test_text_of_a_round_comes_in_one_piece_and_none_is_lost() -> None:
    session = FakeSession(
        [TextDelta("a"), TextDelta("b"), StatsChanged(STATS), TextDelta("c"),
         ReplyDone("abc", Reason.STOP, STATS)]
    )  # fmt: skip
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        turn = await settled(pilot)
        assert turn.source == "abc"
        assert turn.note == ""


@pytest.mark.parametrize(
    ("reason", "note"),
    [(Reason.LENGTH, "cut: token budget"), (Reason.CONTEXT, "cut: context full")],
)
async def test_a_cut_answer_says_so(reason: Reason, note: str) -> None:
    async with make_app(FakeSession(answer("part", reason=reason))).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        assert (await settled(pilot)).note == note
        assert note in drawn(pilot)


async def test_escape_stops_the_answer_and_keeps_what_there_is() -> None:
    gate = Gate()
    session = FakeSession([*answer("first")[:-1], gate, *answer("second")], answer("next"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await pilot.press("escape")
        assert session.cancels == 0
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        await pilot.press("escape")
        turn = await settled(pilot)
        assert (turn.text, turn.note) == ("first", "stopped")
        assert session.cancels == 1
        await send(pilot, "y")
        assert (await settled(pilot)).text == "next"


async def test_a_stop_that_comes_too_early_is_not_lost() -> None:
    gate = Gate()
    session = FakeSession([gate, *answer("one", "two", "three")])
    session.late_cancel = True
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        await pilot.press("escape")
        turn = await settled(pilot)
        assert (turn.text, turn.note) == ("", "stopped")


async def test_reading_the_prompt_is_shown() -> None:
    gate = Gate()
    progress = Prefilled(done=512, total=1500, reused=0, seconds=0.1)
    session = FakeSession([progress, gate, *answer("done")])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, lambda: "reading 512/1500" in status(pilot))
        gate.open()
        await settled(pilot)
        assert "reading" not in status(pilot)


@pytest.mark.parametrize("text", ["[bold]x[/]", "[/foo] and [link=", "a [red on blue]b[/] \\[c]"])
async def test_no_text_is_taken_for_markup(text: str) -> None:
    session = FakeSession([Notice(text), *answer("[bold]y[/bold] [/bar]")], [EdgeSpecError(text)])
    session.notices = (text,)
    async with make_app(session, model=f"{text}.gguf").run_test() as pilot:
        await ready(pilot)
        await send(pilot, text)
        await settled(pilot)
        assert drawn(pilot).count(text) == 3
        assert "[bold]y[/bold] [/bar]" in drawn(pilot)
        await send(pilot, "again")
        await ready(pilot)
        assert errors(pilot) == [f"Error: {text}"]


async def test_html_in_an_answer_stays_readable() -> None:
    async with make_app(
        FakeSession(answer("<div>\nkept\n</div>\n\nand <b>this</b>"))
    ).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await settled(pilot)
        assert "<div> kept </div>" in drawn(pilot)
        assert "<b>this</b>" in drawn(pilot)


async def test_no_text_can_command_the_terminal() -> None:
    evil = "a\x1b[31mb\x9bc\x07d\x0ce"
    async with make_app(FakeSession(answer(evil))).run_test() as pilot:
        await ready(pilot)
        await send(pilot, evil.replace("\x0c", ""))
        turn = await settled(pilot)
        assert turn.text == evil
        assert not set(drawn(pilot)) & {"\x1b", "\x9b", "\x07", "\x0c"}
        assert "a␛[31mb�c␇de" in drawn(pilot)
        assert "a␛[31mb�c␇d␌e" in drawn(pilot)


async def test_notices_stay_in_the_order_of_the_conversation() -> None:
    session = FakeSession([Notice("Two turns left."), *answer("text")])
    session.notices = ("The embedded default answers.",)
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "question")
        await settled(pilot)
        shown = drawn(pilot)
        order = ["The embedded default answers.", "question", "Two turns left.", "text"]
        places = [shown.index(part) for part in order]
        assert places == sorted(places)
        assert errors(pilot) == []


async def test_a_message_that_failed_is_back_in_the_prompt() -> None:
    session = FakeSession([DecodeError("The model failed.", "Try again.")], answer("fine"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "line one\nline two")
        await until(pilot, lambda: bool(errors(pilot)))
        await ready(pilot)
        assert errors(pilot) == ["Error: The model failed. Try again."]
        assert prompt(pilot).text == "line one\nline two"
        assert questions(pilot) == []
        assert answers(pilot) == []
        await pilot.press("enter")
        assert (await settled(pilot)).text == "fine"
        assert errors(pilot) == ["Error: The model failed. Try again."]


async def test_a_failed_message_does_not_overwrite_what_is_being_written() -> None:
    gate = Gate()
    async with make_app(FakeSession([gate, DecodeError("No.")])).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "old")
        await until(pilot, gate.reached.is_set)
        await pilot.press("n", "e", "w")
        gate.open()
        await ready(pilot)
        assert prompt(pilot).text == "new"
        assert questions(pilot) == ["old"]
        assert "not answered" in drawn(pilot)
        prompt(pilot).move_cursor((0, 0))
        await pilot.press("up")
        assert prompt(pilot).text == "old"


async def test_what_came_before_an_error_stays() -> None:
    session = FakeSession([*answer("half a")[:-1], TextDelta("nd more"), DecodeError("Broken.")])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        turn = await settled(pilot)
        assert (turn.text, turn.note) == ("half and more", "broken off")
        assert errors(pilot) == ["Error: Broken."]
        assert prompt(pilot).text == ""


async def test_an_unexpected_error_is_a_line_and_the_chat_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = FakeSession([ValueError("[odd] thing")], answer("fine"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, lambda: bool(errors(pilot)))
        await ready(pilot)
        assert errors(pilot) == ["Unexpected error: [odd] thing; details in the log."]
        assert prompt(pilot).text == "x"
        await pilot.press("enter")
        assert (await settled(pilot)).text == "fine"
    assert caplog.records[0].exc_info is not None


async def test_sending_while_an_answer_comes_keeps_the_text() -> None:
    gate = Gate()
    session = FakeSession([gate, *answer("one")], answer("two"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "first")
        await until(pilot, gate.reached.is_set)
        await send(pilot, "second")
        assert prompt(pilot).text == "second"
        assert "Esc" in prompt(pilot).hint
        assert prompt(pilot).hint in drawn(pilot)
        gate.open()
        await settled(pilot)
        assert session.asked == ["first"]
        assert prompt(pilot).hint == ""
        await pilot.press("enter")
        await settled(pilot)
    assert session.asked == ["first", "second"]


async def test_blank_messages_are_not_sent() -> None:
    session = FakeSession()
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, " \n ")
        assert questions(pilot) == []
    assert session.asked == []


async def test_the_last_answer_is_given_again_in_its_place() -> None:
    session = FakeSession(answer("first"), answer("second"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await pilot.press("ctrl+r")
        assert session.asked == []
        await send(pilot, "question")
        await settled(pilot)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: session.asked == ["question", "(again)"])
        turn = await settled(pilot)
        assert turn.text == "second"
        assert list(screen(pilot).query(AnswerTurn)) == [turn]
        assert questions(pilot) == ["question"]


async def test_an_answer_that_cannot_be_given_again_stays() -> None:
    session = FakeSession(answer("first"), [DecodeError("No.")], answer("third"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "question")
        await settled(pilot)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: errors(pilot) == ["Error: No."])
        assert [turn.text for turn in answers(pilot)] == ["first"]
        assert prompt(pilot).text == ""
        await ready(pilot)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: [turn.text for turn in answers(pilot)] == ["third"])


async def test_the_footer_offers_what_can_be_done() -> None:
    gate = Gate()
    async with make_app(FakeSession([gate, *answer("x")])).run_test() as pilot:
        await ready(pilot)
        assert "Stop" not in drawn(pilot)
        await send(pilot, "q")
        await until(pilot, gate.reached.is_set)
        assert screen(pilot).phase is Phase.ANSWERING
        assert "Stop" in drawn(pilot)
        gate.open()
        await settled(pilot)
        await until(pilot, lambda: "Again" in drawn(pilot))
        assert "Stop" not in drawn(pilot)
        assert "Quit" in drawn(pilot)
        assert notices(pilot) == ["Fake-1B-Q4_K_M is ready."]
