"""The screen of kept conversations, on a real history."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Footer, Input, Static
from textual.widgets._footer import FooterKey

from edgespec.history.problem import HistoryProblem
from edgespec.history.store import History
from tests.history.talking import talk, texts
from tui.history_worker import ConversationsRead
from tui.screens import history as module
from tui.screens.history import HistoryChoice, HistoryScreen
from tui.widgets.conversation_table import ConversationTable

GENEROUS_SECONDS = 30
NOTHING = object()


class Host(App[None]):
    """Shows the screen, and keeps what it was left with."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        super().__init__()
        self._open_history = open_history
        self.result: object = NOTHING

    def on_mount(self) -> None:
        self.push_screen(HistoryScreen(self._open_history), self._keep)

    def _keep(self, result: HistoryChoice | None) -> None:
        self.result = result


class Rig:
    """The app, driven, beside the history as others see it."""

    def __init__(self, place: Path) -> None:
        self.history = History.open(place)
        self.opened: list[History] = []
        self.app = Host(self._open)
        self._place = place

    def _open(self) -> History:
        self.opened.append(History.open(self._place))
        return self.opened[-1]

    @property
    def screen(self) -> HistoryScreen:
        found = self.app.screen
        assert isinstance(found, HistoryScreen)
        return found

    @property
    def table(self) -> ConversationTable:
        return self.screen.query_one(ConversationTable)

    @property
    def rows(self) -> list[list[str]]:
        return [[cell.plain for cell in self.table.get_row_at(n)] for n in range(len(self.titles))]

    @property
    def titles(self) -> list[str]:
        return [self.table.get_row_at(n)[0].plain for n in range(self.table.row_count)]

    @property
    def chosen(self) -> str:
        return "" if self.table.chosen is None else self.table.chosen.title

    @property
    def search(self) -> Input:
        return self.screen.query_one("#search", Input)

    @property
    def entry(self) -> Input:
        return self.screen.query_one("#entry", Input)

    @property
    def notice(self) -> str:
        return str(self.screen.query_one("#notice", Static).content)

    @property
    def state(self) -> str:
        line = self.screen.query_one("#state", Static)
        return str(line.content) if line.display else ""

    @property
    def drawn(self) -> str:
        strips = self.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def footer(self) -> str:
        keys = self.screen.query_one(Footer).query(FooterKey)
        return " ".join(key.description for key in keys)


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    end = time.monotonic() + GENEROUS_SECONDS
    while not condition():
        assert time.monotonic() < end, "the screen never came to what the test waits for"
        await asyncio.sleep(0.01)
    await pilot.pause()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path / "history.db")
    with closing(made.history):
        yield made


@pytest.fixture
def three(rig: Rig) -> dict[str, int]:
    return {
        "apples": talk(rig.history, "apples", "are red"),
        "pears": talk(rig.history, "pears", "are green", "and?", "sweet", folder="fruit"),
        "模型": talk(rig.history, "模型", "更快"),
    }


async def shows(rig: Rig, pilot: Pilot[None], *words: str) -> None:
    await until(pilot, lambda: all(word in rig.drawn for word in words))


async def listed(rig: Rig, pilot: Pilot[None], *titles: str) -> None:
    await until(pilot, lambda: rig.titles == list(titles))


async def test_enter_opens(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        assert rig.rows[1][2:] == ["4", "m1", "fruit"]
        assert rig.rows[0][4] == "-"
        await shows(rig, pilot, "模型", "pears", "apples", "fruit", "m1", "Search in all")
        await pilot.press("down", "enter")
        await until(pilot, lambda: rig.app.result is not NOTHING)
        assert rig.app.result == HistoryChoice(three["pears"])


@pytest.mark.parametrize("size", [(80, 24), (160, 50), (40, 12)])
async def test_every_size(rig: Rig, three: dict[str, int], size: tuple[int, int]) -> None:
    talk(rig.history, "a title that is much longer than the table is wide " * 5, folder="f" * 50)
    async with rig.app.run_test(size=size) as pilot:
        await until(pilot, lambda: len(rig.titles) == 4)
        await shows(rig, pilot, "apples")
        assert len(rig.drawn.splitlines()) == size[1]
        assert not rig.table.allow_horizontal_scroll or size[0] < 80
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: len(rig.drawn.splitlines()) == 30)
        await shows(rig, pilot, "apples", "Open")
        assert rig.chosen.startswith("a title")


