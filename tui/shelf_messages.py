"""What the threads of the models screen tell it: frozen values in a Textual message."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from edgespec.shelf.orders import Quote
from edgespec.shelf.row import Row
from edgespec.shelf.stock import Stock


@dataclass
class Stocked(Message, bubble=False):
    """The list was read."""

    stock: Stock


@dataclass
class Assessed(Message, bubble=False):
    """Some rows with their fit and their speed."""

    rows: tuple[Row, ...]


@dataclass
class HubAnswered(Message, bubble=False):
    """What the Hub found; `problem` where it was not reached."""

    text: str
    rows: tuple[Row, ...]
    problem: str = ""


@dataclass
class Quoted(Message, bubble=False):
    """What a pull would bring."""

    quote: Quote


@dataclass
class DraftJudged(Message, bubble=False):
    """Whether a model can be the draft."""

    row: Row
    ok: bool
    words: str


@dataclass
class Checking(Message, bubble=False):
    """How much of a row's files was read."""

    key: str
    share: float


@dataclass
class Checked(Message, bubble=False):
    """A row's files were read; `problems` is None when that was stopped."""

    row: Row
    problems: tuple[str, ...] | None


@dataclass
class Detailed(Message, bubble=False):
    """All that is known about a row."""

    row: Row
    lines: tuple[str, ...]


@dataclass
class RemovalPlanned(Message, bubble=False):
    """What removing a row would take."""

    row: Row
    lines: tuple[str, ...]


@dataclass
class Told(Message, bubble=False):
    """A sentence on what was done, or why it was not; `changed` when the store is another now."""

    text: str
    changed: bool = False
