"""What the worker thread tells the screen: frozen values in a Textual message.

Textual writes routing state into a message after it was made, so that the messages themselves
cannot be frozen; what they carry is.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from edgespec.errors import EdgeSpecError
from edgespec.events import Prefilled
from edgespec.reply import ReplyDone
from edgespec.stats import Stats


@dataclass
class SessionReady(Message, bubble=False):
    """The model is loaded."""


@dataclass
class OpenFailed(Message, bubble=False):
    """The model could not be loaded; there will be no session."""

    error: EdgeSpecError


@dataclass
class PromptRead(Message, bubble=False):
    """More of the prompt is in the cache."""

    progress: Prefilled

    def can_replace(self, message: Message) -> bool:
        """Only the newest is worth drawing."""
        return isinstance(message, PromptRead)


@dataclass
class TextArrived(Message, bubble=False):
    """More of the answer: the text of one verification round."""

    text: str


@dataclass
class StatsArrived(Message, bubble=False):
    """The numbers after one more round."""

    stats: Stats
    context_used: int
    """Tokens in the cache, read in the thread that fills it."""

    def can_replace(self, message: Message) -> bool:
        """Only the newest is worth drawing."""
        return isinstance(message, StatsArrived)


@dataclass
class NoticeArrived(Message, bubble=False):
    """Something to know that is no error."""

    text: str


@dataclass
class ReplyFinished(Message, bubble=False):
    """The answer is in the conversation."""

    done: ReplyDone
    context_used: int


@dataclass
class ReplyFailed(Message, bubble=False):
    """The answer ended with an error."""

    error: EdgeSpecError
