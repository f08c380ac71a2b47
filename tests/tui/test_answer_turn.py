from __future__ import annotations

import pytest
from textual.pilot import Pilot

from edgespec.events import Reason
from tests.tui.driving import until
from tests.tui.reading import Entry, ReadingApp, answered, come, picture, transcript_of
from tui.widgets.turn import AnswerTurn, UserTurn


def marked(pilot: Pilot[None], style: str = "underline") -> str:
    """The characters in the transcript's rows that are drawn with an attribute."""
    height = transcript_of(pilot).size.height
    strips = pilot.app.screen._compositor.render_strips()[:height]
    return "".join(
        segment.text
        for strip in strips
        for segment in strip
        if segment.style is not None and getattr(segment.style, style)
    )


async def drafted_answer(pilot: Pilot[None]) -> AnswerTurn:
    transcript = transcript_of(pilot)
    await transcript.begin_answer(again=False)
    await come(pilot, "Free **dra", drafted=0)
    await come(pilot, "fted words**", drafted=6)
    await come(pilot, " and\x1b more\r", drafted=8)
    await come(pilot, "\nend", drafted=1)
    turn = transcript.turns[-1]
    assert isinstance(turn, AnswerTurn)
    return turn


async def test_drafted_characters_are_marked_on_demand() -> None:
    async with ReadingApp().run_test(size=(60, 10)) as pilot:
        turn = await drafted_answer(pilot)
        transcript = transcript_of(pilot)
        assert "Free drafted words and␛ more" in "\n".join(picture(pilot))
        assert marked(pilot) == ""
        transcript.tint = True
        await pilot.pause()
        assert "Free **drafted words** and␛ more" in "\n".join(picture(pilot))
        assert marked(pilot) == "fted w and␛ mo"
        await transcript.finish_answer(turn.text, Reason.END)
        await until(pilot, lambda: turn.settled)
        assert marked(pilot) == "fted w and␛ mo"
        transcript.tint = False
        await pilot.pause()
        assert marked(pilot) == ""
        assert "Free drafted words" in "\n".join(picture(pilot))
        clean = "Free **drafted words** and␛ more\nend"
        assert [clean[start:end] for start, end in turn.drafted] == ["fted w", " and␛ mo", "\n"]


async def test_drafts_that_follow_one_another_are_one() -> None:
    async with ReadingApp().run_test() as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        for text, drafted in (("ab", 2), ("cd", 2), ("ef", 1), ("gh", 0)):
            transcript.write(text, drafted)
        turn = transcript.turns[-1]
        assert isinstance(turn, AnswerTurn)
        assert turn.drafted == [(0, 5)]


async def test_characters_that_printing_joins_count_once() -> None:
    async with ReadingApp().run_test() as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        transcript.write("a\r\nb c", drafted=4)
        turn = transcript.turns[-1]
        assert isinstance(turn, AnswerTurn)
        assert turn.drafted == [(0, 3)]


async def test_a_final_text_that_differs_keeps_the_marks_that_are_still_true() -> None:
    async with ReadingApp().run_test() as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        transcript.tint = True
        await come(pilot, "one two STOP", drafted=12)
        turn = transcript.turns[-1]
        assert isinstance(turn, AnswerTurn)
        await transcript.finish_answer("one two", Reason.STOP)
        await until(pilot, lambda: turn.settled)
        assert turn.drafted == [(0, 7)]
        assert turn.source == "one two"
        assert marked(pilot) == "one two"


async def test_an_answer_of_an_earlier_time_stays_markdown() -> None:
    async with ReadingApp().run_test(size=(60, 10)) as pilot:
        transcript = transcript_of(pilot)
        transcript.tint = True
        await transcript.show([Entry(1, "user", "q"), Entry(2, "assistant", "an **answer**")])
        await pilot.pause()
        assert "an answer" in "\n".join(picture(pilot))


async def test_marks_and_thoughts_at_once() -> None:
    async with ReadingApp().run_test(size=(60, 10)) as pilot:
        transcript = transcript_of(pilot)
        transcript.tint = True
        await transcript.begin_answer(again=False)
        await come(pilot, "<think>\nhm\n</think>\n\nsure", drafted=25)
        await come(pilot, "ly\nnot", drafted=1)
        await come(pilot, " one\n\nand two", drafted=1)
        await come(pilot, " rows", drafted=3)
        assert marked(pilot) == "surel  ro"
        assert "thought for 1 line" in "\n".join(picture(pilot))


