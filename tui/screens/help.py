"""What the keys and the commands do, made from the bindings and the table of commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from tui.commands import COMMANDS, Command

TERMINALS: tuple[tuple[str, str], ...] = (
    (
        "A new line",
        "Ctrl+J makes one everywhere, and so does a backslash at the end of the line, then Enter. "
        "Alt+Enter does it where Alt comes through, but Windows Terminal takes it for full screen. "
        "Shift+Enter does it where the terminal tells it from Enter: kitty, Ghostty, WezTerm, foot, "
        "iTerm2. Windows Terminal and macOS Terminal don't, and send Enter.",
    ),
    (
        "tmux",
        "It passes Shift+Enter on from version 3.5, with `set -s extended-keys always`. Its prefix, "
        "Ctrl+B, never comes here.",
    ),
    (
        "Alt on macOS",
        "Option writes special characters until it is made Meta. Terminal: Settings, Profiles, "
        "Keyboard, Use Option as Meta Key. iTerm2: Profiles, Keys, Left Option Key, Esc+.",
    ),
    (
        "Ctrl+Q",
        "On some lines it is flow control and starts what Ctrl+S stopped. EdgeSpec switches that off "
        "for itself; where something between still keeps the key, use /quit.",
    ),
    (
        "F1 to F12",
        "Some window managers, browsers and laptops keep them, and tmux needs a TERM that has them, "
        "such as tmux-256color. Every command can be typed instead, and Ctrl+P lists them all.",
    ),
    (
        "Ctrl+Up and Down",
        "macOS keeps them for Mission Control. Up and Down walk as well: from a text of one line, "
        "from the start, and from the end.",
    ),
)

_NAMES = {
    "escape": "Esc",
    "pageup": "Page Up",
    "pagedown": "Page Down",
    "question_mark": "?",
    "slash": "/",
    "underscore": "_",
    "minus": "-",
}


def key_name(key: str) -> str:
    """A key as people write it, from Textual's name for it."""
    return "+".join(_NAMES.get(part, part.capitalize()) for part in key.split("+"))


def key_lines(
    bindings: Iterable[BindingType], known: Iterable[str] = ()
) -> list[tuple[list[str], str]]:
    """Keys and what they do, a line for each description; without the keys in `known`."""
    lines: dict[str, list[str]] = {}
    for binding in Binding.make_bindings(bindings):
        name = key_name(binding.key)
        if binding.description and not binding.system and name not in known:
            lines.setdefault(binding.description, []).append(name)
    return [(names, description) for description, names in lines.items()]


class HelpScreen(Screen[None]):
    """Two columns, and below them what differs from terminal to terminal."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q", "dismiss", "Close"),
    ]

    def __init__(
        self,
        keys: Mapping[str, Sequence[BindingType]],
        commands: Sequence[Command] = COMMANDS,
    ) -> None:
        """`keys`: bindings by heading; a key that an earlier heading has is left out of later ones."""
        super().__init__()
        self._keys = keys
        self._commands = commands

    def compose(self) -> ComposeResult:
        """Everything on one page that scrolls."""
        yield Static("Help", id="help-title", markup=False)
        with VerticalScroll(id="help-page"):
            with Horizontal(id="help-columns"):
                yield Static(self._key_column(), id="help-keys")
                yield Static(self._command_column(), id="help-commands")
            yield Static(_notes(), id="help-terminals")
        yield Footer()

    def on_mount(self) -> None:
        """Arrows and Page Down scroll at once."""
        self.query_one("#help-page").focus()

    def _key_column(self) -> Table:
        table = _table()
        known: set[str] = set()
        for heading, bindings in self._keys.items():
            lines = key_lines(bindings, known)
            known.update(name for names, _ in lines for name in names)
            if lines:
                table.add_row(Text(heading, style="bold underline"))
            for names, description in lines:
                table.add_row(Text("\n".join(names), style="bold"), Text(description))
        return table

    def _command_column(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_row(Text("Commands", style="bold underline"))
        for command in self._commands:
            usage = Text(command.usage, style="bold")
            if command.key:
                usage.append(f"  {key_name(command.key)}", style="not bold")
            table.add_row(usage)
            table.add_row(Text(f"  {command.about}"))
        table.add_row(Text("//word  sends a message that begins with /word"))
        return table


def _table() -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    return table


def _notes() -> Text:
    lines = [Text("Terminals", style="bold underline")]
    for heading, text in TERMINALS:
        lines.append(Text.assemble((f"{heading}: ", "bold"), text))
    return Text("\n").join(lines)
