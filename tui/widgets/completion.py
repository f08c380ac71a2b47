"""What a begun command can become: a list that opens above the prompt, which keeps the keyboard."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from textual import on
from textual.content import Content
from textual.message import Message
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.commands import Command, command_word, matching, named
from tui.folding import clean

MOST_VALUES = 50
"""More than this of one argument nobody reads; going on typing brings up the others."""
_COLUMN = 26
"""Cells for a command and its argument, so that what they do stands in a column."""


@dataclass(frozen=True)
class Choice:
    """What the prompt holds once it is chosen, and what is said of it."""

    text: str
    label: str
    about: str = ""


def command_choices(typed: str) -> list[Choice]:
    """What a text can become that is nothing but a slash and a begun word."""
    if not re.fullmatch(r"/[\w-]*", typed):
        return []
    choices = [_choice(command) for command in matching(typed[1:])]
    return [] if [choice.text for choice in choices] == [typed] else choices


def argument_of(typed: str) -> tuple[Command, str] | None:
    """The command and the begun argument, for a text of one line that is a command so far."""
    word = command_word(typed)
    command = named(word) if word is not None else None
    if word is None or command is None or not command.argument or "\n" in typed:
        return None
    rest = typed[len(word) + 1 :]
    return (command, rest[1:]) if rest.startswith(" ") else None


def argument_choices(command: Command, begun: str, values: Sequence[str]) -> list[Choice]:
    """The fixed words that go on with what is `begun`, then `values`; empty when all is written."""
    fixed = [word for word in command.words if word.startswith(begun)]
    found = [clean(value).replace("\n", " ") for value in values[:MOST_VALUES]]
    labels = list(dict.fromkeys([*fixed, *found]))
    if labels == [begun]:
        return []
    return [Choice(f"/{command.name} {label}", label) for label in labels]


def _choice(command: Command) -> Choice:
    # With a blank behind it the argument can be typed at once, or is offered.
    text = f"/{command.name} " if command.argument else f"/{command.name}"
    return Choice(text, command.usage, command.about)


class Completion(OptionList, can_focus=False):
    """Up to eight rows right above the prompt; the prompt moves the highlight."""

    DEFAULT_CSS = """
    Completion {
        display: none;
        overlay: screen;
        constrain: none inside;
        offset-y: -100%;
        width: 1fr;
        height: auto;
        max-height: 10;
        padding: 0;
        border: round $border;
        background: $surface;
        scrollbar-size-vertical: 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    Completion > .option-list--option {
        padding: 0 1;
    }
    Completion > .option-list--option-highlighted {
        color: $block-cursor-foreground;
        background: $block-cursor-background;
        text-style: bold;
    }
    """

    @dataclass
    class Chosen(Message, bubble=False):
        """The mouse chose."""

        choice: Choice

    def __init__(self, prompt: MessagePump) -> None:
        super().__init__(markup=False)
        self.moved = False
        """Whether the highlight is where the user put it."""
        self._prompt = prompt
        self._choices: tuple[Choice, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self._choices)

    @property
    def chosen(self) -> Choice | None:
        """What is highlighted."""
        return None if self.highlighted is None else self._choices[self.highlighted]

    def offer(self, choices: Sequence[Choice], *, highlight: bool) -> None:
        """Show `choices`, the first of them highlighted if `highlight`; close when there are none."""
        if not choices and not self.is_open:
            return
        self._choices = tuple(choices)
        self.moved = False
        self.set_options(Option(_row(choice)) for choice in self._choices)
        self.highlighted = 0 if choices and highlight else None
        self.display = self.is_open

    def close(self) -> None:
        """Offer nothing."""
        self.offer((), highlight=False)

    def move(self, step: int) -> None:
        """Highlight the choice one further down (1) or up (-1), around the ends."""
        count = len(self._choices)
        before = self.highlighted
        if before is None:
            before = -1 if step > 0 else 0
        self.highlighted = (before + step) % count
        self.moved = True

    def render_line(self, y: int) -> Strip:
        """Mark the highlighted row with a sign: colour alone does not reach everybody."""
        row = super().render_line(y)
        if self.highlighted is None or self.scroll_offset.y + y != self.highlighted:
            return row
        style = next((segment.style for segment in row), None)
        return Strip.join([Strip([Segment(">", style)]), row.crop(1)])

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        # A key may have closed or changed the list meanwhile.
        if event.option_index < len(self._choices):
            self._prompt.post_message(self.Chosen(self._choices[event.option_index]))

    @on(OptionList.OptionHighlighted)
    def _highlight(self, event: OptionList.OptionHighlighted) -> None:
        """The prompt knows already, and no screen must take it for a list of its own."""
        event.stop()


def _row(choice: Choice) -> Content:
    if not choice.about:
        return Content(choice.label)
    return Content.assemble((f"{choice.label:<{_COLUMN}}", "bold"), choice.about)
