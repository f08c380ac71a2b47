"""Several drafts at once, drawn independently from the draft model, for k-SEQ (SpecTr, Sun et al. 2023).

All of them take a step in the same pass. Where drafts agree from the beginning on they are one branch
of a tree, so that a draft model that is sure costs no more than a single draft of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from edgespec.drafters.base import Draft, Policy
from edgespec.drafters.branching import BranchingDrafter, way
from edgespec.model import ROOT, LanguageModel, Token
from edgespec.sampling import Distribution


class KSeqDrafter(BranchingDrafter):
    """k independent drafts; a single one where nothing is drawn, since all would be the same."""

    def __init__(self, model: LanguageModel, target_vocab: int, drafts: int = 4) -> None:
        """`drafts` is k; fewer are drawn where the policy or the draft model has room for fewer.

        `target_vocab` is the number of ids the target knows; no other id is ever proposed.
        """
        super().__init__(model, target_vocab)
        self._most = drafts

    def _branch(self, limit: int, policy: Policy) -> Draft:
        room = min(policy.nodes, policy.branches, self._model.branches, self._model.max_rows)
        count = min(self._most, room)
        if count < 2 or not policy.draw:
            return self._chain(limit, policy)
        self._make_rows(policy.nodes + 1)
        drawn = _Drawn([[] for _ in range(count)])
        nodes, logits = [ROOT], self._read_on()[None]
        fed = {ROOT: ROOT}
        while True:
            for node, row in zip(nodes, logits, strict=True):
                drafted = way(drawn.tokens, drawn.parents, node)
                drawn.after[node] = self._after(row, policy, drafted, len(drawn.after))
            drawn.step(policy.uniform)
            nodes = drawn.ends
            # Whether there is another step is settled before it is drawn, by the worst that can come.
            if (
                len(drawn.samples[0]) == limit
                or len(drawn.tokens) + count > policy.nodes
                or self._rows_a_pass < len(nodes)
            ):
                return drawn.draft()
            fed |= {node: len(fed) - 1 + place for place, node in enumerate(nodes)}
            parents = [fed[drawn.parents[node]] for node in nodes]
            logits = self._grow([drawn.tokens[node] for node in nodes], parents)


@dataclass(slots=True)
class _Drawn:
    """The drafts so far, of equal length, as a tree."""

    samples: list[list[int]]
    tokens: list[Token] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    proposals: list[Distribution] = field(default_factory=list)
    after: dict[int, Distribution] = field(default_factory=dict)
    """By node what the next token is drawn from."""

    @property
    def ends(self) -> list[int]:
        """The nodes that the drafts end in."""
        return sorted({sample[-1] for sample in self.samples})

    def step(self, uniform: Callable[[], float]) -> None:
        """Draw the next token of every draft."""
        children: dict[tuple[int, Token], int] = {}
        for sample in self.samples:
            parent = sample[-1] if sample else ROOT
            token = self.after[parent].draw(uniform())
            node = children.setdefault((parent, token), len(self.tokens))
            if node == len(self.tokens):
                self.tokens.append(token)
                self.parents.append(parent)
                self.proposals.append(self.after[parent])
            sample.append(node)

    def draft(self) -> Draft:
        return Draft(
            tuple(self.tokens),
            tuple(self.proposals),
            "kseq",
            tuple(self.parents),
            tuple(tuple(sample) for sample in self.samples),
        )
