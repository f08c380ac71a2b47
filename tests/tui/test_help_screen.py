from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual.app import App
from textual.binding import BindingType
from textual.widgets import TextArea

from tests.tui.prompt_host import drawn
from tui.commands import COMMANDS, command_bindings
from tui.screens.help import TERMINALS, HelpScreen, key_lines, key_name
from tui.widgets.prompt import Prompt

KEYS: dict[str, Sequence[BindingType]] = {
    "Conversation": command_bindings(),
    "Prompt": Prompt.BINDINGS,
    "Editing": TextArea.BINDINGS,
}


class HelpApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    def on_mount(self) -> None:
        self.push_screen(HelpScreen(KEYS), callback=self._note_close)

    def _note_close(self, _: None) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("size", "theme"), [((80, 24), "textual-light"), ((200, 50), "textual-dark")]
)
async def test_all_keys_and_commands_can_be_read(size: tuple[int, int], theme: str) -> None:
    app = HelpApp()
    async with app.run_test(size=size) as pilot:
        app.theme = theme
        await pilot.pause()
        page = app.screen.query_one("#help-page")
        rows = drawn(pilot)
        assert "Conversation" in rows[2]
        assert "Commands" in rows[2]
        seen: list[str] = []
        for _ in range(40):
            seen += [row.strip() for row in drawn(pilot)]
            if page.scroll_y >= page.max_scroll_y:
                break
            await pilot.press("pagedown")
            await pilot.wait_for_scheduled_animations()
        text = "\n".join(seen)
        for command in COMMANDS:
            assert command.usage in text
        for key in ("Ctrl+J", "Shift+Enter", "Ctrl+Up", "Page Down", "F1", "Tab", "Ctrl+Z"):
            assert key in text
        for heading, _ in TERMINALS:
            assert f"{heading}:" in text
        assert page.max_scroll_x == 0


async def test_escape_closes_it() -> None:
    app = HelpApp()
    async with app.run_test() as pilot:
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)
        assert app.closed == 1


async def test_a_key_is_named_where_it_acts() -> None:
    app = HelpApp()
    async with app.run_test(size=(100, 200)) as pilot:
        rows = drawn(pilot)
        left = [row[:48] for row in rows]
        assert sum(row.strip().startswith("Enter ") for row in left) == 1
        assert sum("Page Up" in row for row in left) == 1
        assert sum(row.strip().startswith("Ctrl+R ") for row in left) == 1
        assert any("Ctrl+R" in row[48:] and "/again" in row[48:] for row in rows)


def test_the_words_on_terminals_name_what_differs() -> None:
    text = " ".join(f"{heading} {words}" for heading, words in TERMINALS)
    for word in (
        "Windows Terminal",
        "macOS",
        "tmux",
        "Meta",
        "Ctrl+J",
        "Ctrl+Q",
        "backslash",
        "F1",
    ):
        assert word in text


def test_keys_as_people_write_them() -> None:
    assert key_name("ctrl+shift+up") == "Ctrl+Shift+Up"
    assert key_name("ctrl+j") == "Ctrl+J"
    assert key_name("pageup") == "Page Up"
    assert key_name("f1") == "F1"
    assert key_name("escape") == "Esc"
    assert key_name("ctrl+underscore") == "Ctrl+_"


def test_keys_of_one_action_are_one_line_and_known_ones_are_left_out() -> None:
    lines = key_lines([("a,ctrl+b", "x", "Does x"), ("c", "y", ""), ("d", "z", "Does z")], {"D"})
    assert lines == [(["A", "Ctrl+B"], "Does x")]
