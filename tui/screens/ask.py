"""A question over the screen, or a text to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.widgets.turn import printable


class AskScreen(ModalScreen[str | None]):
    """Dismisses with the name of the answer; with None for Escape, or when there is only a text."""

    CSS_PATH = "ask.tcss"
    AUTO_FOCUS = "OptionList"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Back")]

    def __init__(
        self, title: str, lines: Sequence[str], answers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """`answers`: names and what is shown of them; the first is chosen by Enter alone."""
        super().__init__()
        self._title = printable(title)
        self._text = printable("\n".join(lines))
        self._answers = answers

    def compose(self) -> ComposeResult:
        """Title, text, answers."""
        with Vertical(classes="" if self._answers else "-text"):
            yield Static(self._title, markup=False, classes="title")
            with VerticalScroll():
                yield Static(self._text, markup=False)
            if self._answers:
                options = (Option(printable(shown), id=name) for name, shown in self._answers)
                yield OptionList(*options, markup=False)
            else:
                yield Static("Esc closes", markup=False, classes="hint")

    def on_mount(self) -> None:
        """A text alone can be scrolled at once."""
        if not self._answers:
            self.query_one(VerticalScroll).focus()

    @on(OptionList.OptionSelected)
    def _answer(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_leave(self) -> None:
        """Decide nothing."""
        self.dismiss(None)
