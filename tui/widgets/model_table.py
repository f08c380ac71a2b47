"""The list of models as a table that fills the width. Knows rows and words, no downloads and no screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from edgespec.shelf.row import Row
from model_registry.sizes import human_size
from tui.widgets.turn import printable

UNKNOWN = "—"

_HEADS = ("Name", "Size", "Fit", "Tok/s", "Where, what for")
_RIGHT = frozenset({"Size", "Tok/s"})
_FIXED = {"Size": 8, "Fit": 7, "Tok/s": 11}
_PADDING = 2 * len(_HEADS)
_SCROLLBAR = 1
_NAME = (12, 44)
"""Least and most columns of a name."""


def cells(row: Row, state: str) -> tuple[str, ...]:
    """One row in words; `state` is what happens to it, in the place of where it is."""
    if state:
        where = state
    elif row.where == "unfinished":
        share = f" {row.done * 100 // row.size} %" if row.size else ""
        where = f"unfinished{share}"
    elif row.where == "here" and not row.whole:
        where = "here, files gone"
    else:
        where = row.where
    return (
        printable(row.name),
        human_size(row.size) if row.size else UNKNOWN,
        str(row.fit),
        speed(row),
        printable(f"{where}: {row.use}" if row.use else where),
    )


def speed(row: Row) -> str:
    """Measured tokens a second and what drafting makes of it, as in 12.3 times 1.4."""
    if row.speed is None:
        return UNKNOWN
    number = f"{row.speed:.0f}" if row.speed >= 99.95 else f"{row.speed:.1f}"
    gain = f" ×{row.speed_up:.1f}" if row.speed_up else ""
    return f"{'~' * row.rough}{number}{gain}"


class ModelTable(DataTable[Text]):
    """One row a model; Enter posts `RowSelected`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Use/fetch")]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", show_row_labels=False)
        self._shown: dict[str, tuple[str, ...]] = {}
        self._width = 0

    @property
    def current(self) -> str | None:
        """The key of the row that the cursor is on."""
        keys = list(self._shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def show(self, rows: Sequence[Row], states: Mapping[str, str]) -> None:
        """Show these, in this order; only what has changed is drawn."""
        wanted = {row.key: cells(row, states.get(row.key, "")) for row in rows}
        if list(wanted) == list(self._shown) and self.columns:
            for key, texts in wanted.items():
                for head, text, before in zip(_HEADS, texts, self._shown[key], strict=True):
                    if text != before:
                        self.update_cell(key, head, _cell(head, text))
            self._shown = wanted
        else:
            self._fill(wanted)

    def on_resize(self, event: events.Resize) -> None:
        """Spread the columns anew."""
        if event.size.width != self._width:
            self._width = event.size.width
            self._fill(self._shown, columns=True)

    def _fill(self, wanted: dict[str, tuple[str, ...]], *, columns: bool = False) -> None:
        """Draw all rows, and keep the cursor on the one that it is on."""
        current, row = self.current, self.cursor_row
        self.clear(columns=columns)
        self._shown = wanted
        if not self.columns:
            for head, width in zip(_HEADS, self._widths(), strict=True):
                self.add_column(_cell(head, head), width=width, key=head)
        for key, texts in wanted.items():
            self.add_row(*(_cell(*pair) for pair in zip(_HEADS, texts, strict=True)), key=key)
        keys = list(wanted)
        if keys:
            place = keys.index(current) if current in wanted else min(row, len(keys) - 1)
            self.move_cursor(row=place)

    def _widths(self) -> list[int]:
        least, most = _NAME
        rest = self._width - _PADDING - _SCROLLBAR - sum(_FIXED.values())
        name = max(min(rest * 11 // 20, most), least)
        widths = {"Name": name, "Where, what for": max(rest - name, least)}
        return [(_FIXED | widths)[head] for head in _HEADS]


def _cell(head: str, text: str) -> Text:
    return Text(
        text, no_wrap=True, overflow="ellipsis", justify="right" if head in _RIGHT else "left"
    )
