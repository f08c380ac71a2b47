"""The conversations that were kept: find one, open it, tidy up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.widgets import DataTable, Footer, Input, Static

from tui import history_worker
from tui.history_worker import (
    MOST_ROWS,
    ConversationsRead,
    HistoryChanged,
    HistoryFailed,
    HistoryUser,
)
from tui.widgets.conversation_table import ConversationTable
from tui.widgets.turn import printable

if TYPE_CHECKING:
    from edgespec.history.records import Summary
    from edgespec.history.store import History

TYPING_SECONDS = 0.15
"""Rest after a key before the search begins."""


@dataclass(frozen=True, slots=True)
class HistoryChoice:
    """The conversation to go on with."""

    conversation: int


class HistoryScreen(HistoryUser[HistoryChoice | None]):
    """A search field, a table, and a line for names while one is changed."""

    CSS_PATH = "history.tcss"
    AUTO_FOCUS = "#conversations"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("r,f2", "rename", "Rename", tooltip="An empty title is made of the first question"),
        Binding("m", "move", "Move", tooltip="Put it into a folder"),
        Binding("f", "folder", "Folder", tooltip="Show one folder after the other"),
        Binding("d,delete", "remove", "Delete", tooltip="At once; u brings it back"),
        Binding("u", "undo", "Undo", tooltip="Bring back what was deleted last"),
        Binding("e", "export", "Export", tooltip="Write it to a Markdown file"),
        Binding("escape", "leave", "Close"),
        Binding("down", "results", show=False),
    ]

    def __init__(self, open_history: Callable[[], History]) -> None:
        """`open_history` is called in a thread, and what it opens is closed when the screen is left."""
        super().__init__(open_history)
        self._asked = 0
        """Number of the newest question; older answers come too late."""
        self._choose: int | None = None
        """The conversation that the cursor goes to when the list comes."""
        self._folders: list[str] = []
        self._folder: str | None = None
        """The one that is shown; None for all."""
        self._deleted: list[Summary] = []
        """What can be undone, newest last."""
        self._edited: tuple[str, Summary] | None = None
        """What the entry line changes."""
        self._timer: Timer | None = None
        self._sought = self._shown = ""
        """What is asked for, and what the table shows."""
        self._search = Input(placeholder="Search in all conversations", id="search")
        self._table = ConversationTable()
        self._entry = Input(id="entry")
        self._state = Static("Reading the history…", id="state", markup=False)
        self._notice = Static(id="notice", markup=False)

    def compose(self) -> ComposeResult:
        """Search, table, the line for names, what is to be said, keys."""
        yield self._search
        yield self._table
        yield self._entry
        yield self._state
        yield self._notice
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Draw first, then read."""
        self._search.border_title = Text("History")
        self._ask()

    # What the user does

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer in the footer only the keys that would do something."""
        if self._edited is not None:
            return action == "leave"
        if action in {"rename", "move", "remove", "export"}:
            return self._table.chosen is not None
        if action == "undo":
            return bool(self._deleted)
        if action == "folder":
            return bool(self._folders)
        return True

    def action_search(self) -> None:
        """Write in the search field."""
        self._search.focus()

    def action_results(self) -> None:
        """From the search field down to what it found."""
        if self._search.has_focus:
            self._table.focus()

    def action_leave(self) -> None:
        """Leave the entry line, or the text of a search, or the screen."""
        if self._edited is not None:
            self._end_entry()
        elif self._search.has_focus and self._search.value:
            self._search.value = ""
            self._table.focus()
        else:
            self.dismiss(None)

    def action_rename(self) -> None:
        """Let the title be changed."""
        if chosen := self._table.chosen:
            self._begin_entry("rename", chosen, "New title", chosen.title)

    def action_move(self) -> None:
        """Let the folder be changed."""
        if chosen := self._table.chosen:
            known = f" ({', '.join(self._folders)})" if self._folders else ""
            self._begin_entry("move", chosen, f"Folder{known}", chosen.folder)

    def action_folder(self) -> None:
        """Show the next folder; after the last one all again."""
        shown = [None, *self._folders]
        place = shown.index(self._folder) if self._folder in shown else 0
        self._folder = shown[(place + 1) % len(shown)]
        self._ask()

    def action_remove(self) -> None:
        """Delete the conversation under the cursor."""
        if chosen := self._table.chosen:
            self._table.take_out(chosen.id)
            self.change(lambda history: history_worker.delete(history, chosen))

    def action_undo(self) -> None:
        """Bring back what was deleted last."""
        if self._deleted:
            last = self._deleted.pop()
            self.change(lambda history: history_worker.restore(history, last))

    def action_export(self) -> None:
        """Write the conversation under the cursor to a file."""
        if chosen := self._table.chosen:
            self.change(lambda history: history_worker.export(history, chosen))

    @on(DataTable.RowSelected)
    def _open(self) -> None:
        chosen = self._table.chosen
        if chosen is not None and self._shown == self._search.value.strip():
            self.dismiss(HistoryChoice(chosen.id))

    @on(Input.Changed, "#search")
    def _typed(self) -> None:
        self._stop_timer()
        self._timer = self.set_timer(TYPING_SECONDS, self._ask)

    @on(Input.Submitted, "#search")
    def _searched(self) -> None:
        self._ask()
        self._table.focus()

    @on(Input.Submitted, "#entry")
    def _entered(self, event: Input.Submitted) -> None:
        if self._edited is None:
            return
        (action, chosen), value = self._edited, event.value
        self._end_entry()
        act = history_worker.rename if action == "rename" else history_worker.move
        self.change(lambda history: act(history, chosen, value))

    # What the threads tell

    @on(ConversationsRead)
    def _conversations_read(self, event: ConversationsRead) -> None:
        if event.number != self._asked:
            return
        self._shown = self._sought
        self._folders = event.folders
        if self._folder is not None and self._folder not in event.folders:
            self._folder = None  # its last conversation has left it
            self._ask()
            return
        self._table.show(event.rows, found=bool(self._shown), choose=self._choose)
        self._choose = None
        where = f"History: {self._folder}" if self._folder else "History"
        self._search.border_title = Text(printable(where))
        self._say(_about(len(event.rows), self._shown))
        self.refresh_bindings()

    @on(HistoryChanged)
    def _history_changed(self, event: HistoryChanged) -> None:
        self._tell(event.told)
        if event.deleted is not None:
            self._deleted.append(event.deleted)
        if event.changed is not None:
            self._choose = event.changed.id
        self._ask()

    @on(HistoryFailed)
    def _history_failed(self, event: HistoryFailed) -> None:
        self._say("")
        self._tell(f"Error: {event.problem}", error=True)
        if event.changing:
            self._ask()

    # What follows from it

    def _ask(self) -> None:
        """For the list, or for what is searched for."""
        self._stop_timer()
        self._asked += 1
        self._sought = self._search.value.strip()
        self.read(self._asked, self._sought, self._folder)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()

    def _begin_entry(self, action: str, chosen: Summary, title: str, value: str) -> None:
        self._edited = (action, chosen)
        known = self._folders if action == "move" else []
        self._entry.suggester = SuggestFromList(known, case_sensitive=False)
        self._entry.border_title = Text(printable(title))
        self._entry.border_subtitle = Text("Enter saves, Esc does not")
        self._entry.value = printable(value)
        self._entry.display = True
        self._entry.focus()
        self.refresh_bindings()

    def _end_entry(self) -> None:
        self._edited = None
        self._entry.display = False
        self.refresh_bindings()
        self._table.focus()

    def _say(self, text: str) -> None:
        """Something about the whole list; nothing takes the line away."""
        self._state.update(printable(text))
        self._state.display = bool(text)

    def _tell(self, text: str, *, error: bool = False) -> None:
        """What was done, or why not."""
        self._notice.update(printable(text))
        self._notice.set_class(error, "-error")


def _about(count: int, searched: str) -> str:
    if not count:
        return f"Nothing has {searched!r}." if searched else "No conversation is kept here yet."
    if count == MOST_ROWS:
        return f"These are the newest {MOST_ROWS}. Searching finds the others."
    return ""
