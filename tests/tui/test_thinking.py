from __future__ import annotations

import pytest

from edgespec.events import Reason
from tests.tui.driving import until
from tests.tui.reading import ReadingApp, answered, come, picture, transcript_of
from tui.thinking import parts, without_thoughts
from tui.widgets.answer_turn import AnswerTurn


def pieces(text: str, *, opened: bool = False, growing: bool = False) -> list[str]:
    """Parts as text; thoughts in braces, those that go on with an open one."""
    found = []
    for part in parts(text, opened=opened, growing=growing):
        piece = text[part.start : part.end].strip()
        found.append(f"{{{piece}{'}' if part.closed else ''}" if part.thought else piece)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("", []),
        ("<think>\nhm\n</think>\n\nyes", ["{hm}", "yes"]),
        ("<thinking>hm</thinking>yes", ["{hm}", "yes"]),
        ("\n<think>hm", ["{hm"]),
        ("<think>a</think>b\n<think>c</think>d", ["{a}", "b", "{c}", "d"]),
        ("hm\n</think>\nyes", ["{hm}", "yes"]),
        ("<think>a</think>b\n</think>\nc", ["{a}", "b\n</think>\nc"]),
        ("hm.</think>\n\nyes", ["{hm.}", "yes"]),
        ("<think>\n\n</think>\nyes", ["{}", "yes"]),
        ("<think>```\nno end\n</think>\nyes", ["{```\nno end}", "yes"]),
        (
            "say `</think>` to end, and <think> to begin",
            ["say `</think>` to end, and <think> to begin"],
        ),
        ("```xml\n<think>\nx\n</think>\n```", ["```xml\n<think>\nx\n</think>\n```"]),
        ("~~~\n```\n<think>\n~~~\n<think>t", ["~~~\n```\n<think>\n~~~", "{t"]),
        ("```\n```py\n</think>\n```", ["```\n```py\n</think>\n```"]),
    ],
)
def test_thoughts_are_told_from_answers(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_a_prompt_may_have_opened_the_thought() -> None:
    assert pieces("hm", opened=True) == ["{hm"]
    assert pieces("hm</think> yes", opened=True) == ["{hm}", "yes"]


@pytest.mark.parametrize("text", ["<", " <thi", "<think", "<thinking"])
def test_half_a_tag_is_not_shown(text: str) -> None:
    assert pieces(text, growing=True) == []
    assert pieces(text) == [text.strip()]


def test_a_part_that_grows_stays_where_it_begins() -> None:
    text = "<think>\none\ntwo\n</think>\n\n  code\n\nend"
    starts: dict[bool, set[int]] = {True: set(), False: set()}
    for end in range(len(text) + 1):
        for part in parts(text[:end], growing=True):
            if text[part.start : min(part.end, end)].strip():
                starts[part.thought].add(part.start)
    assert [len(found) for found in starts.values()] == [1, 1]


def test_copying_leaves_thoughts_out() -> None:
    assert without_thoughts("<think>hm</think>\n\nyes\n") == "yes\n"
    assert without_thoughts("a\n\n<think>hm</think>\n\nb") == "a\n\nb"
    assert without_thoughts("hm</think>yes", opened=True) == "yes"
    assert without_thoughts("<think>hm") == ""


async def test_a_thought_is_folded_and_opens() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        turn = await answered(pilot, "<think>\nfirst\nsecond\n", "third\n</think>\n\nThe **end**.")
        shown = "\n".join(picture(pilot))
        assert "thought for 3 lines (Ctrl+T shows)" in shown
        assert "The end." in shown
        assert "second" not in shown
        transcript.thinking_open = True
        await pilot.pause()
        shown = "\n".join(picture(pilot))
        assert "thought for 3 lines (Ctrl+T hides)" in shown
        assert "┆ second" in shown
        turn.toggle()
        await pilot.pause()
        assert "┆ second" not in "\n".join(picture(pilot))
        assert turn.copied == "The **end**."
        assert "second" in turn.text


async def test_a_thought_that_grows_says_how_much() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        await come(pilot, "<think>one\n")
        assert "thinking: 1 line so far (Ctrl+T shows)" in "\n".join(picture(pilot))
        await come(pilot, "two\nthree")
        assert "thinking: 3 lines so far" in "\n".join(picture(pilot))
        await come(pilot, "\n</think>\nDone.")
        shown = "\n".join(picture(pilot))
        assert "thought for 3 lines" in shown
        assert "Done." in shown


async def test_a_thought_whose_beginning_is_in_the_prompt() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False, thinking=True)
        await come(pilot, "secret")
        assert "secret" not in "\n".join(picture(pilot))
        await come(pilot, " things</think>open")
        shown = "\n".join(picture(pilot))
        assert "thought for 1 line" in shown
        assert "open" in shown


async def test_an_unopened_thought_folds_when_its_end_comes() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        await come(pilot, "Hm, *well*\n")
        assert "Hm, well" in "\n".join(picture(pilot))
        await come(pilot, "</think>\n\nSo.")
        shown = "\n".join(picture(pilot))
        assert "Hm" not in shown
        assert "So." in shown


async def test_a_thought_may_begin_after_the_answer_did() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        await transcript_of(pilot).begin_answer(again=False)
        await come(pilot, "So.\n<thi")
        await come(pilot, "nk>hm</think>\nDone.")
        assert [row for row in picture(pilot) if row] == [
            "  So.", "  thought for 1 line (Ctrl+T shows)", "  Done.",
        ]  # fmt: skip


async def test_an_empty_thought_is_nothing() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        await answered(pilot, "<think>\n\n</think>\n\nYes.")
        assert [row for row in picture(pilot) if row] == ["  Yes."]


async def test_a_thought_that_was_cut_stays_folded() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.begin_answer(again=False)
        await come(pilot, "<think>long")
        await transcript.finish_answer("<think>long", Reason.LENGTH)
        turn = transcript.turns[-1]
        assert isinstance(turn, AnswerTurn)
        await until(pilot, lambda: turn.settled)
        shown = "\n".join(picture(pilot))
        assert "thought for 1 line, not to the end (Ctrl+T shows)" in shown
        assert "cut: token budget" in shown
