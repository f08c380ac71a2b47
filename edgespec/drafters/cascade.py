"""Copying and a draft model in one round: each goes on where the other stops.

The horizontal cascade of CS Drafting (Chen et al. 2023, arXiv 2312.11462), with lookup that costs nothing
in the place of the smaller model, and in any order: what is copied is read by the model in one batch, and
a draft that runs into a match is copied on. Needs no costs: one number, the probability that all drafted
so far is kept, says when a round ends.

Sampled text stays exact. A copied token is a point mass, and a drawn one decides only about what comes
after it: whether the model draws depends on what was drafted before and, by its confidence, on the
distribution that it would draw from, never on the token drawn; and what was drawn is verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from edgespec.drafters.base import NOTHING, Draft, Drafter, Policy
from edgespec.model import Token
from edgespec.sampling import Distribution


@runtime_checkable
class Copier(Drafter, Protocol):
    """A drafter that copies, and says how far it can be trusted."""

    def expected(self, drafted: Sequence[Token], limit: int) -> Sequence[tuple[Token, float]]:
        """At most `limit` tokens that may follow the text with `drafted` behind it, each with the
        probability that it is kept if all before it are.
        """
        ...

    def forget(self) -> None:
        """Unlearn how far copies can be trusted."""
        ...


@runtime_checkable
class Continuer(Drafter, Protocol):
    """A drafter that can go on after tokens that others drafted in this round."""

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        """Guess at most `limit` tokens after the text with `after` behind it. Raises `Cancelled`."""
        ...


_USUAL = 0.85
"""What a draft model's token is kept with, as a rule; a step that would thereby end a round is not made."""


class CascadeDrafter:
    """Copies while a match is strong, and else lets a draft model go on."""

    def __init__(
        self, copier: Copier, model: Continuer, *, strong: float = 0.8, least: float = 0.3
    ) -> None:
        """A token is copied without asking the model if it is kept with a probability of `strong`.
        A round ends where all drafted tokens together are kept with one below `least`.
        """
        self._copier = copier
        self._model = model
        self._strong = strong
        self._least = least

    def forget(self) -> None:
        """Unlearn how far copies can be trusted."""
        self._copier.forget()

    def begin(self, prompt: Sequence[Token]) -> None:
        """The model reads the prompt. Raises `Cancelled`."""
        self._copier.begin(prompt)
        self._model.begin(prompt)

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Draft until the limit, or until what comes next is hardly ever kept. Raises `Cancelled`."""
        this = _Round(self._copier, limit, self._strong, self._least)
        while this.goes_on:
            if this.copy(self._strong):
                continue
            own = replace(policy, pace=this)
            drawn = self._model.propose(this.left, own, after=tuple(this.tokens))
            this.add(drawn)
            if not drawn.tokens or not this.matched:
                this.copy(0.0)  # what the model is not sure of may still be a copy
                break
        return this.draft

    def accept(self, tokens: Sequence[Token]) -> None:
        """Tell both."""
        self._copier.accept(tokens)
        self._model.accept(tokens)

    def close(self) -> None:
        """Close both."""
        self._copier.close()
        self._model.close()


class _Round:
    """What is drafted so far. It is the pace of the model."""

    def __init__(self, copier: Copier, limit: int, strong: float, least: float) -> None:
        self.tokens: list[Token] = []
        self.matched = False
        """Whether the model stopped because what is drafted ends in a strong match."""
        self._proposals: list[Distribution | None] = []
        self._sources: set[str] = set()
        self._copier, self._limit = copier, limit
        self._strong, self._least = strong, least
        self._survival = 1.0

    @property
    def left(self) -> int:
        """How many tokens may still be drafted."""
        return self._limit - len(self.tokens)

    @property
    def goes_on(self) -> bool:
        """Whether anything more may be worth drafting."""
        return self.left > 0 and self._survival >= self._least

    @property
    def draft(self) -> Draft:
        """All of it."""
        if not self.tokens:
            return NOTHING
        source = "+".join(sorted(self._sources))
        return Draft(tuple(self.tokens), tuple(self._proposals), source)

    def copy(self, strong: float) -> bool:
        """Copy as long as each token is kept with a probability of `strong` and all of them together
        with `least`; False for none.
        """
        copied: list[Token] = []
        for token, chance in self._copier.expected(self.tokens, self.left):
            if chance < strong or self._survival * chance < self._least:
                break
            self._survival *= chance
            copied.append(token)
        self.add(Draft(tuple(copied), (None,) * len(copied), "lookup"))
        return bool(copied)

    def add(self, draft: Draft) -> None:
        """Append what one of the two drafted."""
        if draft.tokens:
            self.tokens += draft.tokens
            self._proposals += draft.proposals
            self._sources.add(draft.source)

    def step(self, drafted: Sequence[Token]) -> bool:
        """See `Pace`: the model goes on as long as it is likely to help and there is nothing to copy."""
        self.matched = False
        if self._survival * _USUAL < self._least:
            return False
        ahead = self._copier.expected([*self.tokens, *drafted], 1) if drafted else ()
        self.matched = any(chance >= self._strong for _, chance in ahead)
        return not self.matched

    def keep(self, confidence: float) -> bool:
        """See `Pace`: a token is worth a row if all up to it are kept often enough."""
        if self._survival * confidence < self._least:
            return False
        self._survival *= confidence
        return True
