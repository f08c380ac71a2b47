"""What the worker thread tells the screen: frozen values in a Textual message.

Textual writes routing state into a message after it was made, so that the messages themselves
cannot be frozen; what they carry is.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from edgespec.errors import EdgeSpecError
from edgespec.events import Prefilled
from edgespec.history.records import Entry, Summary
from edgespec.reply import ReplyDone, TextDelta
from edgespec.stats import Stats
from tui.download import Download


@dataclass
class SessionReady(Message, bubble=False):
    """The model is loaded."""


@dataclass
class OpenFailed(Message, bubble=False):
    """The model could not be loaded; there will be no session."""

    error: EdgeSpecError


@dataclass
class SwitchFailed(Message, bubble=False):
    """The other model could not be loaded; the one before is open again."""

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
    """More of the answer: what one verification round brought."""

    pieces: tuple[TextDelta, ...]


@dataclass
class StatsArrived(Message, bubble=False):
    """The numbers after one more round."""

    stats: Stats
    context_used: int
    """Tokens in the cache, read in the thread that fills it."""
    why: str | None
    """Why it is drafted as it is, read there too."""

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


@dataclass
class RecorderTold(Message, bubble=False):
    """What the history has to say; empty when a problem is over."""

    text: str
    error: bool


@dataclass
class ConversationFound(Message, bubble=False):
    """A stored conversation, or another branch of this one, is to be shown."""

    summary: Summary
    entries: tuple[Entry, ...]


@dataclass
class BranchesCounted(Message, bubble=False):
    """Which of how many versions each message is, in the order in which they are shown."""

    conversation: int
    places: tuple[tuple[int, int], ...]


@dataclass
class Told(Message, bubble=False):
    """What a thread has done, or why not."""

    text: str
    error: bool = False


@dataclass
class DownloadEnded(Message, bubble=False):
    """A model has come, or has not."""

    download: Download
