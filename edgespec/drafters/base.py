"""What the engine asks of a drafter, and what it gets.

Push form: the engine tells a drafter what became text; the drafter never asks, and does not know how
its proposals are verified. A new method is one file beside this one that passes laws A to E.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgespec.model import Token
from edgespec.sampling import Distribution, Sampling


@dataclass(frozen=True, slots=True)
class Draft:
    """A guess at the next tokens."""

    tokens: tuple[Token, ...] = ()
    proposals: tuple[Distribution | None, ...] = ()
    """For each token the distribution it was drawn from; None where it was the only choice (a point
    mass). Valid until the drafter's next call."""
    source: str = ""
    """Which drafter made it, where several take turns: `lookup`, `draft`, ... Empty for no draft."""


NOTHING = Draft()


class Pace(Protocol):
    """Decides, token by token, whether a drafter that can stop anywhere goes on.

    Both questions are asked before the token in question is drawn. That is what keeps sampled text
    exact: whether a position is verified may depend on its distribution and on what came before it,
    never on the token drawn there.
    """

    def step(self, drafted: Sequence[Token]) -> bool:
        """Whether one more step of the draft model, after those drafted so far, is worth its time."""
        ...

    def keep(self, confidence: float) -> bool:
        """Whether the token after that step is to be part of the draft; if not, the draft ends.

        `confidence` is the highest probability in the draft's own distribution there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """How proposals are to be made in this answer."""

    sampling: Sampling
    """The target's own. A drafter that draws from the same truncation is accepted more often."""
    uniform: Callable[[], float]
    """Draws from [0, 1)."""
    draw: bool
    """Draw each token from the draft's distribution, for rejection sampling. If not, propose the
    most likely one as a point mass."""
    pace: Pace | None = None
    """Who decides where the draft ends before its limit; None for nobody."""


class Drafter(Protocol):
    """A way to guess."""

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text. A model reads it here, so that its time counts as the prompt's (TTFT).

        Raises `Cancelled`.
        """
        ...

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Guess at most `limit` (1 or more) tokens after all that was told.

        How many, and whether, may depend on the text and on the draft's distributions, never on the
        values drawn: else the sampled text is biased. Raises `Cancelled`.
        """
        ...

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn what became text since the last call, the target's own token included."""
        ...

    def close(self) -> None:
        """Give back what the drafter holds. It is not used afterwards."""
        ...
