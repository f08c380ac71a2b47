"""How a tree of guesses grows: the guess that most probably becomes text first. Pure bookkeeping.

A place is where guesses can be put: after the text, or after a guess whose followers the draft model
has computed. The next guess at a place is worth the probability that the text comes there, refuses
the guesses before it and keeps this one. What lies below a guess that was not computed yet is forecast;
so the budget is shared out between places that are known and places that are not, and a guess that is
worth nothing but itself is left for the end, when more is known (after EAGLE-2, Li et al. 2024, and
Sequoia, Chen et al. 2024).

Sampled text stays exact: a guess is put into the tree before its token is drawn, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from edgespec.model import ROOT, Token
from edgespec.sampling import Distribution, without

_FIRST = 0.5
"""Forecast: how often the first guess at a place that is not known yet is kept. Rather less than it
turns out to be: the same tokens then come of fewer passes of the draft model."""
_NEXT = 0.6
"""Forecast: by which factor each further guess there is kept less often, the others refused."""


class Followers:
    """What may follow at a place, the next guess first, less what was taken."""

    def __init__(
        self,
        likely: list[tuple[Token, float]],
        proposal: Distribution | None = None,
        *,
        random: bool = False,
    ) -> None:
        """`likely` are tokens in order and their probabilities by the draft, none of them 0.

        They are the guesses, point masses: the most likely ones, or if `random` those that a noise
        picks which the target shares. With a `proposal` guesses are drawn from that, without
        replacement, and `likely`, in descending order, only tells what to expect of them.
        """
        self._left = likely
        self._mass = 1.0
        """Of all that was not taken."""
        self._rest = proposal
        self._random = random or proposal is not None
        self._taken: Token | None = None

    def chance(self, further: int = 0) -> float:
        """The probability that a guess is kept when it is tried, after `further` others from now."""
        if further >= len(self._left):
            return 0.0
        mass = self._mass - sum(prob for _, prob in self._left[:further])
        return self._kept(self._left[further][1], mass, first=self._taken is None and not further)

    def _kept(self, prob: float, mass: float, *, first: bool) -> float:
        if mass <= 0:
            return 0.0
        share = min(prob / mass, 1.0)
        return random_chance(share, first=first) if self._random else share

    def take(self, uniform: Callable[[], float]) -> tuple[Token, Distribution | None, float]:
        """The next guess, what it was drawn from, and the probability that it is kept when tried."""
        first = self._taken is None
        if self._rest is None:
            token, prob = self._left[0]
        else:
            if self._taken is not None:
                self._rest = without(self._rest, self._taken)
            token = self._rest.draw(uniform())
            prob = self._rest.prob(token) * self._mass
        chance = self._kept(prob, self._mass, first=first)
        self._taken = token
        self._mass -= prob
        self._left = [(other, share) for other, share in self._left if other != token]
        return token, self._rest, chance


def random_chance(prob: float, *, first: bool) -> float:
    """How often a random guess is kept, by the draft's own probability of it, or its highest one.

    `first` is the eldest of siblings; the others are tried against what the target has beyond the draft.
    Fitted to Qwen2.5-Coder 0.5B drafting for 1.5B at temperature 0.8.
    """
    if first:
        return 0.27 + 0.5 * prob + 0.23 * prob**12
    return 0.08 + 0.45 * prob + 0.47 * prob**12


class _Source(NamedTuple):
    """What has to be computed before a guess that is forecast can be made."""

    place: int
    """The parent of it."""
    node: int | None
    """None for a new guess at the place, which is to be made first."""
    further: int = 0
    """After how many other new ones."""


class _Slot(NamedTuple):
    """A guess that could be made."""

    cost: float
    """Less its worth."""
    order: int
    chance: float
    """That it is kept when tried."""
    below: int
    """How many guesses in a row can follow it."""
    source: _Source
    known: bool
    """Whether its place is known, and the guess itself is `source`; else that leads to it."""


class _Forecast:
    """Guesses that could be made, the most worth first."""

    def __init__(self, least: float) -> None:
        """`least` is what a guess must be worth."""
        self._least = least
        self._heap: list[_Slot] = []
        self._added = 0

    def add(self, worth: float, chance: float, below: int, source: _Source, *, known: bool) -> None:
        if worth > 0 and worth >= self._least:
            heappush(self._heap, _Slot(-worth, self._added, chance, below, source, known))
            self._added += 1

    def best(self, count: int, places: Mapping[int, Followers]) -> Iterator[_Slot]:
        """The best `count`, those included that can be made only after others."""
        while self._heap and count:
            slot = heappop(self._heap)
            yield slot
            count -= 1
            worth, source, chance = -slot.cost, slot.source, slot.chance * _NEXT
            if slot.known:
                source = source._replace(further=source.further + 1)
                chance = places[source.place].chance(source.further)
            refused = worth * (1 - slot.chance) / slot.chance
            self.add(refused * chance, chance, slot.below, source, known=slot.known)
            if slot.below:
                self.add(worth * _FIRST, _FIRST, slot.below - 1, slot.source, known=False)


@dataclass(slots=True)
class Growth:
    """A tree in the making."""

    nodes: int
    """Guesses at most."""
    branches: int
    """Leaves at most."""
    cached: int
    """Leaves at most of the part that is computed: of the tree in the draft's cache."""
    least: float
    """What a guess must be worth."""
    uniform: Callable[[], float]
    tokens: list[Token] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    proposals: list[Distribution | None] = field(default_factory=list)
    _reach: list[float] = field(default_factory=list)
    """By node the probability that it becomes text."""
    _places: dict[int, Followers] = field(default_factory=dict)
    _open: dict[int, float] = field(default_factory=dict)
    """By place the probability that the text comes there and refuses all guesses so far."""
    _with_guess: set[int] = field(default_factory=set)
    """Places with a guess, which is no leaf less; another one is a leaf more."""
    _with_place: set[int] = field(default_factory=set)
    """Places below which another one is known; the same for the draft's cache."""
    _leaves: int = 1
    _cached_leaves: int = 1

    def know(self, node: int, followers: Followers) -> None:
        """What may follow `node`, or the text, was computed."""
        self._places[node] = followers
        self._open[node] = 1.0 if node == ROOT else self._reach[node]
        if node != ROOT:
            self._cached_leaves += self.parents[node] in self._with_place
            self._with_place.add(self.parents[node])

    def look_below(self, passes: int, most: int) -> list[int]:
        """Make the guesses that others are to follow. Returns what the next pass is to compute.

        That are at most `most` nodes; there can be `passes` (1 or more) passes, the next one included.
        """
        while True:
            wanted = self._choose(self._wanted(passes), most)
            new = [source.place for source in wanted if source.node is None]
            if not new:
                return [source.node for source in wanted if source.node is not None]
            for place in new:
                self._guess(place)

    def fill(self) -> None:
        """Spend what is left of the budget on what is known."""
        while len(self.tokens) < self.nodes:
            best = max(self._places, key=self._worth)
            if not self._worth(best) or self._worth(best) < self.least:
                return
            self._guess(best)

    def _worth(self, place: int) -> float:
        """Of the next guess there."""
        return self._open[place] * self._places[place].chance() if self._has_room(place) else 0.0

    def _has_room(self, place: int) -> bool:
        return self._leaves < self.branches or place not in self._with_guess

    def _guess(self, place: int) -> None:
        if not self._has_room(place):
            return
        self._leaves += place in self._with_guess
        self._with_guess.add(place)
        token, proposal, chance = self._places[place].take(self.uniform)
        self.tokens.append(token)
        self.parents.append(place)
        self.proposals.append(proposal)
        self._reach.append(self._open[place] * chance)
        self._open[place] *= 1 - chance

    def _choose(self, wanted: list[_Source], most: int) -> list[_Source]:
        """The first of them, as many as the next pass and the draft's cache take."""
        spare = self.cached - self._cached_leaves
        continued = set(self._with_place)
        chosen: list[_Source] = []
        for source in wanted:
            branches = source.place in continued
            if len(chosen) < most and spare >= branches:
                spare -= branches
                continued.add(source.place)
                chosen.append(source)
        return chosen

    def _wanted(self, passes: int) -> list[_Source]:
        """What leads to the guesses that the rest of the budget would best be spent on."""
        forecast = _Forecast(self.least)
        for place, followers in self._places.items():
            if self._has_room(place):
                chance, source = followers.chance(), _Source(place, None)
                forecast.add(self._worth(place), chance, passes, source, known=True)
        for node, reach in enumerate(self._reach):
            if node not in self._places:
                source = _Source(self.parents[node], node)
                forecast.add(reach * _FIRST, _FIRST, passes - 1, source, known=False)
        slots = forecast.best(self.nodes - len(self.tokens), self._places)
        return list(dict.fromkeys(slot.source for slot in slots if not slot.known))
