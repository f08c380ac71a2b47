"""The threads that work in the history for a screen; what they tell comes as messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.screen import Screen, ScreenResultType

from edgespec.history.problem import HistoryProblem
from tui.widgets.conversation_table import Row

if TYPE_CHECKING:
    from edgespec.history.records import Summary
    from edgespec.history.store import History

MOST_ROWS = 500
"""More are found by searching."""


@dataclass
class ConversationsRead(Message, bubble=False):
    """What the history has, for the question with this number."""

    number: int
    rows: list[Row]
    folders: list[str]


@dataclass
class HistoryChanged(Message, bubble=False):
    """A change is made."""

    told: str
    changed: Summary | None = None
    """The conversation to go to."""
    deleted: Summary | None = None


@dataclass
class HistoryFailed(Message, bubble=False):
    """Something could not be done."""

    problem: HistoryProblem
    changing: bool
    """Whether it was a change, so that the screen may show what is not so."""


class HistoryUser(Screen[ScreenResultType]):
    """A screen that has the history open while it is there."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        super().__init__()
        self._open_history = open_history
        self._history: History | None = None
        self._history_lock = threading.Lock()
        self._left = False

    def on_unmount(self) -> None:
        """Close the history; not here, because a thread may be at work in it."""
        threading.Thread(target=self._close_history, daemon=True).start()

    @work(thread=True, exit_on_error=False, group="read")
    def read(self, number: int, text: str, folder: str | None) -> None:
        """`ConversationsRead` or `HistoryFailed` follows."""
        try:
            history = self._opened()
            if text:
                hits = history.search(text, limit=MOST_ROWS)
                found = [Row(hit.summary, hit.snippet) for hit in hits]
                rows = [row for row in found if folder in {None, row.summary.folder}]
            else:
                rows = [Row(one) for one in history.list(folder=folder, limit=MOST_ROWS)]
            self.post_message(ConversationsRead(number, rows, list(history.folders())))
        except HistoryProblem as problem:
            self.post_message(HistoryFailed(problem, changing=False))

    @work(thread=True, exit_on_error=False, group="change")
    def change(self, act: Callable[[History], HistoryChanged]) -> None:
        """`HistoryChanged` or `HistoryFailed` follows."""
        try:
            self.post_message(act(self._opened()))
        except HistoryProblem as problem:
            self.post_message(HistoryFailed(problem, changing=True))

    def _opened(self) -> History:
        with self._history_lock:
            if self._left:
                raise HistoryProblem("The history was left.")
            if self._history is None:
                self._history = self._open_history()
            return self._history

    def _close_history(self) -> None:
        with self._history_lock:
            self._left = True
            history, self._history = self._history, None
        if history is not None:
            with suppress(HistoryProblem):
                history.close()


# What `change` is given. Runs in its thread.


def delete(history: History, one: Summary) -> HistoryChanged:
    """Take it out of the lists."""
    history.delete(one.id)
    return HistoryChanged(f"Deleted “{one.title}”: u brings it back.", deleted=one)


def restore(history: History, one: Summary) -> HistoryChanged:
    """Bring it back."""
    history.restore(one.id)
    return HistoryChanged(f"Brought back “{one.title}”.", changed=one)


def rename(history: History, one: Summary, title: str) -> HistoryChanged:
    """Give it another title."""
    history.rename(one.id, title)
    return HistoryChanged(f"Renamed to “{history.summary(one.id).title}”.", changed=one)


def move(history: History, one: Summary, folder: str) -> HistoryChanged:
    """Put it into a folder."""
    history.move(one.id, folder)
    now = history.summary(one.id).folder
    return HistoryChanged(f"Moved to “{now}”." if now else "Taken out of its folder.", changed=one)


def export(history: History, one: Summary) -> HistoryChanged:
    """Write it to a file."""
    from edgespec.history import transfer  # noqa: PLC0415 - only needed here

    return HistoryChanged(f"Written to {transfer.export_file(history, one.id)}")
