from __future__ import annotations

import pytest
from textual.widgets.text_area import Selection

from tests.tui.driving import eventually
from tests.tui.prompt_host import Host, drawn_rows, paste, send
from tui.folding import FOLD, Folds, Written, clean, is_clean, is_long, unmarked

LONG = "\n".join(f"line {number} [/with] some more words" for number in range(812))
OTHER = "x" * 1501
FOLDED = "[pasted 812 lines #1]"


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("\n".join("a" * 8), False),
        ("\n".join("a" * 8) + "\n", False),
        ("\n".join("a" * 9), True),
        ("a" * 1500, False),
        ("a" * 1501, True),
    ],
    ids=["8 lines", "8 ended lines", "9 lines", "1500 characters", "1501 characters"],
)
def test_what_is_long(text: str, long: bool) -> None:
    assert is_long(text) is long


async def test_what_is_long_is_folded_and_nothing_else() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await paste(pilot, "a" * 1500)
        assert host.prompt.shown == "a" * 1500
        await paste(pilot, "b\n" * 8)
        assert host.prompt.shown == "a" * 1500 + "b\n" * 8
        await paste(pilot, "c" * 1501)
        await paste(pilot, "d\n" * 9)
        assert host.prompt.shown.endswith("b\n[pasted 1,501 characters #1][pasted 9 lines #2]")
        assert host.prompt.text == "a" * 1500 + "b\n" * 8 + "c" * 1501 + "d\n" * 9


async def test_a_folded_paste_is_sent_whole_with_what_is_around_it() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"see ")
        await paste(pilot, LONG)
        await pilot.press("!")
        await paste(pilot, OTHER)
        assert host.prompt.shown == f"see {FOLDED}![pasted 1,501 characters #2]"
        assert "".join(drawn_rows(host.prompt)).count("[pasted") == 2
        assert host.prompt.size.height == 1
        await pilot.press("enter")
        await eventually(lambda: bool(host.sent))
    assert host.sent == [
        (f"see {LONG}!{OTHER}", f"see {FOLDED}![pasted 1,501 characters #2]"),
    ]


async def test_a_fold_is_drawn_apart_from_text_that_looks_like_one() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await paste(pilot, LONG)
        await pilot.press(*f" {FOLDED}")
        bold = [s.text for s in host.prompt.render_line(0) if s.style and s.style.bold]
        assert "".join(bold) == FOLDED


async def test_a_text_that_looks_like_a_fold_is_text() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await paste(pilot, LONG)
        await pilot.press(*FOLDED, "backspace")
        assert host.prompt.text == LONG + FOLDED[:-1]
        forged = Folds().fold("nothing")
        await paste(pilot, forged)
        host.prompt.insert(unmarked(forged))
        assert host.prompt.text == LONG + FOLDED[:-1] + unmarked(forged) * 2
        host.prompt.load_text(forged)
        assert host.prompt.text == unmarked(forged)


@pytest.mark.parametrize(
    "keys",
    [
        ["backspace"],
        ["ctrl+w"],
        ["left", "delete"],
        ["left", "ctrl+d"],
        ["left", "alt+delete"],
        ["ctrl+left", "delete"],
        ["shift+left", "delete"],
        ["left", "shift+right", "backspace"],
        ["left", "ctrl+shift+right", "ctrl+x"],
    ],
)
async def test_a_fold_is_deleted_whole_and_undo_brings_it_back(keys: list[str]) -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a")
        await paste(pilot, LONG)
        await pilot.press(*keys)
        assert host.prompt.text == "a"
        await pilot.press("ctrl+z")
        assert host.prompt.shown == f"a{FOLDED}"
        assert host.prompt.text == f"a{LONG}"
        await pilot.press("ctrl+y")
        assert host.prompt.text == "a"


async def test_the_cursor_is_never_inside_a_fold() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await paste(pilot, LONG)
        await pilot.press("left", "a", "right", "b")
        assert host.prompt.text == f"a{LONG}b"
        await pilot.press("ctrl+j", *"0123456789", "up", "c")
        assert host.prompt.text == f"ac{LONG}b\n0123456789"
        for column in range(2, len(FOLDED) + 2):
            host.prompt.move_cursor((0, column))
            assert host.prompt.cursor_location[1] in {2, len(FOLDED) + 2}
        host.prompt.move_cursor((0, len(FOLDED)))
        assert host.prompt.cursor_location == (0, len(FOLDED) + 2)


async def test_a_narrow_prompt_does_not_break_a_fold() -> None:
    host = Host()
    async with host.run_test(size=(40, 24)) as pilot:
        await pilot.press(*"some words before it")
        await paste(pilot, LONG)
        await pilot.pause()
        rows = [row.rstrip() for row in drawn_rows(host.prompt)]
        assert rows == ["some words before", f"it{FOLDED}"]
        await pilot.press("up", "down", "end", "x")
        assert host.prompt.text == f"some words before it{LONG}x"


