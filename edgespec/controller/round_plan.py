"""One round: what is drafted in it, when drafting ends, and what the outcome teaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from edgespec.controller.beliefs import Beliefs
from edgespec.controller.stopping import StoppingRule
from edgespec.controller.timing import Timing
from edgespec.drafters.base import NOTHING, Draft, Drafter, Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.model import Token
from edgespec.sampling import Distribution

ACCIDENT = 2.0
"""A pass that takes more than so many times what is expected of it was interrupted."""
_CAUTION = 1.1
"""What the rows of copied tokens are taken to cost: a bet that is even on paper is not worth taking."""


class Lookup(Drafter, Protocol):
    """A drafter that copies what followed a match."""

    def continuation(self, drafted: Sequence[Token], limit: int) -> tuple[int, tuple[Token, ...]]:
        """How long a match the text with `drafted` behind it ends in, and what followed that.

        At most `limit` tokens; (0, ()) for no match.
        """
        ...


class RoundPlan:
    """What is decided and seen in one round. It is the pace of a draft model."""

    def __init__(
        self,
        timing: Timing,
        beliefs: Beliefs,
        lookup: Lookup,
        *,
        clock: Callable[[], float],
        rate: float,
        limit: int,
        stake: float,
    ) -> None:
        """`rate` is what time earns elsewhere, tokens a second; `limit` the longest draft; `stake` the
        time that the round may take, in tokens of plain decoding."""
        self._timing, self._clock, self._lookup = timing, clock, lookup
        self.rate = rate
        self._beliefs = beliefs
        self._limit = limit
        self._left = stake * timing.token
        self.match, self._shadow = self._lookup.continuation((), limit)
        """What lookup would propose; scored for free, whatever is done."""
        self._copy = self.match, self._shadow
        """The same after the tokens drafted so far."""
        self.may_copy = False
        self.draft = NOTHING
        self.trial = False
        self.copied = self.siblings = 0
        self.draft_seconds = self.proposed_at = 0.0
        self._bins: list[int] = []
        self._sure: list[float] = []
        """The confidence of each drafted token."""
        self._seconds: list[Token | None] = []
        """What else was guessed at each place, or would have been."""
        self._survival, self._kind = 1.0, 0
        self._matches = beliefs.matches

    def risk(self, tokens: float) -> None:
        """Let the round take the time of so many tokens at most."""
        self._left = min(self._left, tokens * self._timing.token)

    def extension(self) -> tuple[float, int]:
        """What it is worth to copy after the tokens drafted so far, and how many."""
        match, tokens = self._copy
        drafted = len(self._bins)
        best, count, total, survival = 0.0, 0, 0.0, self._survival
        here = self._timing.verify(drafted + 1)
        for n in range(1, min(len(tokens), self._limit - drafted) + 1):
            cost = self._timing.verify(drafted + n + 1)
            if cost > self._left:
                break
            survival *= self._matches.rate(match + n - 1)
            total += survival
            worth = total - _CAUTION * self.rate * (cost - here)
            if worth > best:
                best, count = worth, n
        return best, count

    def extend(self, count: int) -> None:
        """Copy so many tokens."""
        self.copied = count
        source = f"{self.draft.source}+lookup" if self.draft.tokens else "lookup"
        tokens = (*self.draft.tokens, *self._copy[1][:count])
        self.draft = Draft(tokens, (*self.draft.proposals, *(None,) * count), source)

    def by_model(self, model: DraftModelDrafter, rule: StoppingRule, policy: Policy) -> None:
        """Let the model draft at the pace of the stopping rule, and copy what follows."""
        self._rule = rule
        self._feeds = max(model.unread, 1)
        self.draft = model.propose(self._limit, replace(policy, pace=self))
        if self.draft.tokens and self.may_copy:
            self._look(self.draft.tokens)
            _, count = self.extension()
            if count:
                self.extend(count)
        if policy.nodes:
            self._seconds = [model.likely_second(place) for place in range(len(self._bins))]
            self._branch(model, policy)

    def _branch(self, model: DraftModelDrafter, policy: Policy) -> None:
        """Add second guesses beside the first ones where their rows are worth it.

        A second guess is of use where all before it are kept, the first one is refused and the second
        is right. It may depend on all that was drawn, since it is drawn after it.
        """
        chances, survival = list[tuple[float, int]](), 1.0
        rates = self._beliefs.confidences.rates()
        for place, bin_ in enumerate(self._bins):
            right = self._beliefs.second(self._sure[place])
            chances.append((survival * (1 - rates[bin_]) * right, place))
            survival *= rates[bin_]
        chances.sort(reverse=True)
        for place in sorted(
            place for _, place in chances[: self._worth_branching(chances, policy)]
        ):
            guess = model.another(self.draft, place, policy)
            if guess:
                self._add(guess, place)

    def _worth_branching(self, chances: Sequence[tuple[float, int]], policy: Policy) -> int:
        """How many of the best chances to take."""
        drafted = len(self.draft.tokens)
        here = self._timing.verify(drafted + 1)
        best, count, total = 0.0, 0, 0.0
        room = min(policy.nodes - drafted, policy.branches - 1, self._limit - drafted)
        for n, (chance, _) in enumerate(chances[: max(room, 0)], start=1):
            total += chance
            worth = total - _CAUTION * self.rate * (self._timing.verify(drafted + n + 1) - here)
            if worth > best:
                best, count = worth, n
        return count

    def _add(self, guess: tuple[Token, Distribution | None], place: int) -> None:
        draft = self.draft
        parents = draft.parents or tuple(range(-1, len(draft.tokens) - 1))
        self.draft = replace(
            draft,
            tokens=(*draft.tokens, guess[0]),
            proposals=(*draft.proposals, guess[1]),
            parents=(*parents, place - 1),
            source=draft.source if self.siblings else f"{draft.source}+tree",
        )
        self._seconds[place] = guess[0]
        self.siblings += 1

    def _look(self, drafted: Sequence[Token]) -> None:
        drafted = drafted[: len(self._bins)]
        self._copy = self._lookup.continuation(drafted, self._limit - len(drafted))

    def step(self, drafted: Sequence[Token]) -> bool:
        """See `Pace`."""
        count = len(drafted)
        cost = self._timing.draft(self._feeds)
        if self._timing.verify(count + 2) + cost > self._left:
            return False
        if count:
            gain = self._rule.gain(count, self._survival, self._kind)
            if gain <= 0:
                return False
            if self.may_copy:
                self._look(drafted)
                if self.extension()[0] > gain:
                    return False
        self._begun = self._clock()
        return True

    def keep(self, confidence: float) -> bool:
        """See `Pace`."""
        took = self._clock() - self._begun
        expected = self._timing.draft(self._feeds)
        self._timing.saw_draft(self._feeds, took)
        self.draft_seconds += min(took, ACCIDENT * expected)
        self._left -= took
        self._feeds = 1
        bin_ = self._beliefs.saw_confidence(self._kind, confidence)
        if not self._rule.keep(len(self._bins), self._survival, bin_):
            self._matches = self._beliefs.doubtful
            return False
        self._survival = self._rule.survives(self._survival, bin_)
        self._kind = self._beliefs.kinds[bin_]
        self._bins.append(bin_)
        self._sure.append(confidence)
        return True

    def learn(self, text: Sequence[Token]) -> None:
        """The draft was tested: `text` is what became of it."""
        drafted = len(self._bins)
        ours = self.draft.tokens
        self._beliefs.saw_draft(self._bins, ours[:drafted], text)
        self._beliefs.matches.saw(self.match, self._shadow, text)
        copied = ours[drafted : drafted + self.copied]
        if drafted and copied and ours[:drafted] == tuple(text[:drafted]):
            self._matches.saw(self._copy[0], copied, text[drafted:])
        for place, (own, second) in enumerate(zip(text, self._seconds, strict=False)):
            if own != ours[place]:
                if second is not None:
                    bin_ = self._beliefs.seconds.bin(self._sure[place])
                    self._beliefs.seconds.saw(bin_, own == second)
                break
