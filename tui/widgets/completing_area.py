"""A text area that offers what a begun command, or its argument, can become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from tui.commands import misuse, parse
from tui.folding import Written
from tui.widgets.completion import Completion, argument_choices, argument_of, command_choices
from tui.widgets.folding_area import FoldingArea

Complete = Callable[[str, str], Sequence[str]]
"""What an argument can become: from a command's name and the begun argument. Called in a thread."""


class CompletingArea(FoldingArea):
    """The list opens while a text is a slash and a begun word, or a command with an argument."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete a command", show=False),
        Binding("escape", "close_completion", "Close the list of commands", show=False),
    ]

    @dataclass
    class ValuesFound(Message, bubble=False):
        """From the thread: what the argument in the text `typed` can become."""

        typed: str
        values: Sequence[str]

    def __init__(self, *, placeholder: str, id: str, complete: Complete | None) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self.completion = Completion(self)
        """The list. It is open or closed at once after every change of the text."""
        self._complete = complete
        self._awaited = ""
        """The text whose argument is being looked for."""

    def on_mount(self) -> None:
        """Make room for the list, right above."""
        if isinstance(self.parent, Widget):
            self.parent.mount(self.completion, before=self)

    def update_suggestion(self) -> None:
        """Follow the text. Textual calls this in every change of it, so that no key comes between."""
        super().update_suggestion()
        typed = self.document.text if self.document.get_line(0).startswith("/") else ""
        asked = argument_of(typed)
        choices = argument_choices(*asked, ()) if asked else command_choices(typed)
        self.completion.offer(choices, highlight=asked is None)
        self._awaited = ""
        if asked and self._complete is not None:
            self._awaited = typed
            self._find_values(self._complete, asked[0].name, asked[1], typed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Tab and Esc to the screen while there is no list."""
        if action in {"complete", "close_completion"}:
            return self.completion.is_open
        return super().check_action(action, parameters)

    def action_complete(self) -> None:
        """Take what is highlighted, or the first of the list."""
        if self.completion.is_open and self.completion.chosen is None:
            self.completion.move(1)
        if self.completion.chosen is not None:
            self.fill(Written(self.completion.chosen.text))

    def action_close_completion(self) -> None:
        """Leave the text as it is, and offer nothing for it any more."""
        self._awaited = ""
        self.completion.close()

    @property
    def wants_completion(self) -> bool:
        """Whether Enter takes what is highlighted: it was put there, or is needed for a command."""
        if self.completion.chosen is None:
            return False
        given = parse(self.document.text)
        return self.completion.moved or given is None or bool(misuse(*given))

    @work(thread=True, exclusive=True, group="completion", exit_on_error=False)
    def _find_values(self, complete: Complete, name: str, begun: str, typed: str) -> None:
        self.post_message(self.ValuesFound(typed, complete(name, begun)))

    def on_completing_area_values_found(self, event: ValuesFound) -> None:
        """Offer the values, if they are still wanted and nobody is choosing already."""
        asked = argument_of(event.typed)
        if asked and event.typed == self._awaited and not self.completion.moved:
            self.completion.offer(argument_choices(*asked, event.values), highlight=False)

    def on_completion_chosen(self, event: Completion.Chosen) -> None:
        """Take what the mouse chose, and the keyboard back."""
        self.fill(Written(event.choice.text))
        self.focus()