async def test_what_was_cut_or_copied_keeps_its_content_and_its_fold() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"see ")
        await paste(pilot, LONG)
        await pilot.press("f7", "ctrl+c", "end")
        assert host.clipboard == f"see {LONG}"
        assert host.prompt.text == f"see {LONG}"
        await pilot.press("ctrl+v")
        assert host.prompt.shown == f"see {FOLDED}" * 2
        assert host.prompt.text == f"see {LONG}" * 2
        await pilot.press("f7", "ctrl+x")
        assert host.prompt.text == ""
        await paste(pilot, host.clipboard.replace("\n", "\r"))
        assert host.prompt.shown == f"see {FOLDED}" * 2
        assert host.prompt.text == f"see {LONG}" * 2
        await pilot.press("enter")
        await eventually(lambda: bool(host.sent))
        await pilot.press("ctrl+v")
        assert host.prompt.text == f"see {LONG}" * 2


async def test_a_selection_is_whole() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a")
        await paste(pilot, LONG)
        host.prompt.selection = Selection((0, 0), (0, 5))
        assert host.prompt.selected_text == "a"
        await pilot.press("f7")
        assert host.prompt.selected_text == f"a{LONG}"
        await pilot.press("z")
        assert host.prompt.text == "z"


async def test_a_message_that_was_folded_is_folded_again() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"see ")
        await paste(pilot, LONG)
        await pilot.press("enter")
        await send(pilot, host, "\n".join("abcdefghij"))
        await pilot.press("up", "up")
        assert host.prompt.shown == f"see {FOLDED}"
        await pilot.press("down")
        assert host.prompt.shown == "\n".join("abcdefghij")
        await pilot.press("up", "!", "enter")
        await eventually(lambda: len(host.sent) == 3)
        assert host.sent[2] == (f"see {LONG}!", f"see {FOLDED}!")
        assert host.prompt.put_back(f"see {LONG}")
        assert host.prompt.shown == f"see {FOLDED}"


async def test_fifty_thousand_characters_and_more() -> None:
    host = Host()
    text = "".join(f"{number} ä 漢字 \U0001f600\n" for number in range(40_000))
    async with host.run_test() as pilot:
        await paste(pilot, text)
        assert host.prompt.shown == "[pasted 40,000 lines #1]"
        await pilot.press("enter")
        await eventually(lambda: bool(host.sent))
    assert host.sent[0][0] == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("a\0b\x07c\x7fd\x9be", "abcde"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x1b]no end", "ano end"),
        ("a\x1b(Bb\x1bcd\x1b", "abd"),
        ("tab\tand\u2028lines\x0cand\x85all", "tab\tand\nlines\nand\nall"),
        ("\ud800half", "half"),
        ("\ufdd0x\ufdd1", "x"),
        ("ä 漢字 \U0001f600 \ue0b0", "ä 漢字 \U0001f600 \ue0b0"),
    ],
)
def test_cleaning(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned
    assert is_clean(text) is (text == cleaned)


async def test_a_paste_is_cleaned() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await paste(pilot, "a\x1b[31mb\0c\r\nd\re")
        assert host.prompt.text == "abc\nd\ne"


async def test_no_text_that_is_shown_again_commands_the_terminal() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.prompt.load_text("a\x1b[31mb")
        await pilot.pause()
        assert drawn_rows(host.prompt)[0].strip() == "a␛[31mb"
        assert host.prompt.text == "a\x1b[31mb"


async def test_folds_are_numbered_by_their_content_in_each_text_anew() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for text in (LONG, LONG, OTHER):
            await paste(pilot, text)
        assert host.prompt.shown == f"{FOLDED}{FOLDED}[pasted 1,501 characters #2]"
        await pilot.press("enter")
        await eventually(lambda: bool(host.sent))
        await paste(pilot, OTHER)
        assert host.prompt.shown == "[pasted 1,501 characters #1]"


async def test_an_edit_that_cuts_into_a_fold_takes_it_whole() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a")
        await paste(pilot, LONG)
        await pilot.press("b", "c")
        host.prompt.delete((0, 5), (0, len(FOLDED) + 2))
        assert host.prompt.text == "ac"
        await pilot.press("ctrl+z")
        host.prompt.delete((0, 0), (0, 5))
        assert host.prompt.text == "bc"


def test_folding_and_opening_undo_each_other() -> None:
    folds = Folds()
    written = Written("ab" + "c" * 3 + "d\n" + "c" * 3, ((2, 5), (7, 10)))
    document = folds.close(written)
    assert len(FOLD.findall(document)) == 2
    assert folds.open(document) == written
    assert folds.close(written) == document
    forged = Folds().fold("x")
    document = folds.close(Written(f"{forged}ccc{forged}", ((len(forged), len(forged) + 3),)))
    assert len(FOLD.findall(document)) == 1
