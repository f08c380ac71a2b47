"""The drafter that proposes nothing: plain decoding, through the same loop as every other method."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.model import Token


class NoDrafter:
    """The baseline."""

    def begin(self, prompt: Sequence[Token]) -> None:
        """Nothing to learn."""

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Nothing."""
        return NOTHING

    def accept(self, tokens: Sequence[Token]) -> None:
        """Nothing to learn."""

    def close(self) -> None:
        """Nothing to give back."""
