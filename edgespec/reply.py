"""What `Session` tells a front end while an answer comes: the events of `decode()` turned into text.

Match them exhaustively. The last one is always `ReplyDone`, unless an `EdgeSpecError` is raised.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.events import Prefilled, Reason
from edgespec.stats import Stats


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer, whole characters, never a part of a stop string."""

    text: str
    drafted: int = 0
    """So many characters in front come from accepted draft tokens, the rest from the target itself. A
    character counts for the token that made it whole."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user must know that is no error: older turns left, drafting stopped."""

    text: str


@dataclass(frozen=True, slots=True)
class StatsChanged:
    """The numbers after one more pass."""

    stats: Stats


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """The last event of an answer, which is in the conversation by now."""

    text: str
    reason: Reason
    stats: Stats


ReplyEvent = Prefilled | TextDelta | Notice | StatsChanged | ReplyDone
