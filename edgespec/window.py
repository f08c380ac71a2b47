"""Which part of a conversation the model sees when not all of it fits its context.

The policy: the system text stays, the oldest turns leave, whole turns at a time and as many as it
takes to free half of the context, so that it does not happen again with the next message. What has
left stays away, so that prompts go on beginning alike and the cache is of use. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgespec.conversation import Fit, Message, fit
from edgespec.errors import ContextFullError
from edgespec.model import Token

Encode = Callable[[Sequence[Message]], list[Token]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given."""

    tokens: list[Token]
    left: int = 0
    """Turns that had to leave for it."""


class ContextWindow:
    """Remembers what has left."""

    def __init__(self, encode: Encode, capacity: int) -> None:
        """`encode` makes the prompt of some messages; `capacity` is the context, in tokens."""
        self._encode = encode
        self._capacity = capacity
        self._hidden = 0  # messages after the system text that have left

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The prompt for an answer to the last message, with an eighth of the context left for it.

        Raises ContextFullError when system text and last message are too long by themselves.
        """
        seen = self._seen(messages)
        tokens = self._encode(seen)
        if len(tokens) <= self._capacity - self._capacity // 8:
            return Prompt(tokens)
        return self._shrink(seen, self._encode, self._capacity - 1)

    def resume(self, messages: Sequence[Message], emitted: Sequence[Token]) -> Prompt | None:
        """The prompt to go on with an answer that filled the context after `emitted`.

        None when there is nothing older than its question, or not enough.
        """
        seen = self._seen(messages)
        if sum(message.role == "user" for message in seen) < 2:
            return None
        try:
            return self._shrink(
                seen,
                lambda kept: [*self._encode(kept), *emitted],
                self._capacity - self._capacity // 8,
            )
        except ContextFullError:
            return None

    def _shrink(self, seen: list[Message], encode: Encode, most: int) -> Prompt:
        """Half of the context if turns can be dropped for it, else all older turns go."""
        try:
            found = fit(seen, encode, self._capacity // 2)
        except ContextFullError:
            found = self._last_turn_only(seen, encode, most)
        self._hidden += len(seen) - len(found.messages)
        return Prompt(list(found.tokens), found.dropped)

    @staticmethod
    def _last_turn_only(seen: list[Message], encode: Encode, most: int) -> Fit:
        asked = max(i for i, message in enumerate(seen) if message.role == "user")
        head = [message for message in seen[:1] if message.role == "system"]
        last = fit([*head, *seen[asked:]], encode, most)
        dropped = sum(message.role == "user" for message in seen[:asked])
        return Fit(last.messages, last.tokens, dropped)

    def _seen(self, messages: Sequence[Message]) -> list[Message]:
        head = [message for message in messages[:1] if message.role == "system"]
        rest = list(messages[len(head) :])
        asked = max((i for i, message in enumerate(rest) if message.role == "user"), default=0)
        if self._hidden > asked:  # an edit went back behind what had left
            self._hidden = 0
        return [*head, *rest[self._hidden :]]
