"""Drafting with a head that reads the target's states, in any way in which a draft model drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.model import HiddenStates, Token


class Reader(Protocol):
    """A head as a draft model: it must be told the text and the states of the target."""

    def states_held(self, prompt: Sequence[Token]) -> int:
        """See `StateReader`."""
        ...

    def read_states(self, end: int, states: HiddenStates) -> None:
        """See `StateReader`."""
        ...

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text, of which the states of a last piece may still be to come."""
        ...

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn what became text."""
        ...


class HeadedDrafter:
    """A drafter whose draft model is a `Reader`: brings that the text and the states."""

    def __init__(self, drafter: Drafter, model: Reader, source: str = "") -> None:
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
        """Start a text."""
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

    def forget(self) -> None:
        """Unlearn what the drafter has learnt, if it learns."""
        unlearn = getattr(self._drafter, "forget", None)
        if callable(unlearn):
            unlearn()

    def close(self) -> None:
        """The drafter; whoever loaded the head closes that."""
        self._drafter.close()
