"""A draft model drafts a tree that branches where it is unsure (EAGLE-2, Sequoia; see `growth`).

The same target pass then covers the second guess where the first is refused. Each pass of the draft
model computes all nodes that are to have followers; which these are, `growth` decides by the draft's
own confidence, under a budget of nodes.

Where tokens are drawn, siblings are drawn without replacement: the proposal of a younger one is the
draft's distribution without the elder ones. Else they are the draft's most likely tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.drafters.branching import BranchingDrafter, way
from edgespec.drafters.growth import Followers, Growth
from edgespec.model import ROOT, LanguageModel, Logits, Token
from edgespec.sampling import Sampling, distribution, penalised

_WIDEST = 8
"""Guesses for one place at most: the probability of a further one is next to nothing."""
LEAST = 0.02
"""How probably a guess must become text to be worth anything at all."""
_FEW = Sampling(top_k=_WIDEST)


def twice(limit: int) -> int:
    """The default budget: with the token before them twice the limit, 8 rows for 4 and 16 for 8.

    Kernels compute rows in fours, or have a step at 8.
    """
    return 2 * limit - 1


class TreeDrafter(BranchingDrafter):
    """Owns the draft's cache, as any drafter with a model; see `BranchingDrafter`.

    Falls back to a chain where the target or the draft model takes no trees. A pace is asked of
    chains only.
    """

    def __init__(
        self,
        model: LanguageModel,
        target_vocab: int,
        budget: Callable[[int], int] | int = twice,
        least: float = LEAST,
    ) -> None:
        """`target_vocab` is the number of ids the target knows; no other id is ever proposed.

        `budget` is how many nodes a round may have at most, or tells it by the limit of the round.
        `least` is how probably a guess must become text to be made: what a row costs, in tokens.
        """
        super().__init__(model, target_vocab)
        self.budget = budget
        self.least = least

    def _branch(self, limit: int, policy: Policy) -> Draft:
        budget = self.budget if isinstance(self.budget, int) else self.budget(limit)
        nodes = min(policy.nodes, budget)
        if policy.sampled:
            self._make_rows(nodes + 1)
        tree = Growth(nodes, policy.branches, self._model.branches, self.least, policy.uniform)
        tree.know(ROOT, self._followers(self._read_on(), policy, tree, ROOT, 0))
        fed = {ROOT: ROOT}
        for passes in range(limit - 1, 0, -1):
            level = tree.look_below(passes, self._rows_a_pass)
            if not level:
                break
            parents = [fed[tree.parents[node]] for node in level]
            logits = self._grow([tree.tokens[node] for node in level], parents)
            for node, row in zip(level, logits, strict=True):
                fed[node] = len(fed) - 1
                tree.know(node, self._followers(row, policy, tree, node, len(fed) - 1))
        tree.fill()
        return _draft(tree)

    def _followers(
        self, logits: Logits, policy: Policy, tree: Growth, node: int, row: int
    ) -> Followers:
        """What may follow a node, by float32[vocabulary] after it."""
        sampling = policy.sampling
        drafted = way(tree.tokens, tree.parents, node)
        logits = penalised(logits, sampling, self._recent(sampling, drafted))
        if policy.noise:
            proposal = distribution(logits, sampling, (), out=self._rows[row])
            picked = policy.noise.best(proposal, len(self._text) + len(drafted), _WIDEST)
            return Followers([(token, proposal.prob(token)) for token in picked], random=True)
        few = distribution(logits, _FEW)
        ids = few.ids if few.ids is not None else np.arange(len(logits))
        ids = ids[np.argsort(-few.probs, kind="stable")]
        if not policy.draw:
            temperature = sampling.temperature or 1.0
            return Followers(_shares(logits, ids, temperature, self._near))
        proposal = distribution(logits, sampling, (), out=self._rows[row])
        likely = zip(ids.tolist(), proposal.at(ids).tolist(), strict=True)
        return Followers([(token, prob) for token, prob in likely if prob > 0], proposal)


def _shares(
    logits: Logits, ids: NDArray[np.int64], temperature: float, near: NDArray[np.bool_]
) -> list[tuple[Token, float]]:
    """`ids`, the most likely first, with their probabilities.

    What is below e^-16 of the first is left out of the sum, see `sampling.confidence`.
    """
    top = logits[ids[0]]
    np.greater(logits, top - 16 * temperature, out=near)
    total = np.exp((logits[near.nonzero()[0]] - top) / temperature).sum()
    probs = np.exp((logits[ids] - top) / temperature) / total
    pairs = zip(ids.tolist(), probs.tolist(), strict=True)
    return [(token, prob) for token, prob in pairs if prob > 0]


def _draft(tree: Growth) -> Draft:
    if not tree.tokens:
        return NOTHING
    branches = any(parent != node - 1 for node, parent in enumerate(tree.parents))
    parents = tuple(tree.parents) if branches else ()
    return Draft(tuple(tree.tokens), tuple(tree.proposals), "tree", parents)
