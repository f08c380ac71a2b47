"""Where the user writes: one line that grows to eight, with the history of what was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

NEWLINE_KEYS = ("ctrl+j", "shift+enter", "alt+enter")


class Prompt(TextArea):
    """Enter sends, a paste never does; Up at the start and Down at the end walk the history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Send"),
        Binding(
            ",".join(NEWLINE_KEYS),
            "newline",
            "New line",
            tooltip="Shift+Enter or Alt+Enter do the same where the terminal can tell them",
        ),
        Binding("pageup", "screen.read('page_up')", "Scroll up", show=False),
        Binding("pagedown", "screen.read('page_down')", "Scroll down", show=False),
        Binding("ctrl+home", "screen.read('start')", "To the start", show=False),
        Binding("ctrl+end", "screen.read('end')", "To the end", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """The user sends `text`. Nothing more is sent until the owner clears `refusal`."""

        text: str

    def __init__(self) -> None:
        super().__init__(
            soft_wrap=True,
            highlight_cursor_line=False,
            placeholder="Write a message",
            id="prompt",
        )
        self.refusal = ""
        """Why nothing can be sent now; empty when it can."""
        self._history: list[str] = []
        self._position = 0
        self._draft = ""

    @property
    def hint(self) -> str:
        """A short word about what was just tried; gone with the next change of the text."""
        return self.border_subtitle or ""

    @hint.setter
    def hint(self, text: str) -> None:
        self.border_subtitle = text

    def put_back(self, text: str) -> bool:
        """Show a text that could not be answered; False when there is another, which stays."""
        if self.text:
            return False
        self.load_text(text)
        self.move_cursor(self.document.end)
        return True

    def action_submit(self) -> None:
        """Send the text, and empty the prompt at once: what is typed from now on is another one."""
        text = self.text
        if not text.strip():
            return
        if self.refusal:
            self.hint = self.refusal
            return
        self.refusal = "One moment"
        self._remember(text)
        self.load_text("")
        self.post_message(self.Submitted(text))

    def action_newline(self) -> None:
        """Break the line at the cursor."""
        self.replace("\n", *self.selection, maintain_selection_offset=False)

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; from the very start, or an untouched entry, to the entry before."""
        self._leave_changed_entry()
        if not select and self._position > 0 and self._leaves_upwards():
            if self._position == len(self._history):
                self._draft = self.text
            self._show(self._position - 1, at_end=False)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; from the very end, or an untouched entry, to the entry after."""
        self._leave_changed_entry()
        if not select and self._walking and self._leaves_downwards():
            self._show(self._position + 1, at_end=True)
        else:
            super().action_cursor_down(select)

    def on_text_area_changed(self) -> None:
        """A hint is about the text as it was."""
        self.hint = ""

    def on_key(self, event: events.Key) -> None:
        """Take Enter in turn with the characters: a binding would overtake those still queued."""
        if event.key == "enter":
            self.action_submit()
        elif event.key in NEWLINE_KEYS:
            self.action_newline()
        else:
            return
        event.stop()
        event.prevent_default()

    def _remember(self, text: str) -> None:
        if not self._history or self._history[-1] != text:
            self._history.append(text)
        self._position = len(self._history)
        self._draft = ""

    def _leave_changed_entry(self) -> None:
        """An entry that was changed is a new text: to walk on must not lose it."""
        if self._walking and self.text != self._history[self._position]:
            self._position = len(self._history)

    @property
    def _walking(self) -> bool:
        return self._position < len(self._history)

    def _leaves_upwards(self) -> bool:
        at_end = self.cursor_location == self.document.end
        return self.cursor_location == (0, 0) or (self._walking and at_end)

    def _leaves_downwards(self) -> bool:
        at_start = self.cursor_location == (0, 0)
        return self.cursor_location == self.document.end or (self._walking and at_start)

    def _show(self, position: int, *, at_end: bool) -> None:
        self._position = position
        past_newest = position == len(self._history)
        self.load_text(self._draft if past_newest else self._history[position])
        self.move_cursor(self.document.end if at_end else (0, 0))