async def test_all_keys_fit_on_80_columns(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        words = ("Open", "Search", "Rename", "Move", "Folder", "Delete", "Export", "Close")
        await until(pilot, lambda: all(word in rig.drawn.splitlines()[-1] for word in words))
        assert "Undo" not in rig.footer


async def test_an_empty_history(rig: Rig) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "No conversation" in rig.state)
        for key in ("enter", "r", "m", "f", "d", "u", "e", "delete", "backspace"):
            await pilot.press(key)
        assert rig.app.result is NOTHING
        assert not rig.entry.display
        await pilot.press("escape")
        await until(pilot, lambda: rig.app.result is None)


async def test_searching_while_typing(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("slash", "s", "w", "e")
        await listed(rig, pilot, "pears")
        await shows(rig, pilot, "[sweet]")
        await pilot.press("x")
        await until(pilot, lambda: rig.state == "Nothing has 'swex'.")
        assert rig.titles == []
        await pilot.press("backspace", "backspace", "backspace", "backspace")
        await listed(rig, pilot, "模型", "pears", "apples")
        assert rig.state == ""
        rig.search.value = "更快"
        await listed(rig, pilot, "模型")
        await pilot.press("escape")
        await listed(rig, pilot, "模型", "pears", "apples")
        assert rig.table.has_focus


async def test_enter_opens_nothing_that_was_not_searched_for(
    rig: Rig, three: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TYPING_SECONDS", 3600.0)
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("slash", "r", "e", "d", "down", "enter")
        assert rig.app.result is NOTHING
        await pilot.press("slash", "enter")
        await listed(rig, pilot, "apples")
        await pilot.press("enter")
        await until(pilot, lambda: rig.app.result == HistoryChoice(three["apples"]))


async def test_an_answer_that_comes_too_late_is_not_shown(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        rig.screen.post_message(ConversationsRead(0, [], []))
        await pilot.pause()
        assert len(rig.titles) == 3


@pytest.mark.parametrize("key", ["r", "f2"])
async def test_rename(rig: Rig, three: dict[str, int], key: str) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("down", key)
        assert rig.entry.display
        assert rig.entry.has_focus
        assert rig.entry.value == "pears"
        await shows(rig, pilot, "New title")
        await pilot.press("x", "escape")
        assert not rig.entry.display
        assert rig.app.result is NOTHING
        assert rig.table.has_focus
        assert rig.history.summary(three["pears"]).title == "pears"
        await pilot.press(key)
        rig.entry.value = "[b]my"
        await pilot.press("enter")
        await listed(rig, pilot, "模型", "[b]my", "apples")
        assert rig.chosen == "[b]my"
        await shows(rig, pilot, "[b]my")
        assert rig.notice == "Renamed to “[b]my”."
        await pilot.press(key)
        rig.entry.value = ""
        await pilot.press("enter")
        await listed(rig, pilot, "模型", "pears", "apples")


async def test_move_and_folders(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("m")
        await shows(rig, pilot, "Folder (fruit)")
        await pilot.press("f", "r")
        await until(pilot, lambda: rig.entry._suggestion == "fruit")
        await pilot.press("right", "enter")
        await until(pilot, lambda: rig.history.summary(three["模型"]).folder == "fruit")
        await until(pilot, lambda: rig.rows[0][4] == "fruit")
        assert rig.chosen == "模型"
        await pilot.press("f")
        await listed(rig, pilot, "模型", "pears")
        await shows(rig, pilot, "History: fruit")
        await pilot.press("m")
        rig.entry.value = ""
        await pilot.press("enter")
        await listed(rig, pilot, "pears")
        assert rig.history.summary(three["模型"]).folder == ""
        await pilot.press("m")
        rig.entry.value = " "
        await pilot.press("enter")
        await listed(rig, pilot, "模型", "pears", "apples")
        assert "History: fruit" not in rig.drawn, "the folder is empty, so that all are shown"


@pytest.mark.parametrize("key", ["d", "delete"])
async def test_delete_and_undo(rig: Rig, three: dict[str, int], key: str) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("down", key)
        await until(pilot, lambda: "u brings it back" in rig.notice)
        await listed(rig, pilot, "模型", "apples")
        assert rig.chosen == "apples"
        assert len(rig.history.list()) == 2
        await until(pilot, lambda: "Undo" in rig.footer)
        await pilot.press(key)
        await until(pilot, lambda: len(rig.history.list()) == 1)
        await until(pilot, lambda: "apples" in rig.notice)
        await pilot.press("u")
        await listed(rig, pilot, "模型", "apples")
        assert rig.chosen == "apples"
        await pilot.press("u")
        await listed(rig, pilot, "模型", "pears", "apples")
        assert rig.chosen == "pears"
        assert rig.notice == "Brought back “pears”."
        await pilot.press("u")
        assert texts(rig.history, three["pears"]) == ["pears", "are green", "and?", "sweet"]


async def test_keys_pressed_quickly_delete_one_after_the_other(
    rig: Rig, three: dict[str, int]
) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        rig.screen.action_remove()
        rig.screen.action_remove()
        await until(pilot, lambda: len(rig.history.list()) == 1)
        await listed(rig, pilot, "apples")


async def test_backspace_deletes_nothing(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("backspace", "ctrl+h", "ctrl+w")
        await pilot.press("slash", "backspace", "delete", "d", "escape")
        await pilot.pause()
        assert len(rig.history.list()) == 3


async def test_export(
    rig: Rig, three: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("down", "e")
        await until(pilot, lambda: "pears.md" in rig.notice)
        await pilot.press("e")
        await until(pilot, lambda: "pears-2.md" in rig.notice)
        assert str(tmp_path) in rig.notice
        assert "are green" in (tmp_path / "pears.md").read_text(encoding="utf-8")


async def test_a_history_that_cannot_be_opened(rig: Rig) -> None:
    def refuse() -> History:
        raise HistoryProblem("No room [here].", "Make some.")

    app = Host(refuse)
    async with app.run_test(size=(80, 24)) as pilot:
        notice = app.screen.query_one("#notice", Static)
        await until(pilot, lambda: bool(str(notice.content)))
        assert str(notice.content) == "Error: No room [here]. Make some."
        assert notice.has_class("-error")
        await pilot.press("escape")
        await until(pilot, lambda: app.result is None)


async def test_a_change_that_fails_is_told_and_taken_back(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")

        def refuse(conversation: int) -> None:
            raise HistoryProblem("The disk is full.", "Make room.")

        rig.opened[0].delete = refuse  # type: ignore[method-assign]
        await pilot.press("d")
        await until(pilot, lambda: rig.notice == "Error: The disk is full. Make room.")
        await listed(rig, pilot, "模型", "pears", "apples")
        assert "Undo" not in rig.footer


async def test_no_text_commands_the_terminal(rig: Rig) -> None:
    number = talk(rig.history, "\x1b[31mred\x07 needle", "x")
    rig.history.move(number, "f\x1b]0;title\x07")
    async with rig.app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: len(rig.titles) == 1)
        await shows(rig, pilot, "␛[31mred")
        assert "\x1b" not in rig.drawn
        await pilot.press("m")
        await shows(rig, pilot, "f␛]0;title␇")
        assert "\x1b" not in rig.drawn
        await pilot.press("escape", "d")
        await until(pilot, lambda: "Deleted" in rig.notice)
        assert "\x1b" not in rig.drawn
        await pilot.press("u", "slash", *"needle")
        await shows(rig, pilot, "[needle]")
        assert "\x1b" not in rig.drawn


async def test_many(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 5)
    monkeypatch.setattr("tui.history_worker.MOST_ROWS", 5)
    for number in range(7):
        talk(rig.history, f"talk {number}")
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(rig.titles) == 5)
        assert rig.titles[0] == "talk 6"
        assert "newest 5" in rig.state


async def test_it_is_closed_when_it_is_left(rig: Rig, three: dict[str, int]) -> None:
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")
        await pilot.press("escape")

        def closed() -> bool:
            try:
                rig.opened[0].list()
            except HistoryProblem:
                return True
            return False

        await until(pilot, closed)
        assert len(rig.opened) == 1


async def test_leaving_does_not_wait_for_a_slow_search(rig: Rig, three: dict[str, int]) -> None:
    gate, reached = threading.Event(), threading.Event()

    async with rig.app.run_test(size=(80, 24)) as pilot:
        await listed(rig, pilot, "模型", "pears", "apples")

        def slow(text: str, *, limit: int = 50) -> list[object]:
            with rig.opened[0]._db.reading():
                reached.set()
                gate.wait(GENEROUS_SECONDS)
            return []

        rig.opened[0].search = slow  # type: ignore[method-assign,assignment]
        await pilot.press("slash", "x")
        await until(pilot, reached.is_set)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: rig.app.result is None)
        gate.set()
