"""The vocabulary of the system: one frozen class for each thing that happens.

`decode()` yields these, which know tokens; `Session` yields `edgespec.reply` events, which know text.
Match them exhaustively; there are no tags and no optional parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Reason(Enum):
    """Why an answer ended."""

    END = "end"
    """The target chose an end-of-generation token."""
    STOP = "stop"
    """A stop string appeared."""
    LENGTH = "length"
    """The token budget is spent."""
    CONTEXT = "context"
    """The context is full."""
    CANCELLED = "cancelled"
    """The user stopped it."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A part of the prompt is in the target's cache."""

    done: int
    """Prompt tokens in the cache, reused ones included."""
    total: int
    """Prompt tokens in all."""
    reused: int
    """Prompt tokens that were in the cache before and were not computed again."""
    seconds: float
    """Time this part took."""


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The prompt's own pass gave the first token."""

    token: int
    seconds: float
    """Since `decode()` was asked: the time to first token."""


@dataclass(frozen=True, slots=True)
class Round:
    """One verify pass of the target: what it delivered and what the drafter had to do with it."""

    tokens: tuple[int, ...]
    """Tokens emitted: the accepted ones and the target's own (1 or more)."""
    proposed: int
    """Guesses in the verify batch: more than `tested` in a tree, and after a rejection."""
    tested: int
    """Places of the text at which the target was compared with a guess, or with several; those after
    a rejection never are."""
    accepted: int
    """Draft tokens that were kept: the first `accepted` of `tokens`."""
    draft_seconds: float
    verify_seconds: float
    seconds: float
    """The whole round, with the time outside the models."""
    source: str = ""
    """The drafter that proposed, where several take turns; empty when nothing was drafted."""
    rows: int = 1
    """Rows of the verify pass: the last token of the text, the draft, and what else was computed."""

    def keep(self, count: int) -> Round:
        """This round as if it had ended after `count` of its tokens."""
        if count == len(self.tokens):
            return self
        return replace(
            self,
            tokens=self.tokens[:count],
            tested=min(self.tested, count),
            accepted=min(self.accepted, count),
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of `decode()`."""

    reason: Reason


DecodeEvent = Prefilled | FirstToken | Round | Finished
