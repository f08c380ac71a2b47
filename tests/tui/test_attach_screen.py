"""Choosing files, and what they cost before they are sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import tui.screens.attach
from edgespec.attachments import block, read
from edgespec.errors import DecodeError
from edgespec.finding import Found
from tests.tui.driving import until
from tests.tui.fake_session import Gate
from tests.tui.hosting import Host, picture, words
from tui.screens.attach import AttachScreen
from tui.widgets.file_list import FileList


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in."""
    (tmp_path / "a.md").write_text("alpha\n")
    (tmp_path / "b.py").write_text("beta = 1\n")
    (tmp_path / "p.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "[c].txt").write_bytes(b"caf\xe9\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def host(room: int = 1000, start: str = "", count: Callable[[str], int] = len) -> Host:
    return Host(AttachScreen(count, room, start))


async def shown(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, AttachScreen))


def field(pilot: Pilot[None]) -> Input:
    return pilot.app.screen.query_one(Input)


def listed(pilot: Pilot[None]) -> FileList:
    return pilot.app.screen.query_one(FileList)


async def look(pilot: Pilot[None], pattern: str) -> None:
    """Write a pattern, and wait for what it brings."""
    field(pilot).focus()
    field(pilot).value = pattern
    await pilot.press("enter")
    await until(pilot, lambda: not searching(pilot))


def searching(pilot: Pilot[None]) -> bool:
    screen = pilot.app.screen
    assert isinstance(screen, AttachScreen)
    return bool(screen._searching)


async def taken(app: Host, pilot: Pilot[None]) -> list[str]:
    await until(pilot, lambda: bool(app.results))
    (result,) = app.results
    assert result is not None
    return [attachment.name for attachment in result]


async def test_a_file_its_cost_and_what_is_free(files: Path) -> None:
    app = host(room=500)
    cost = len(block(read(files / "a.md")))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert words(pilot, "#summary") == "No file is chosen. 500 tokens are free in the context."
        await look(pilot, "a.md")
        assert words(pilot, "#summary") == f"1 file, {cost} of 500 free tokens."
        row = next(line for line in picture(pilot).splitlines() if "a.md" in line)
        assert row.split() == ["▊", "[x]", str(cost), "tokens", "6", "B", "Markdown", "a.md", "▎"]
        assert field(pilot).value == ""
        await pilot.press("enter")
        assert await taken(app, pilot) == ["a.md"]
    assert app.results == [(read(files / "a.md"),)]


async def test_space_takes_and_leaves(files: Path) -> None:
    app = host()
    costs = [len(block(read(files / name))) for name in ("a.md", "b.py")]
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await look(pilot, "*.[mp][dy]")
        assert words(pilot, "#summary").startswith(f"2 files, {sum(costs)} of 1000")
        await pilot.press("space")
        await until(pilot, lambda: words(pilot, "#summary").startswith("1 file,"))
        assert f"1 file, {costs[1]} of" in words(pilot, "#summary")
        assert "[ ]" in picture(pilot)
        await pilot.press("space", "down", "space", "enter")
        assert await taken(app, pilot) == ["a.md"]


async def test_files_of_several_patterns_come_together_and_once(files: Path) -> None:
    app = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await look(pilot, "b.py")
        await pilot.press("space")
        await look(pilot, "*.md")
        await look(pilot, str(files / "b.py"))
        assert len(listed(pilot).rows) == 2
        assert [row.taken for row in listed(pilot).rows] == [True, True], "asked for again"
        field(pilot).focus()
        await pilot.press("enter")
        assert await taken(app, pilot) == ["b.py", "a.md"]


async def test_what_does_not_fit_is_said_in_words(files: Path) -> None:
    app = host(room=50)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await look(pilot, "*.md")
        assert words(pilot, "#summary").startswith("1 file, 3")
        await look(pilot, "*.py")
        said = words(pilot, "#summary")
        assert said.startswith("Does not fit: 2 files, ")
        assert "but 50 are free" in said
        assert "--ctx" in said
        assert "Does not fit" in picture(pilot)
        assert app.screen.query_one("#summary").has_class("-warning")
        await pilot.press("space")
        await until(pilot, lambda: "of 50 free" in words(pilot, "#summary"))
        assert not app.screen.query_one("#summary").has_class("-warning")
        await pilot.press("space", "enter")
        assert await taken(app, pilot) == ["a.md", "b.py"], "the user decides"


async def test_no_room_is_not_less_than_none() -> None:
    async with host(room=-7).run_test() as pilot:
        await shown(pilot)
        assert " 0 tokens are free" in words(pilot, "#summary")


