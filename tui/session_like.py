"""What the app uses of `edgespec.session.Session`, so that it can be driven without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from edgespec.reply import ReplyEvent

if TYPE_CHECKING:
    from edgespec.session import Memory
    from edgespec.settings import Settings


class SessionLike(Protocol):
    """One conversation; only `cancel` and `memory` may be called while an answer is iterated."""

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
        """`plain`, `draft` or `lookup`."""
        ...

    @property
    def draft_length(self) -> int:
        """The most tokens drafted in one round."""
        ...

    @property
    def context_size(self) -> int:
        """Tokens that the cache can hold."""
        ...

    @property
    def context_used(self) -> int:
        """Tokens that the cache holds."""
        ...

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        """Add the user's message and stream the answer. Raises EdgeSpecError."""
        ...

    def regenerate(self) -> Iterator[ReplyEvent]:
        """Replace the last answer by another. Raises EdgeSpecError."""
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
