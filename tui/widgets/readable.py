"""The transcript with keys of its own, for whoever goes back to an earlier message."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.widgets.transcript import Transcript


class ReadableTranscript(Transcript, can_focus=True):
    """While it has the keyboard a turn is selected; commands of the screen then mean that turn."""

    FOCUS_ON_CLICK = False  # whoever clicks to mark text goes on writing in the prompt
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "select(-1)", "Message above"),
        Binding("down", "select(1)", "Message below"),
        Binding("enter", "unfold", "Unfold"),
        Binding("c", "screen.run_command('copy', '')", "Copy"),
        Binding("b", "screen.run_command('copy', 'code')", "Copy code"),
        Binding("e", "screen.run_command('edit', '')", "Edit"),
        Binding("left", "screen.run_command('branch', 'previous')", "Version before", show=False),
        Binding("right", "screen.run_command('branch', 'next')", "Version after"),
        Binding("escape,tab,shift+tab", "screen.write", "Write"),
    ]

    def on_focus(self) -> None:
        """Begin at the last turn."""
        if self.selected is None:
            self.select_previous()

    def on_blur(self) -> None:
        """Nothing is selected while somebody writes."""
        self.select_none()

    def action_select(self, step: int) -> None:
        """Select the turn above or below; below the last one is the prompt."""
        if step < 0:
            self.select_previous()
        else:
            self.select_next()
            if self.selected is None:
                self.call_later(self.run_action, "screen.write")

    def action_unfold(self) -> None:
        """Unfold a long message or a thought, or fold it."""
        if self.selected is not None:
            self.selected.toggle()