async def test_nothing_is_attached_before_it_is_counted() -> None:
    gate = Gate()
    threads: list[threading.Thread] = []

    def count(text: str) -> int:
        threads.append(threading.current_thread())
        gate.wait()
        return len(text)

    app = host(count=count)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        field(pilot).value = "a.md"
        await pilot.press("enter")
        await until(pilot, lambda: gate.reached.is_set() and len(listed(pilot).rows) == 1)
        assert "counting…" in picture(pilot)
        assert "Counting…" in words(pilot, "#summary")
        listed(pilot).focus()
        await pilot.press("enter")
        await until(pilot, lambda: "One moment" in words(pilot, "#notes"))
        assert app.results == []
        gate.open()
        await until(pilot, lambda: not searching(pilot))
        listed(pilot).focus()
        await pilot.press("enter")
        assert await taken(app, pilot) == ["a.md"]
    assert threads[0] is not threading.main_thread()


async def test_leaving_does_not_wait_for_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    ended = threading.Event()
    counted = 0

    def count(_: str) -> int:
        nonlocal counted
        counted += 1
        gate.wait()
        return 1

    class Paths(list[Path]):
        def __iter__(self) -> Iterator[Path]:
            try:
                yield from (Path("a.md"), Path("b.py"))
            finally:
                ended.set()

    monkeypatch.setattr(tui.screens.attach, "survey", lambda *_: Found(Paths()))
    app = host(count=count)
    async with app.run_test() as pilot:
        await shown(pilot)
        field(pilot).value = "*"
        await pilot.press("enter")
        await until(pilot, gate.reached.is_set)
        await pilot.press("escape")
        await until(pilot, lambda: app.results == [None])
        await until(pilot, lambda: not isinstance(app.screen, AttachScreen))
        gate.open()
        await until(pilot, ended.is_set)
    assert counted == 1, "the second file is not looked at any more"


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("p.png", "p.png holds no text."),
        ("b.md", "Did you mean a.md?"),
        ("*.rs", "brings no file"),
        ("inner", "is not UTF-8"),
        (".", "Left out of .: 1 file, empty or neither text nor PDF."),
    ],
)
async def test_what_is_left_out_or_guessed_is_told(pattern: str, part: str) -> None:
    async with host().run_test(size=(110, 24)) as pilot:
        await shown(pilot)
        await look(pilot, pattern)
        assert part in words(pilot, "#notes")
        assert part in picture(pilot)
        if not listed(pilot).rows:
            assert field(pilot).value == pattern, "to be corrected"
            assert field(pilot).has_focus


async def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    async with host().run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await look(pilot, "inner")
        assert "inner/[c].txt" in picture(pilot)


async def test_what_cannot_be_counted_can_still_be_sent() -> None:
    def count(_: str) -> int:
        raise DecodeError("no model")

    app = host(count=count)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await look(pilot, "a.md")
        assert "? tokens" in picture(pilot)
        assert "could not be counted" in words(pilot, "#summary")
        await pilot.press("enter")
        assert await taken(app, pilot) == ["a.md"]


async def test_a_mistake_of_ours_does_not_leave_it_waiting() -> None:
    def count(_: str) -> int:
        raise ZeroDivisionError("ours")

    async with host(count=count).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await look(pilot, "a.md")
        assert "The search failed: ours" in words(pilot, "#notes")


async def test_a_start_is_looked_for_at_once(files: Path) -> None:
    app = host(start=f"'{files / 'a.md'}'")
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: listed(pilot).has_focus)
        await pilot.press("enter")
        assert await taken(app, pilot) == ["a.md"]


async def test_nothing_chosen_is_told() -> None:
    app = host(start="a.md")
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: listed(pilot).has_focus)
        await pilot.press("space", "enter")
        await until(pilot, lambda: "Space takes" in words(pilot, "#notes"))
        await pilot.press("escape")
        await until(pilot, lambda: bool(app.results))
    assert app.results == [None]


async def test_tab_completes_a_path_and_then_leads_on() -> None:
    async with host().run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("i", "n", "tab")
        await until(pilot, lambda: field(pilot).value == "inner/")
        assert field(pilot).cursor_at_end
        await pilot.press("tab")
        await until(pilot, lambda: field(pilot).value == "inner/[c].txt")
        await pilot.press("tab")
        await until(pilot, lambda: listed(pilot).has_focus)


async def test_a_completion_is_shown_while_writing() -> None:
    async with host().run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("i")
        await until(pilot, lambda: "inner/" in picture(pilot))
        await pilot.press("right")
        await until(pilot, lambda: field(pilot).value == "inner/")


async def test_a_click_takes_and_leaves_one() -> None:
    app = host(start="*.md")
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: listed(pilot).has_focus)
        await pilot.click(FileList, offset=(6, 1))
        await until(pilot, lambda: "No file is chosen" in words(pilot, "#summary"))
        assert app.results == []


@pytest.mark.parametrize("size", [(80, 24), (60, 18), (150, 50)])
async def test_all_is_there_at_every_size(size: tuple[int, int]) -> None:
    async with host(start=".", room=9).run_test(size=size) as pilot:
        await shown(pilot)
        await until(pilot, lambda: listed(pilot).has_focus)
        drawn = picture(pilot)
        assert "[x]" in drawn
        assert "Does not fit" in drawn
        assert "Left out" in drawn
        assert len(drawn.splitlines()) == size[1]
