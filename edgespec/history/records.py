"""What the history tells: frozen values, without SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Role = Literal["system", "user", "assistant"]

SPEAKERS: dict[Role, str] = {"system": "System", "user": "You", "assistant": "Assistant"}
_FENCES = {"```", "~~~"}
TITLE_CHARACTERS = 60
"""A title that is made of the first question is at most this long."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a conversation."""

    id: int
    parent: int | None
    """The message it follows; None for the first."""
    role: Role
    content: str
    complete: bool
    """False for an answer that was stopped or cut, also by the end of the program."""
    created_at: datetime
    model: str = ""
    """What wrote an answer."""
    stats: Mapping[str, float] = field(default_factory=dict)
    """A few numbers of an answer, for display: tokens, seconds, acceptance and so on."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list."""

    id: int
    title: str
    folder: str
    """Empty outside of all folders."""
    created_at: datetime
    updated_at: datetime
    model: str
    """What wrote the newest answer."""
    persona: str
    messages: int
    """All of them, those of other branches too; system texts do not count."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A conversation that was found."""

    summary: Summary
    message: int
    """The first message that fits; the shown leaf where only the title does."""
    snippet: str
    """Some words around the match, which stands in [ and ]."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A conversation with all its branches."""

    summary: Summary
    entries: tuple[Entry, ...]
    """Parents come before what follows them."""
    head: int | None
    """Id of the leaf that is shown."""


def title_of(question: str) -> str:
    """A title made of the first line that says something; a fence is passed over where possible."""
    lines = [" ".join(line.split()) for line in question.splitlines()]
    spoken = (line for line in lines if any(map(str.isalnum, line)) and line[:3] not in _FENCES)
    title = next(spoken, "") or next((line for line in lines if line), "")
    if len(title) <= TITLE_CHARACTERS:
        return title
    return title[: TITLE_CHARACTERS - 1].rstrip() + "…"
