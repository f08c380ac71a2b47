"""An EAGLE-3 head drafts, alone or in any way in which a draft model does; see `features`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.drafters.features import FeatureModel
from edgespec.model import HiddenStates, Token


class Eagle3Drafter:
    """A drafter whose draft model is a `FeatureModel`: brings it the target's states."""

    def __init__(self, drafter: Drafter, model: FeatureModel, source: str = "") -> None:
        """`drafter` drafts with `model`; its drafts are marked as of `source`, if that is given."""
        self._drafter = drafter
        self._model = model
        self._source = source

    def states_held(self, prompt: Sequence[Token]) -> int:
        """See `StateReader`."""
        return self._model.states_held(prompt)

    def read_states(self, end: int, states: HiddenStates) -> None:
        """See `StateReader`."""
        self._model.read_states(end, states)

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text, of which the states of a last piece are still to come."""
        self._model.begin(prompt)
        self._drafter.begin(prompt)

    def propose(self, limit: int, policy: Policy) -> Draft:
        """What the drafter proposes. Raises `Cancelled`."""
        draft = self._drafter.propose(limit, policy)
        return replace(draft, source=self._source) if draft.tokens and self._source else draft

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn what became text."""
        self._model.accept(tokens)
        self._drafter.accept(tokens)

    def close(self) -> None:
        """The drafter; whoever loaded the head closes that."""
        self._drafter.close()
