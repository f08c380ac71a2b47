"""What was asked, and what must be known; what was answered is in `tui.widgets.answer_turn`."""

from __future__ import annotations

from collections.abc import Callable

from textual.widgets import Static

from tui.markdown.lines import Line, PlainText, estimate_rows
from tui.printing import printable
from tui.widgets.answer_turn import AnswerTurn
from tui.widgets.drawn import Turn, muted

__all__ = ["AnswerTurn", "Describe", "NoticeLine", "Turn", "UserTurn", "printable"]

LONG = 12
"""Lines that a message may have and still be shown whole."""
SHOWN = 8
"""Lines that are shown of a longer one."""

Describe = Callable[[str], str]
"""What to show of a message: attached files by name rather than whole."""


class UserTurn(Turn):
    """What the user wrote, character by character; of a long message its beginning."""

    EDGE = "▌"
    FILL = "on $surface"

    def __init__(self, text: str, describe: Describe = str, *, message: int | None = None) -> None:
        super().__init__(message=message)
        self.text = text
        self.open = False
        """Whether a long message is shown whole."""
        self._shown = printable(describe(text)).rstrip("\n")

    @property
    def copied(self) -> str:
        """The message as it was sent."""
        return self.text

    def mark(self, note: str) -> None:
        """Say below the turn what becomes of it; an empty note takes the line away."""
        self._note = note
        self.redraw()

    def toggle(self) -> None:
        """Show a long message whole, or only its beginning."""
        self.open = not self.open
        self.redraw()

    def make_rows(self, width: int) -> list[Line]:
        """The message, or its beginning and how much more there is."""
        count = self._shown.count("\n") + 1
        beginning = self._shown
        if count > LONG and not self.open:
            beginning = "\n".join(self._shown.split("\n", SHOWN)[:SHOWN])
        rows = PlainText().lines(beginning, width)
        more = count - SHOWN if beginning != self._shown else 0
        if len(rows) > LONG and not self.open:
            more = more or len(rows) - SHOWN
            rows = rows[:SHOWN]
        if more:
            rows.append(muted(f"… {more} more {'line' if more == 1 else 'lines'}"))
        return rows + self.footer()

    def estimate(self, width: int) -> int:
        """As high as the text, or as what is shown of it."""
        rows = estimate_rows(self._shown, width)
        return rows if self.open or rows <= LONG else SHOWN + 1


class NoticeLine(Static):
    """A line that stays: something to know, or an error with what to do about it."""

    def __init__(self, text: str, *, error: bool = False) -> None:
        super().__init__(printable(text), markup=False, classes="-error" if error else "")
