"""Where the user writes: one line that grows to eight, with commands and what was sent before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from tui.commands import as_message, command_word, escapes, misuse, parse, unknown
from tui.folding import Written
from tui.prompt_history import PromptHistory, Walk
from tui.terminal_keys import is_enter_with_modifier, know_alt_enter
from tui.widgets.completing_area import Complete, CompletingArea

NEWLINE_KEYS = ("ctrl+j", "shift+enter", "alt+enter")
LONGEST_DROP = 8192
"""Characters; a longer paste is no list of dragged files."""

Dropped = Callable[[str], Sequence[Path]]
"""The files that a pasted text names, if it is nothing else. Called in a thread."""


class Prompt(CompletingArea):
    """Enter sends, a paste never does; a text that begins with a slash and a word is a command."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # A terminal that tells Ctrl+M from Enter is an exception; nobody means anything else by it.
        Binding("enter,ctrl+m", "submit", "Send"),
        Binding(
            ",".join(NEWLINE_KEYS),
            "newline",
            "New line",
            show=False,
            tooltip="Shift+Enter or Alt+Enter do the same where the terminal can tell them",
        ),
        Binding("up", "cursor_up", "Up, or what was sent before", show=False),
        Binding("down", "cursor_down", "Down, or what was sent after", show=False),
        # What some terminals send for the ways over a word; Ctrl+Z belongs to the shell.
        Binding("alt+left", "cursor_word_left", "A word back", show=False),
        Binding("alt+right", "cursor_word_right", "A word on", show=False),
        Binding("ctrl+underscore,super+z", "undo", "Undo", show=False),
        Binding("ctrl+up", "earlier", "What was sent before", show=False),
        Binding("ctrl+down", "later", "What was sent after", show=False),
        *CompletingArea.BINDINGS,
        # Ctrl+Z too, but on Unix the app is put aside with it. A terminal that cannot tell more sends
        # the first for each of these, as readline has it.
        Binding("ctrl+underscore,ctrl+slash,ctrl+shift+minus", "undo", "Undo", show=False),
        Binding("pageup", "screen.read('page_up')", "Scroll up", show=False),
        Binding("pagedown", "screen.read('page_down')", "Scroll down", show=False),
        Binding("ctrl+home", "screen.read('start')", "To the start", show=False),
        Binding("ctrl+end", "screen.read('end')", "To the end", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """The user sends `text`. Nothing more is sent until the owner clears `refusal`."""

        text: str
        shown: str
        """The same with long pastes folded."""

    @dataclass
    class CommandGiven(Message):
        """The user gives a command of `tui.commands`; `name` is its name, even for an alias."""

        name: str
        argument: str

    @dataclass
    class FilesDropped(Message):
        """The user dragged files into the terminal."""

        paths: tuple[Path, ...]

    @dataclass
    class HistoryRead(Message, bubble=False):
        """From the thread: what was sent in earlier sessions."""

        entries: list[Written]

    def __init__(
        self,
        *,
        history: PromptHistory | None = None,
        complete: Complete | None = None,
        dropped: Dropped | None = None,
    ) -> None:
        """Without `history` only this session's texts are known, without the others nothing is."""
        know_alt_enter()
        super().__init__(
            placeholder="Write a message, or / for commands", id="prompt", complete=complete
        )
        self.refusal = ""
        """Why nothing can be sent now; empty when it can."""
        self._hint = ""
        self._walk = Walk()
        self._file = history
        self._dropped = dropped

    @property
    def hint(self) -> str:
        """A short word about what was just tried; gone with the next change of the text."""
        return self._hint

    @hint.setter
    def hint(self, text: str) -> None:
        if text != self._hint:
            self._hint = text
            self.border_subtitle = Content(text)

    def on_mount(self) -> None:
        """Learn what was sent in earlier sessions."""
        if self._file is not None:
            self._read_history(self._file)

    def put_back(self, text: str) -> bool:
        """Show a text that could not be answered; False when there is another, which stays."""
        if self.text:
            return False
        self._show(self._walk.folded(as_message(text)), at_end=True)
        return True

    def write_again(self, text: str) -> None:
        """Let the user change a message that was sent; undo brings back what they were writing."""
        self.fill(self._walk.folded(as_message(text)))
        self.action_close_completion()

    # What the keys do

    def action_submit(self) -> None:
        """Send the text, and empty the prompt at once: what is typed from now on is another one."""
        document = self.document.text
        word = command_word(document)
        if word is None and self._break_after_backslash():
            return
        if self.wants_completion:
            self.action_complete()
        elif word is not None:
            self._give_command(word)
        elif (written := self.written).text.strip():
            self._send(written, slashed=escapes(document))

    def action_newline(self) -> None:
        """Break the line at the cursor."""
        self.replace("\n", *self.selection, maintain_selection_offset=False)

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up: in the list of commands, to what was sent before, or in the text."""
        if self.completion.is_open and not select:
            self.completion.move(-1)
        elif select or not self._leaves_upwards() or not self.action_earlier():
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down: in the list of commands, to what was sent after, or in the text."""
        if self.completion.is_open and not select:
            self.completion.move(1)
        elif select or not self._leaves_downwards() or not self.action_later():
            super().action_cursor_down(select)

    def action_earlier(self) -> bool:
        """Show what was sent before; False when there is nothing."""
        entry = self._walk.earlier(self.written)
        if entry is not None:
            self._show(entry, at_end=False)
        return entry is not None

    def action_later(self) -> bool:
        """Show what was sent after, at last what was being written; False when that is shown."""
        entry = self._walk.later(self.written)
        if entry is not None:
            self._show(entry, at_end=True)
        return entry is not None

    async def on_key(self, event: events.Key) -> None:
        """Take keys in turn with the characters: a binding would overtake those still queued."""
        self._restart_blink()
        key = "shift+enter" if is_enter_with_modifier(event.key) else event.key
        for binding in self._bindings.key_to_bindings.get(key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return

    async def receive(self, text: str) -> None:
        """Insert a paste, unless it is files that were dragged here."""
        paths: Sequence[Path] = ()
        if self._dropped is not None and len(text) <= LONGEST_DROP:
            paths = await asyncio.to_thread(self._dropped, text)
        if paths:
            self.post_message(self.FilesDropped(tuple(paths)))
        else:
            self.put_in(text)

    def update_suggestion(self) -> None:
        """A hint is about the text as it was."""
        super().update_suggestion()
        self.hint = ""

    # Sending

    def _send(self, written: Written, *, slashed: bool) -> None:
        if self.refusal:
            self.hint = self.refusal
            return
        self.refusal = "One moment"
        shown = self.shown
        self._remember(written, kept=True)
        self.load_text("")
        cut = 1 if slashed else 0
        self.post_message(self.Submitted(written.text[cut:], shown[cut:]))

    def _give_command(self, word: str) -> None:
        written = self.written
        given = parse(written.text)
        problem = unknown(word) if given is None else misuse(*given)
        if given is None or problem:
            self.hint = problem
            return
        # In another session somebody looks for what they asked, not for how they left.
        self._remember(written, kept=False)
        self.load_text("")
        self.post_message(self.CommandGiven(given[0].name, given[1]))

    def _break_after_backslash(self) -> bool:
        """Break the line in place of a backslash at its end; two of them are only text."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        slashes = len(line) - len(line.rstrip("\\"))
        if not self.selection.is_empty or column != len(line) or slashes % 2 == 0:
            return False
        self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
        return True

    # What was sent before

    @work(thread=True, group="history of prompts", exit_on_error=False)
    def _read_history(self, file: PromptHistory) -> None:
        self.post_message(self.HistoryRead(file.read()))

    @work(thread=True, group="history of prompts", exit_on_error=False)
    def _append_history(self, file: PromptHistory, written: Written) -> None:
        file.append(written)

    def on_prompt_history_read(self, event: HistoryRead) -> None:
        """Earlier sessions come before this one."""
        self._walk.begin_with(event.entries)

    def _remember(self, written: Written, *, kept: bool) -> None:
        if self._walk.add(written) and kept and self._file is not None:
            self._append_history(self._file, written)

    def _leaves_upwards(self) -> bool:
        at_end = self.cursor_location == self.document.end
        walked = at_end and self._walk.is_at(self.written)
        return self._one_line or self.cursor_location == (0, 0) or walked

    def _leaves_downwards(self) -> bool:
        at_start = self.cursor_location == (0, 0)
        walked = at_start and self._walk.is_at(self.written)
        return self._one_line or self.cursor_location == self.document.end or walked

    @property
    def _one_line(self) -> bool:
        return self.wrapped_document.height <= 1

    def _show(self, written: Written, *, at_end: bool) -> None:
        self.load(written)
        self.action_close_completion()
        self.move_cursor(self.document.end if at_end or self._one_line else (0, 0))
