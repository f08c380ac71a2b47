"""What was said, and what of it still fits the context. Pure: no model, no clock, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from edgespec.errors import ContextFullError

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn."""

    role: Role
    content: str
    tokens: tuple[int, ...] = ()
    """The very tokens that an answer was made of, so that the next turn finds them in the cache;
    empty for what a person wrote."""
    complete: bool = True
    """False for an answer that was stopped by the user or cut by the budget or the context."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The part of a conversation that goes into the prompt."""

    messages: tuple[Message, ...]
    tokens: tuple[int, ...]
    """The prompt made of `messages`."""
    dropped: int
    """Oldest turns that were left out; a turn is a user's message with its answer."""


def fit(
    messages: Sequence[Message], encode: Callable[[Sequence[Message]], list[int]], budget: int
) -> Fit:
    """Leave out the fewest oldest turns such that the prompt takes at most `budget` tokens.

    System messages in front and the last user message with all that follows it always stay.
    Calls `encode` O(log turns) times; relies on fewer turns never making a longer prompt.
    Raises ContextFullError when what must stay is too long by itself.
    """
    head, turns = _split(messages)

    def without(count: int) -> Fit:
        kept = (*head, *(message for turn in turns[count:] for message in turn))
        return Fit(kept, tuple(encode(kept)), count)

    whole = without(0)
    if len(whole.tokens) <= budget:
        return whole
    least = without(len(turns) - 1) if len(turns) > 1 else whole
    if len(least.tokens) > budget:
        raise _too_long(len(least.tokens), budget, bool(head))
    too_many, best = 0, least
    while best.dropped - too_many > 1:
        trial = without((too_many + best.dropped) // 2)
        if len(trial.tokens) <= budget:
            best = trial
        else:
            too_many = trial.dropped
    return best


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The system messages in front, and the turns, each of which begins with a user's message."""
    head: list[Message] = []
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "system" and not turns:
            head.append(message)
        elif message.role == "user" or not turns:
            turns.append([message])
        else:
            turns[-1].append(message)
    return head, turns


def _too_long(needed: int, budget: int, with_system: bool) -> ContextFullError:
    what = "The message and the system text take" if with_system else "The message takes"
    return ContextFullError(
        f"{what} {needed} tokens as a prompt, but the context has room for {max(budget, 0)}.",
        "Shorten the message or, where the model can take more, give it a larger context with --ctx.",
    )
