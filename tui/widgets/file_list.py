"""The files that may go into a message: which are taken, and what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from edgespec.attachments import Attachment
from model_registry.sizes import human_size
from tui.widgets.turn import printable


@dataclass
class FileRow:
    """One file of the list."""

    attachment: Attachment
    taken: bool = True
    counted: bool = False
    tokens: int | None = None
    """What it takes of the context; None where that is not known, yet or at all."""

    @property
    def text(self) -> str:
        """The row as it is drawn: readable without colour, the name last because it may be long."""
        attachment = self.attachment
        known = "?" if self.tokens is None else str(self.tokens)
        cost = f"{known} tokens" if self.counted else "counting…"
        return printable(
            f"[{'x' if self.taken else ' '}] {cost:>14}  {human_size(attachment.size):>7}  "
            f"{attachment.kind:<8}  {attachment.name}"
        )


class FileList(OptionList):
    """Space or a click takes a file or leaves it, Enter confirms them all."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Take or leave"),
        Binding("enter", "confirm", "Attach"),
    ]

    @dataclass
    class Changed(Message):
        """Another file, another cost, or another choice."""

    @dataclass
    class Confirmed(Message):
        """Enter was pressed."""

    def __init__(self) -> None:
        super().__init__(id="files", markup=False)
        self._rows: dict[Path, FileRow] = {}

    @property
    def rows(self) -> Sequence[FileRow]:
        """All files, in the order in which they came."""
        return tuple(self._rows.values())

    @property
    def taken(self) -> list[FileRow]:
        """Those that are to be sent."""
        return [row for row in self._rows.values() if row.taken]

    def add(self, attachment: Attachment) -> None:
        """Show one more file; one that is here already is taken again."""
        row = self._rows.get(attachment.path)
        if row is None:
            row = self._rows[attachment.path] = FileRow(attachment)
            self.add_option(Option(row.text))
            if self.highlighted is None:
                self.highlighted = 0
        row.taken = True
        self._draw(row)

    def cost(self, path: Path, tokens: int | None) -> None:
        """Show what a file takes; None where that cannot be known."""
        row = self._rows[path]
        row.counted, row.tokens = True, tokens
        self._draw(row)

    def action_confirm(self) -> None:
        """Say that the choice is made."""
        self.post_message(self.Confirmed())

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        row = self.rows[event.option_index]
        row.taken = not row.taken
        self._draw(row)

    def _draw(self, row: FileRow) -> None:
        self.replace_option_prompt_at_index(list(self._rows).index(row.attachment.path), row.text)
        self.post_message(self.Changed())