async def test_an_answer_may_go_on() -> None:
    async with ReadingApp().run_test(size=(60, 10)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        await come(pilot, "The *first")
        await transcript.finish_answer("The *first", Reason.LENGTH)
        assert "cut: token budget" in (await settle(pilot)).note
        assert transcript.continue_answer()
        await come(pilot, " part*")
        await transcript.finish_answer("The *first part*", Reason.END)
        turn = await settle(pilot)
        assert (turn.note, turn.source) == ("", "The *first part*")
        assert "The first part" in "\n".join(picture(pilot))
        assert len(transcript.turns) == 1


async def settle(pilot: Pilot[None]) -> AnswerTurn:
    turn = transcript_of(pilot).turns[-1]
    assert isinstance(turn, AnswerTurn)
    await until(pilot, lambda: turn.settled)
    return turn


async def test_nothing_can_go_on_where_nothing_was() -> None:
    async with ReadingApp().run_test() as pilot:
        assert not transcript_of(pilot).continue_answer()


async def test_code_does_not_go_blank_when_its_answer_ends() -> None:
    async with ReadingApp().run_test(size=(60, 12)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        text = "Code:\n\n```python\nx = 1\nprint(x)"
        await come(pilot, text)
        before = picture(pilot)
        assert "    print(x)" in before
        await transcript.finish_answer(text, Reason.END)
        await settle(pilot)
        assert picture(pilot) == before


async def test_a_click_on_a_link_opens_it() -> None:
    app = ReadingApp()
    async with app.run_test(size=(60, 10)) as pilot:
        turn = await answered(pilot, "A [link](http://example.org/a_b).")
        await pilot.click(turn, offset=(5, 0))
        assert app.opened == ["http://example.org/a_b"]


@pytest.mark.parametrize("count", [12, 13, 812])
async def test_a_long_message_is_folded_until_it_is_opened(count: int) -> None:
    message = "\n".join(f"line {number}" for number in range(1, count + 1))
    async with ReadingApp().run_test(size=(60, 40)) as pilot:
        turn = await transcript_of(pilot).add_question(message)
        await pilot.pause()
        shown = "\n".join(picture(pilot))
        if count == 12:
            assert "line 12" in shown
            assert "more line" not in shown
            return
        assert "line 8\n" in shown
        assert "line 9" not in shown
        assert f"… {count - 8} more lines" in shown
        assert turn.copied == message
        turn.toggle()
        await pilot.pause()
        assert f"line {count}" in "\n".join(picture(pilot))
        turn.toggle()
        await pilot.pause()
        assert f"… {count - 8} more lines" in "\n".join(picture(pilot))


async def test_a_long_line_is_folded_too() -> None:
    async with ReadingApp().run_test(size=(40, 30)) as pilot:
        await transcript_of(pilot).add_question("word " * 200)
        await pilot.pause()
        assert sum("word" in row for row in picture(pilot)) == 8
        assert "more lines" in "\n".join(picture(pilot))


async def test_a_message_is_shown_as_it_is_described() -> None:
    def describe(content: str) -> str:
        return content.replace("<<<big file>>>", "[notes.txt]")

    async with ReadingApp(describe).run_test() as pilot:
        turn = await transcript_of(pilot).add_question("See <<<big file>>>\x1b")
        await pilot.pause()
        assert "▌ See [notes.txt]␛" in "\n".join(picture(pilot))
        assert turn.text == "See <<<big file>>>\x1b"


async def test_which_branch_a_turn_is() -> None:
    async with ReadingApp().run_test() as pilot:
        question = await transcript_of(pilot).add_question("q")
        turn = await answered(pilot, "a")
        assert not any("/" in row for row in picture(pilot))
        question.branch = (1, 2)
        turn.branch = (2, 3)
        await pilot.pause()
        shown = "\n".join(picture(pilot))
        assert "1/2" in shown
        assert "2/3" in shown
        turn.branch = None
        await pilot.pause()
        assert "2/3" not in "\n".join(picture(pilot))


async def test_text_marked_with_the_mouse_is_whole_again() -> None:
    text = "- a point that is long enough to be wrapped\n\n```\ncode\n```"
    async with ReadingApp().run_test(size=(24, 20)) as pilot:
        turn = await answered(pilot, text)
        pilot.app.screen._select_all_in_widget(turn)
        await pilot.pause()
        assert pilot.app.screen.get_selected_text() == (
            "• a point that is long enough to be wrapped\n\n  code\n  code"
        )


async def test_a_part_of_a_row_marked_with_the_mouse() -> None:
    async with ReadingApp().run_test(size=(40, 10)) as pilot:
        turn = await answered(pilot, "one two three")
        await pilot.mouse_down(turn, offset=(6, 0))
        await pilot.hover(turn, offset=(8, 0))
        await pilot.mouse_up(turn, offset=(8, 0))
        assert pilot.app.screen.get_selected_text() == "two"


async def test_a_theme_changes_what_is_drawn() -> None:
    async with ReadingApp().run_test(size=(40, 10)) as pilot:
        await answered(pilot, "# Title\n\n```python\nx = 1\n```")

        def colour() -> object:
            strips = pilot.app.screen._compositor.render_strips()
            found = [segment for strip in strips for segment in strip if "Title" in segment.text]
            assert found[0].style is not None
            return found[0].style.color

        before = colour()
        pilot.app.theme = "textual-light"
        await pilot.pause()
        assert colour() != before
        pilot.app.theme = "ansi-dark"
        await pilot.pause()
        assert "x = 1" in "\n".join(picture(pilot))


async def test_rows_are_as_wide_as_the_terminal_after_another_size() -> None:
    async with ReadingApp().run_test(size=(40, 10)) as pilot:
        turn = await answered(pilot, "<think>hm</think>\n\nText.\n\n```c\nint a;\n```")
        for width in (40, 70, 30):
            await pilot.resize_terminal(width, 10)
            await pilot.pause()
            strips = turn.render_lines(turn.size.region)
            assert {strip.cell_length for strip in strips} == {turn.size.width} == {width}
            assert {sum(map(len, (segment.text for segment in strip))) for strip in strips} == {
                width
            }


async def test_a_question_is_marked_below() -> None:
    async with ReadingApp().run_test() as pilot:
        turn: UserTurn = await transcript_of(pilot).add_question("q")
        turn.mark("sent later")
        await pilot.pause()
        assert "sent later" in "\n".join(picture(pilot))
        turn.mark("")
        await pilot.pause()
        assert "sent later" not in "\n".join(picture(pilot))
