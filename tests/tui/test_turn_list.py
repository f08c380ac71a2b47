from __future__ import annotations

import pytest
from textual._compositor import Compositor
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input

from edgespec.events import Reason
from tests.tui.driving import until
from tests.tui.reading import (
    Entry,
    ReadingApp,
    answered,
    come,
    picture,
    talk,
    transcript_of,
)
from tui.widgets.turn import AnswerTurn, UserTurn
from tui.widgets.turn_list import Gap, MoreBelow

LONG = "\n\n".join(f"Paragraph {number}." for number in range(30))


async def scroll(pilot: Pilot[None], row: int) -> None:
    transcript_of(pilot).scroll_to(y=row, animate=False)
    await pilot.pause()
    await pilot.pause()


def more(pilot: Pilot[None]) -> bool:
    words = MoreBelow.WORDS.strip() in "\n".join(picture(pilot))
    assert words == transcript_of(pilot).query_one(MoreBelow).display
    return words


def mounted(pilot: Pilot[None]) -> int:
    return len(transcript_of(pilot).query("UserTurn, AnswerTurn"))


# A conversation of an earlier time


async def test_a_long_conversation_is_shown_at_its_end_and_made_where_it_is_read() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(200))
        await pilot.pause()
        assert "Answer 199, part 4." in picture(pilot)[-2]
        assert len(transcript.turns) == 200
        assert mounted(pilot) < 50
        heights = transcript.virtual_size.height
        await scroll(pilot, 0)
        await until(pilot, lambda: "▌ Question 0." in picture(pilot))
        assert "  Answer 1, part 0." in picture(pilot)
        assert mounted(pilot) < 100
        assert transcript.virtual_size.height == pytest.approx(heights, rel=0.2)


async def test_every_turn_can_be_reached() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(60))
        await pilot.pause()
        seen: set[str] = set()
        for _ in range(200):
            seen |= set(picture(pilot))
            if transcript.scroll_y == 0:
                break
            await scroll(pilot, max(round(transcript.scroll_y) - 15, 0))
        for entry in talk(60):
            first = entry.content.split("\n")[0]
            assert any(row.endswith(first) for row in seen), entry
        assert not transcript.query(Gap)


