"""Heads on the target's last hidden state guess several places at once (Medusa, Cai et al. 2024).

The state that the target's last own token was said from gives, by one head for each, the tokens after
it. A head knows nothing of the guesses of the others, so they are combined: any choice of one token a
place is a candidate, worth the product of their probabilities. The most probable ones make a tree, in
which equal beginnings are shared.

Only exact acceptance follows: the paper's "typical acceptance" changes the text's distribution. Guesses
are point masses at any temperature. That is exact whatever the heads say, and the tree may depend on all
of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.model import ROOT, HiddenStates, Logits, Token
from edgespec.sampling import Distribution, distribution, penalised

_WIDEST = 10
"""Guesses of one head at most: the probability of a further one is next to nothing."""

Guess = tuple[Token, float]
"""A token, and how probably it becomes text if all before it does."""


class Heads(Protocol):
    """What guesses; `edgespec.heads` has those of a file."""

    vocabulary: NDArray[np.int64]
    """The ids that they know, ascending."""

    @property
    def count(self) -> int:
        """How many tokens ahead they see."""
        ...

    @property
    def coverage(self) -> Sequence[float]:
        """By head, how often the token is one that it knows."""
        ...

    def logits(self, state: HiddenStates, count: int, first: int = 0) -> Logits:
        """float32[count, vocabulary] of `count` heads from `first` on, for float32[width]."""
        ...

    def places(self, tokens: Sequence[Token]) -> NDArray[np.int64]:
        """Where `vocabulary` has those of `tokens` that it has."""
        ...


def twice(limit: int) -> int:
    """The default budget: as many nodes beside a chain as in it."""
    return 2 * limit


class MedusaDrafter:
    """Keeps the last state and the text; holds no cache. Drafts a chain where no tree can be verified."""

    def __init__(
        self, heads: Heads, budget: Callable[[int], int] | int = twice, least: float = 0.02
    ) -> None:
        """`budget` is how many guesses a tree may have, or tells it by the limit of the round.

        `least` is how probably a guess must become text to be made: what a row costs, in tokens.
        """
        self._heads = heads
        self._budget = budget
        self._least = least
        self._text: list[Token] = []
        self._state: HiddenStates | None = None
        self._end = 0
        """How many tokens of the text there are up to the one that the state is of."""

    def states_held(self, prompt: Sequence[Token]) -> int:
        """All: only the state of the last token counts, which is always computed."""
        return len(prompt)

    def read_states(self, end: int, states: HiddenStates) -> None:
        """Keep the last one."""
        if len(states):
            self._state, self._end = states[-1].copy(), end

    def begin(self, prompt: Sequence[Token]) -> None:
        """Take over the text."""
        self._text = list(prompt)

    def accept(self, tokens: Sequence[Token]) -> None:
        """Add to the text."""
        self._text += tokens

    def propose(self, limit: int, policy: Policy) -> Draft:
        """The most probable candidates, at most `limit` or as many tokens long as there are heads.

        Nothing where the state is not that of the last token but one, or where no guess can be worth it.
        """
        if self._least >= 1 or self._state is None or self._end != len(self._text) - 1:
            return NOTHING
        if policy.pace and not policy.pace.step(()):
            return NOTHING
        depth = min(limit, self._heads.count)
        guesses = self._guesses(self._heads.logits(self._state, depth), policy)
        if policy.nodes < 1 or policy.branches < 2 or policy.pace:
            return _chain(guesses, self._least, policy)
        budget = self._budget if isinstance(self._budget, int) else self._budget(limit)
        nodes = min(policy.nodes, budget)
        tokens, parents = sparse_tree(guesses, nodes, policy.branches, self._least)
        return _draft(tokens, parents)

    def _guesses(self, logits: Logits, policy: Policy) -> list[list[Guess]]:
        """By place the guesses, the one that is tried first in front; none of probability 0."""
        sampling = policy.sampling
        recent = sampling.window(self._text)
        if recent:
            seen = self._heads.places(recent).tolist()
            logits = np.stack([penalised(row, sampling, seen) for row in logits])
        if policy.noise:
            return self._picked(logits, policy)
        if sampling.temperature not in (0, 1):
            logits = logits / np.float32(sampling.temperature)
        tokens, probs = likeliest(logits, _WIDEST)
        tokens = self._heads.vocabulary[tokens]
        probs *= np.array(self._heads.coverage[: len(probs)])[:, None]
        return [
            [guess for guess in zip(row.tolist(), shares.tolist(), strict=True) if guess[1] > 0]
            for row, shares in zip(tokens, probs, strict=True)
        ]

    def _picked(self, logits: Logits, policy: Policy) -> list[list[Guess]]:
        """What the noise, which the target picks with too, takes at each place.

        Of the first to arrive it is likely that the target takes it as well where a head is sure. So a
        guess counts for as much as the token that has its rank by probability.
        """
        if policy.noise is None:
            raise ValueError("nothing picks")
        known, guesses = self._heads.vocabulary, list[list[Guess]]()
        for place, row in enumerate(logits):
            few = distribution(row, policy.sampling)
            ids = known if few.ids is None else known[few.ids]
            picked = policy.noise.best(
                Distribution(few.probs, ids), len(self._text) + place, _WIDEST
            )
            shares = np.sort(few.probs)[::-1][: len(picked)] * self._heads.coverage[place]
            guesses.append(list(zip(picked, shares.tolist(), strict=True)))
        return guesses

    def close(self) -> None:
        """Nothing to give back."""


def likeliest(logits: Logits, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Places and probabilities of the `most` highest of each row of float32[rows, n], the highest first.

    Both have the shape [rows, min(most, n)].
    """
    width = min(most, logits.shape[1])
    top = np.argpartition(-logits, width - 1, axis=1)[:, :width]
    values = np.take_along_axis(logits, top, axis=1)
    order = np.lexsort(
        (top, -values)
    )  # of equal ones the smaller place, whatever the partition did
    top = np.take_along_axis(top, order, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    total = np.exp(logits - values[:, :1]).sum(axis=1, dtype=np.float64)
    return top, np.exp(values - values[:, :1]) / total[:, None]


class _Candidate(NamedTuple):
    """A node that could be taken next."""

    reach: float
    """What its parent is worth."""
    parent: int
    place: int
    rank: int


def sparse_tree(
    guesses: Sequence[Sequence[Guess]], nodes: int, branches: int, least: float
) -> tuple[list[Token], list[int]]:
    """The most probable nodes of the tree of all candidates: tokens and parents, see `Draft`.

    `guesses` are by place, in order. A node is worth the product of the probabilities on its way; the
    tree has at most `nodes` of them, `branches` leaves, and none worth less than `least`. No node is
    worth more than its parent or its elder sibling, so that taking the best first gives the best tree.
    """
    tokens: list[Token] = []
    parents: list[int] = []
    waiting: list[tuple[float, int, _Candidate]] = []
    leaves = 1

    def offer(one: _Candidate) -> None:
        if one.place < len(guesses) and one.rank < len(guesses[one.place]):
            worth = one.reach * guesses[one.place][one.rank][1]
            if worth >= least:
                heappush(waiting, (-worth, next(number), one))

    number = count()
    offer(_Candidate(1.0, ROOT, 0, 0))
    while waiting and len(tokens) < nodes:
        cost, _, one = heappop(waiting)
        if one.rank and leaves >= branches:
            continue  # a younger sibling is a leaf more
        leaves += one.rank > 0
        tokens.append(guesses[one.place][one.rank][0])
        parents.append(one.parent)
        offer(one._replace(rank=one.rank + 1))
        offer(_Candidate(-cost, len(tokens) - 1, one.place + 1, 0))
    return tokens, parents


def _chain(guesses: Sequence[Sequence[Guess]], least: float, policy: Policy) -> Draft:
    """The first guess of each head, as long as that is worth its row, and as the pace goes on."""
    tokens: list[Token] = []
    reach = 1.0
    for row in guesses:
        if policy.pace and tokens and not policy.pace.step(tokens):
            break
        token, prob = row[0] if row else (0, 0.0)
        reach *= prob
        if reach < least or (policy.pace and not policy.pace.keep(prob)):
            break
        tokens.append(token)
    return _draft(tokens, [])


def _draft(tokens: Sequence[Token], parents: Sequence[int]) -> Draft:
    """A chain where nothing branches."""
    if not tokens:
        return NOTHING
    branches = any(parent != node - 1 for node, parent in enumerate(parents))
    return Draft(tuple(tokens), (None,) * len(tokens), "medusa", tuple(parents) if branches else ())
