"""Draft until the draft model is unsure: a fixed threshold on its highest probability.

This is what articles on speculative decoding often describe as SpecTr or as dynamic length, and what
llama.cpp (`--draft-p-min`) and Hugging Face's assisted generation do. It knows nothing of costs; the
controller's stopping rule does. Here so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.model import Token

THRESHOLD = 0.8


@dataclass(frozen=True, slots=True)
class Unsure:
    """The pace that ends a draft before the first token whose distribution is too flat.

    The token itself is not looked at: what is drawn must be verified whatever it is.
    """

    threshold: float = THRESHOLD

    def step(self, drafted: Sequence[Token]) -> bool:
        """Always: only after a step is it known how sure the model is."""
        return True

    def keep(self, confidence: float) -> bool:
        """Whether the highest probability reaches the threshold."""
        return confidence >= self.threshold


class ConfidenceDrafter:
    """A drafter, stopped where it is unsure."""

    def __init__(self, drafter: Drafter, threshold: float = THRESHOLD) -> None:
        """`drafter` must mind its policy's pace."""
        self._drafter = drafter
        self._pace = Unsure(threshold)

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text."""
        self._drafter.begin(prompt)

    def propose(self, limit: int, policy: Policy) -> Draft:
        """What the drafter proposes up to there; nothing where it is unsure from the first token on."""
        return self._drafter.propose(limit, replace(policy, pace=self._pace))

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn what became text."""
        self._drafter.accept(tokens)

    def close(self) -> None:
        """Nothing: whoever made the drafter closes it."""
