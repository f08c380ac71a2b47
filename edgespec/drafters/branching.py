"""A draft model whose guesses branch: its cache holds a tree until it is known what became text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.model import ROOT, LanguageModel, Logits, Token
from edgespec.sampling import Distribution, distribution


class BranchingDrafter(DraftModelDrafter, ABC):
    """Drafts a tree where both models take one, else a chain.

    After `propose` the draft's cache may hold nodes below the text; `accept` keeps those that became
    text. Where no `accept` came, because the round was cancelled, they are dropped.
    """

    def __init__(self, model: LanguageModel, target_vocab: int) -> None:
        """`target_vocab` is the number of ids the target knows; no other id is ever proposed."""
        super().__init__(model, target_vocab)
        self._nodes: list[tuple[Token, int]] = []
        """Of the tree in the draft's cache: each token, and the index of its parent."""

    def start(self, prompt: Sequence[Token]) -> None:
        """See `DraftModelDrafter.start`."""
        self._settle(())
        super().start(prompt)

    def accept(self, tokens: Sequence[Token]) -> None:
        """Keep the drafted tokens that became text, drop the refused ones."""
        self._settle(tokens)
        super().accept(tokens)

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        """Draft a tree of at most `limit` tokens in a row, or a chain where there can be no tree, as
        after tokens that another drafter guessed."""
        self._settle(())
        if self._drafts(limit, after) < 1:
            return NOTHING
        if after or policy.nodes < 1 or policy.branches < 2 or self._model.branches < 2:
            return super().propose(limit, policy, after)
        return self._branch(limit, policy)

    @abstractmethod
    def _branch(self, limit: int, policy: Policy) -> Draft:
        """The tree. The text fits the draft's cache, and some of it was not fed yet."""

    def _chain(self, limit: int, policy: Policy) -> Draft:
        return super().propose(limit, policy)

    def _read_on(self) -> Logits:
        """Feed the rest of the text; float32[vocabulary] after it, valid until the next pass."""
        return self._model.extend(self._unfed(()), rows=1)[0, : self._vocab]

    def _grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        """One pass over more nodes: float32[len(tokens), vocabulary], valid until the next one."""
        logits = self._model.grow(tokens, parents)
        self._nodes += zip(tokens, parents, strict=True)
        return logits[:, : self._vocab]

    @property
    def _rows_a_pass(self) -> int:
        """The most nodes that the next pass can compute."""
        room = self._model.capacity - len(self._model.tokens) - len(self._nodes)
        return min(self._model.max_rows, self._model.batch_size, room)

    def _settle(self, tokens: Sequence[Token]) -> None:
        """Keep of the tree the way that `tokens`, which follow the text, go."""
        if not self._nodes:
            return
        below = {(parent, token): node for node, (token, parent) in enumerate(self._nodes)}
        path: list[int] = []
        for token in tokens:
            node = below.get((path[-1] if path else ROOT, token))
            if node is None:
                break
            path.append(node)
        self._nodes = []
        self._model.keep(path)

    def _make_rows(self, count: int) -> None:
        """Room for `count` distributions; memory is taken only by those that are written."""
        if len(self._rows) < count:
            self._rows = np.empty((count, self._vocab), np.float32)

    def _after(
        self, logits: Logits, policy: Policy, drafted: list[Token], row: int
    ) -> Distribution:
        """What is drawn after the text and `drafted`; a dense one is written to `row` of the room."""
        recent = self._recent(policy.sampling, drafted)
        return distribution(logits, policy.sampling, recent, out=self._rows[row])


def way(tokens: Sequence[Token], parents: Sequence[int], node: int) -> list[Token]:
    """The tokens from the text down to `node`, that included; empty for `ROOT`."""
    upwards: list[Token] = []
    while node != ROOT:
        upwards.append(tokens[node])
        node = parents[node]
    return upwards[::-1]
