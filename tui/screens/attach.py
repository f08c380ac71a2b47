"""Which files go into the next message, and what they cost before they are sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Input, Static
from textual.worker import Worker, WorkerState

from edgespec.attachments import Attachment, AttachmentProblem, block, read, survey
from edgespec.errors import EdgeSpecError
from tui.widgets.file_list import FileList, FileRow
from tui.widgets.path_input import PathInput
from tui.widgets.turn import printable


def total(taken: Sequence[FileRow]) -> int:
    """The tokens of the files that were counted so far."""
    return sum(row.tokens or 0 for row in taken)


def summary(taken: Sequence[FileRow], room: int) -> str:
    """What the chosen files take together, against the tokens that are free; a warning where that
    is too much.
    """
    room = max(room, 0)
    if not taken:
        return f"No file is chosen. {room} tokens are free in the context."
    files = "1 file" if len(taken) == 1 else f"{len(taken)} files"
    tokens = total(taken)
    if tokens > room:
        return (
            f"Does not fit: {files}, {tokens} tokens, but {room} are free. Leave some out or start with a "
            "larger --ctx. Sent as it is, old turns leave, or it is refused."
        )
    if any(not row.counted for row in taken):
        return f"{files}, {tokens} tokens so far; {room} are free. Counting…"
    unknown = " Some could not be counted." if any(row.tokens is None for row in taken) else ""
    return f"{files}, {tokens} of {room} free tokens.{unknown}"


class AttachScreen(Screen[tuple[Attachment, ...] | None]):
    """Ends with the files that were taken, or with None."""

    CSS_PATH = "attach.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back")]

    @dataclass
    class FileRead(Message, bubble=False):
        """A file can be shown."""

        attachment: Attachment

    @dataclass
    class FileCounted(Message, bubble=False):
        """What a file takes is known."""

        path: Path
        tokens: int | None

    @dataclass
    class Looked(Message, bubble=False):
        """A search is at its end."""

        pattern: str
        notes: tuple[str, ...]

    def __init__(self, count: Callable[[str], int], room: int, start: str = "") -> None:
        """`count`: tokens of a text, asked in a thread. `room`: tokens that are free in the context.
        `start`: a path, a pattern or a dropped text to begin with.
        """
        super().__init__()
        self._count = count
        self._room = room
        self._start = start.strip()
        self._leaving = threading.Event()
        self._searching: set[str] = set()
        """Patterns whose search is not at its end."""
        self._input = PathInput()
        self._files = FileList()
        self._summary = Static(summary((), room), id="summary", markup=False)
        self._notes = Static(id="notes", markup=False)

    def compose(self) -> ComposeResult:
        """Where to write, what it brought, what that costs, what is to be known."""
        yield Static(
            "Attach files  Enter lists, Space takes or leaves, Enter in the list attaches",
            id="headline",
            markup=False,
        )
        yield self._input
        yield self._files
        yield self._summary
        yield self._notes
        yield Footer()

    def on_mount(self) -> None:
        """Look at once for what was named already."""
        self._input.focus()
        self._say("")
        if self._start:
            self._input.value = self._start
            self._search(self._start)

    def on_unmount(self) -> None:
        """Nobody waits for what is still being read."""
        self._leaving.set()

    def action_leave(self) -> None:
        """Attach nothing."""
        self.dismiss(None)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._search(event.value)
        elif self._files.rows:
            self._confirm()

    @on(FileRead)
    def _add(self, message: FileRead) -> None:
        self._files.add(message.attachment)

    @on(FileCounted)
    def _show_cost(self, message: FileCounted) -> None:
        self._files.cost(message.path, message.tokens)

    @on(FileList.Changed)
    def _sum_up(self) -> None:
        taken = self._files.taken
        self._summary.update(summary(taken, self._room))
        self._summary.set_class(total(taken) > self._room, "-warning")

    @on(Looked)
    def _end_search(self, message: Looked) -> None:
        self._searching.discard(message.pattern)
        self._say("\n".join(message.notes))
        # A search that brought something has done its work; another may be in the making.
        if self._files.rows and self._input.value.strip() == message.pattern:
            self._input.value = ""
            self._files.focus()

    @on(FileList.Confirmed)
    def _confirm(self) -> None:
        taken = self._files.taken
        if self._searching:
            self._say("One moment: files are still read and counted.")
        elif not taken:
            self._say("No file is chosen: Space takes the one at the cursor, Esc goes back.")
        else:
            self.dismiss(tuple(row.attachment for row in taken))

    @on(Worker.StateChanged)
    def _fail(self, event: Worker.StateChanged) -> None:
        """A mistake of ours must not leave the screen waiting."""
        if event.worker.group == "attach" and event.state is WorkerState.ERROR:
            self._searching.clear()
            self._say(f"The search failed: {event.worker.error}")

    def _search(self, pattern: str) -> None:
        pattern = pattern.strip()
        if pattern not in self._searching:
            self._searching.add(pattern)
            self._say("Looking…")
            self._look(pattern)

    @work(thread=True, exit_on_error=False, group="attach")
    def _look(self, pattern: str) -> None:
        """Find, read and count, one file after the other."""
        notes: list[str] = []
        try:
            found = survey(pattern, self._leaving.is_set)
            notes += found.notes
            for path in found.paths:
                if self._leaving.is_set():
                    return
                note = self._take_in(path)
                notes += [note] if note else []
        except AttachmentProblem as problem:
            notes.append(str(problem))
        self._tell(self.Looked(pattern, tuple(notes)))

    def _take_in(self, path: Path) -> str:
        """Read and count one file; what is to be known about it."""
        try:
            attachment = read(path, self._leaving.is_set)
        except AttachmentProblem as problem:
            return str(problem)
        self._tell(self.FileRead(attachment))
        try:
            tokens = self._count(block(attachment))
        except EdgeSpecError:
            tokens = None
        self._tell(self.FileCounted(attachment.path, tokens))
        return attachment.note

    def _say(self, text: str) -> None:
        self._notes.update(printable(text))
        self._notes.display = bool(text)

    def _tell(self, message: Message) -> None:
        # The event loop of an app that has left may be closed.
        if not self._leaving.is_set():
            self.post_message(message)