async def test_a_jump_into_the_middle_shows_what_is_there() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(200))
        await pilot.pause()
        await scroll(pilot, transcript.max_scroll_y // 2)
        await until(pilot, lambda: any("Answer" in row for row in picture(pilot)))
        assert len(transcript.query(Gap)) == 2
        numbers = [turn.message for turn in transcript.turns]
        assert numbers == list(range(200))


async def test_what_is_read_stays_when_what_is_above_turns_out_higher() -> None:
    entries = talk(80)
    wide = [Entry(e.id, e.role, "\n".join(["# x", "- a"] * 6)) if e.id % 2 else e for e in entries]
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(wide)
        await pilot.pause()
        await scroll(pilot, transcript.max_scroll_y - 60)
        place = picture(pilot)
        for _ in range(12):
            before = picture(pilot)
            await scroll(pilot, round(transcript.scroll_y) - 1)
            assert picture(pilot)[1:] == before[:-1]
        assert picture(pilot) != place


async def test_another_width_keeps_what_is_read_in_view() -> None:
    entries = [Entry(n, "assistant", f"Answer {n}. " + "word " * 100) for n in range(40)]
    async with ReadingApp().run_test(size=(100, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(entries)
        await pilot.pause()
        await scroll(pilot, transcript.max_scroll_y - 150)
        top = next(row for row in picture(pilot) if "Answer" in row).split(".")[0]
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        assert any(row.startswith(top) for row in picture(pilot))
        await pilot.resize_terminal(100, 20)
        await pilot.pause()
        assert any(row.startswith(top) for row in picture(pilot))


async def test_another_width_keeps_the_place_in_a_long_answer() -> None:
    async with ReadingApp().run_test(size=(100, 20)) as pilot:
        await answered(pilot, " ".join(f"w{number}" for number in range(3000)))
        await scroll(pilot, transcript_of(pilot).max_scroll_y // 2)

        def place() -> int:
            return int(picture(pilot)[0].split()[0].removeprefix("w"))

        before = place()
        for width in (50, 100):
            await pilot.resize_terminal(width, 20)
            await pilot.pause()
            assert place() == pytest.approx(before, rel=0.05)


async def test_at_the_end_another_width_stays_at_the_end() -> None:
    async with ReadingApp().run_test(size=(100, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(
            [Entry(n, "assistant", "word " * 300 + f"end {n}") for n in range(30)]
        )
        await pilot.pause()
        for width in (40, 100):
            await pilot.resize_terminal(width, 20)
            await pilot.pause()
            assert "end 29" in picture(pilot)[-2]
            assert transcript.scroll_y == transcript.max_scroll_y


async def test_a_conversation_takes_the_place_of_another() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(100))
        await transcript.show([Entry(7, "system", "be kind"), Entry(8, "user", "hello")])
        await pilot.pause()
        await until(pilot, lambda: [row for row in picture(pilot) if row] == ["▌ hello"])
        assert [turn.message for turn in transcript.turns] == [8]
        assert not transcript.has_answer
        await transcript.clear()
        await pilot.pause()
        await until(pilot, lambda: not any(picture(pilot)))


async def test_an_answer_that_never_ended_says_so() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show([Entry(1, "assistant", "half", complete=False)])
        await pilot.pause()
        assert "not whole" in "\n".join(picture(pilot))
        assert transcript.has_answer


async def test_a_turn_and_what_follows_can_be_cut_away() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(100))
        await pilot.pause()
        await transcript.cut(transcript.turns[2])
        await pilot.pause()
        assert [turn.message for turn in transcript.turns] == [0, 1]
        assert transcript.has_answer
        await until(pilot, lambda: "▌ Question 0." in picture(pilot))
        await transcript.add_question("another")
        await answered(pilot, "fine")
        assert [row for row in picture(pilot) if row][-2:] == ["▌ another", "  fine"]


async def test_far_turns_are_not_laid_out() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        for number in range(8):
            await transcript.add_question(f"q {number}")
            await answered(pilot, LONG)
        assert mounted(pilot) == 16
        assert len([turn for turn in transcript.turns if turn.region.height]) <= 4
        height = transcript.virtual_size.height
        await scroll(pilot, 0)
        assert "▌ q 0" in picture(pilot)
        assert "  Paragraph 0." in picture(pilot)
        assert transcript.virtual_size.height == height


async def test_new_rows_are_one_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts: list[int] = []
    original = Compositor.reflow

    def counting(self: Compositor, parent: Widget, size: Size) -> object:
        layouts.append(1)
        return original(self, parent, size)

    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(40))
        await transcript.begin_answer(again=False)
        await come(pilot, "one")
        await pilot.pause()
        monkeypatch.setattr(Compositor, "reflow", counting)
        await come(pilot, " and")
        await pilot.pause()
        assert layouts == []
        await come(pilot, " more\n\ntwo\n\nthree")
        await pilot.pause()
        await pilot.pause()
        assert layouts == [1]
        assert "  three" in picture(pilot)


# Following the end


async def test_more_below_is_told_to_a_reader_who_is_away() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await answered(pilot, LONG)
        await transcript.begin_answer(again=False)
        await come(pilot, "one\n\n")
        assert transcript.following
        assert not more(pilot)
        await scroll(pilot, round(transcript.scroll_y) - 1)
        assert not transcript.following
        assert not more(pilot)
        place = picture(pilot)
        await come(pilot, "two\n\nthree\n\n" * 5)
        assert more(pilot)
        assert picture(pilot)[:-1] == place[:-1]
        await scroll(pilot, transcript.max_scroll_y - 4)
        assert not transcript.following
        assert more(pilot)
        await scroll(pilot, transcript.max_scroll_y - 3)
        assert transcript.following
        assert not more(pilot)
        await come(pilot, "the end")
        assert "the end" in picture(pilot)[-2]


async def test_to_go_to_the_end_takes_the_line_away() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await answered(pilot, LONG)
        await scroll(pilot, 3)
        await transcript.add_notice("Look at this.")
        await pilot.pause()
        assert more(pilot)
        transcript.follow()
        await pilot.pause()
        assert not more(pilot)
        assert "Look at this." in "\n".join(picture(pilot))


async def test_scrolling_a_conversation_that_is_all_seen_does_not_stop_following() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await answered(pilot, "short")
        transcript.scroll_page_up()
        await pilot.wait_for_animation()
        await transcript.add_notice("All is seen.")
        await pilot.pause()
        assert not more(pilot)
        await answered(pilot, LONG)
        assert "Paragraph 29." in picture(pilot)[-2]
        assert transcript.following


async def test_a_reader_of_a_growing_answer_does_not_jump() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        await come(pilot, LONG)
        await scroll(pilot, 20)
        place = picture(pilot)[:-1]
        height = transcript.virtual_size.height
        for piece in ("\n\n```py\nx = 1\n", "y = 2\n```\n\n", "# Head", "\n\n- a\n- b\n" * 9):
            await come(pilot, piece)
            assert picture(pilot)[:-1] == place
            assert transcript.virtual_size.height >= height
            height = transcript.virtual_size.height
        turn = transcript.turns[-1]
        assert isinstance(turn, AnswerTurn)
        await transcript.finish_answer(turn.text, Reason.END)
        await until(pilot, lambda: turn.settled)
        assert picture(pilot)[:-1] == place
        assert transcript.virtual_size.height == height


# The turn that keys act on


async def test_turns_are_selected_by_keys_and_marked_without_colour() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        assert transcript.selected is None
        transcript.select_previous()
        transcript.select_next()
        assert transcript.selected is None
        question = await transcript.add_question("one\ntwo")
        answer = await answered(pilot, "three\n\nfour")
        transcript.select_next()
        assert transcript.selected is None
        transcript.select_previous()
        await pilot.pause()
        assert transcript.selected is answer
        assert [row for row in picture(pilot) if row] == [
            "▌ one", "▌ two", "▶ three", "┃", "┃ four",
        ]  # fmt: skip
        transcript.select_previous()
        transcript.select_previous()
        await pilot.pause()
        assert transcript.selected is question
        assert [row for row in picture(pilot) if row] == ["▶ one", "┃ two", "  three", "  four"]
        transcript.select_next()
        assert transcript.selected is answer
        transcript.select_next()
        await pilot.pause()
        assert transcript.selected is None
        assert [row for row in picture(pilot) if row] == ["▌ one", "▌ two", "  three", "  four"]


async def test_the_selected_turn_is_in_view_even_when_it_was_never_made() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(100))
        await pilot.pause()
        for _ in range(60):
            transcript.select_previous()
            await pilot.pause()
            await pilot.pause()
            selected = transcript.selected
            assert selected is not None
            await until(pilot, lambda: any(row.startswith("▶") for row in picture(pilot)))
        assert selected is not None
        assert selected.message == 40
        assert "▶ Question 40." in picture(pilot)
        for _ in range(10):
            transcript.select_next()
            await pilot.pause()
        assert any(row.startswith("▶ Question 50") for row in picture(pilot))


async def test_a_selected_turn_that_is_taken_away_is_selected_no_more() -> None:
    async with ReadingApp().run_test() as pilot:
        transcript = transcript_of(pilot)
        turn = await transcript.add_question("x")
        transcript.select_previous()
        assert transcript.selected is turn
        await turn.remove()
        assert transcript.selected is None
        transcript.select_previous()
        assert transcript.selected is None


async def test_the_keyboard_stays_with_the_prompt() -> None:
    async with ReadingApp().run_test() as pilot:
        transcript = transcript_of(pilot)
        turn: UserTurn = await transcript.add_question("x")
        pilot.app.query_one(Input).focus()
        await pilot.click(turn)
        await pilot.press("a")
        assert pilot.app.query_one(Input).value == "a"
