"""What the app uses of `edgespec.session.Session`, so that it can be driven without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from edgespec.conversation import Message as ChatMessage
from edgespec.reply import ReplyEvent

if TYPE_CHECKING:
    from edgespec.measuring import TuneEvent
    from edgespec.memory import Memory
    from edgespec.settings import Method, Settings
    from profiles.tuned import Tuned


class SessionLike(Protocol):
    """One conversation; only `cancel`, `memory` and `count` may be called while an answer is iterated."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user must know before the first message."""
        ...

    @property
    def target_name(self) -> str:
        """Short name of the target."""
        ...

    @property
    def draft_name(self) -> str | None:
        """Short name of the draft; None without a draft model."""
        ...

    @property
    def method(self) -> str:
        """One of `edgespec.methods.WAYS`."""
        ...

    @property
    def draft_length(self) -> int:
        """The most tokens drafted in one round."""
        ...

    def lack(self, method: Method) -> str | None:
        """Why the models that are named cannot be used with a method; None where they may."""
        ...

    @property
    def opens_thought(self) -> bool:
        """Whether answers begin inside a thought, without a tag that opens it."""
        ...

    @property
    def context_size(self) -> int:
        """Tokens that the cache can hold."""
        ...

    @property
    def context_used(self) -> int:
        """Tokens that the cache holds."""
        ...

    @property
    def settings(self) -> Settings:
        """What was chosen."""
        ...

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The conversation, system message included."""
        ...

    @property
    def why(self) -> str | None:
        """Why it is drafted as it is, in a sentence; None where nothing chooses."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text; from any thread, also during an answer."""
        ...

    def restore(self, messages: Sequence[ChatMessage]) -> None:
        """Go on with another conversation."""
        ...

    def configure(self, settings: Settings) -> None:
        """Choose anew how answers are made. Raises UsageError for what needs other models."""
        ...

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        """Add the user's message and stream the answer. Raises EdgeSpecError."""
        ...

    def regenerate(self) -> Iterator[ReplyEvent]:
        """Replace the last answer by another. Raises EdgeSpecError."""
        ...

    def edit(self, index: int, text: str) -> Iterator[ReplyEvent]:
        """Replace the user's message `messages[index]`, drop all after it, stream the answer."""
        ...

    def continue_answer(self) -> Iterator[ReplyEvent]:
        """Go on with a cut answer; what there is comes first. Raises EdgeSpecError."""
        ...

    def tune(self, *, quick: bool, force: bool) -> Iterator[TuneEvent]:
        """Measure these models; one thread iterates it, as an answer. Raises EdgeSpecError."""
        ...

    def tuned(self) -> Tuned | None:
        """What was measured for them and still holds."""
        ...

    def cancel(self) -> None:
        """Stop the running answer, from any thread."""
        ...

    def memory(self) -> Memory:
        """Bytes in use now."""
        ...

    def close(self) -> None:
        """Free the models; no answer may be running."""
        ...


Opener = Callable[["Settings"], SessionLike]
Start = Callable[[SessionLike], Iterator[ReplyEvent]]
