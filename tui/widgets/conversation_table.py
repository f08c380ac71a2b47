"""A table of conversations: a list of all, or what a search has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from tui.widgets.turn import printable

if TYPE_CHECKING:
    from edgespec.history.records import Summary

_WHEN, _COUNT, _MODEL, _FOLDER = 10, 4, 14, 10
"""Cells of the columns that have a fixed width."""
_LEAST = 12
"""Cells of the others, however narrow the terminal."""


@dataclass(frozen=True, slots=True)
class Row:
    """One conversation."""

    summary: Summary
    snippet: str | None = None
    """What was found in it, in [ and ]; None in a list."""


class ConversationTable(DataTable[Text]):
    """Rows are kept, so that another width can be drawn at once."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open")]

    def __init__(self) -> None:
        super().__init__(id="conversations", cursor_type="row", zebra_stripes=True)
        self._shown: list[Row] = []
        self._found = False
        self._width = 0

    @property
    def chosen(self) -> Summary | None:
        """The conversation under the cursor."""
        row = self.cursor_row
        return self._shown[row].summary if 0 <= row < len(self._shown) else None

    def show(self, rows: Sequence[Row], *, found: bool, choose: int | None = None) -> None:
        """Show these; `found` says that they have snippets. The cursor stays, or goes to `choose`."""
        before = self.chosen
        wanted = choose if choose is not None else before.id if before else None
        place = self.cursor_row
        self._shown, self._found = list(rows), found
        self._draw()
        numbers = [row.summary.id for row in rows]
        if wanted in numbers:
            place = numbers.index(wanted)
        self.move_cursor(row=min(place, max(len(rows) - 1, 0)))

    def take_out(self, conversation: int) -> None:
        """Remove a row at once; the cursor goes to the next one."""
        place = self.cursor_row
        self._shown = [row for row in self._shown if row.summary.id != conversation]
        self._draw()
        self.move_cursor(row=min(place, max(len(self._shown) - 1, 0)))

    def on_resize(self, event: events.Resize) -> None:
        """Another width gives other columns."""
        if event.size.width != self._width:
            place = self.cursor_row
            self._width = event.size.width
            self._draw()
            self.move_cursor(row=place)

    def _draw(self) -> None:
        self.clear(columns=True)
        for label, width in _columns(self._width or self.app.size.width, self._found):
            self.add_column(Text(label), width=width)
        for row in self._shown:
            cells = _found_cells(row) if self._found else _listed_cells(row.summary)
            self.add_row(*map(_cell, cells))


def moment(when: datetime, now: datetime) -> str:
    """The time of a moment of today, else its day; in local time."""
    local = when.astimezone()
    return f"{local:%H:%M}" if local.date() == now.astimezone().date() else f"{local:%Y-%m-%d}"


def _columns(width: int, found: bool) -> list[tuple[str, int]]:
    """Labels, and cells without the padding of one on each side; two are the scroll bar's."""
    if found:
        rest = max(width - 2 - 3 * 2 - _WHEN, 2 * _LEAST)
        return [("Title", rest * 2 // 5), ("Found", rest - rest * 2 // 5), ("When", _WHEN)]
    spare = max(width - 80, 0) // 4
    model, folder = _MODEL + spare, _FOLDER + spare
    title = max(width - 2 - 5 * 2 - _WHEN - _COUNT - model - folder, _LEAST)
    fixed = [("When", _WHEN), ("Msgs", _COUNT), ("Model", model), ("Folder", folder)]
    return [("Title", title), *fixed]


def _listed_cells(one: Summary) -> tuple[str, ...]:
    when = moment(one.updated_at, datetime.now().astimezone())
    return one.title, when, str(one.messages), one.model or "-", one.folder or "-"


def _found_cells(row: Row) -> tuple[str, ...]:
    one, snippet = row.summary, row.snippet or ""
    # The column is narrow: the match must be near its beginning.
    start = max(snippet.find("[") - 12, 0)
    near = f"…{snippet[start:].lstrip()}" if start else snippet
    return one.title, near, moment(one.updated_at, datetime.now().astimezone())


def _cell(text: str) -> Text:
    return Text(" ".join(printable(text).split()), no_wrap=True, overflow="ellipsis")
