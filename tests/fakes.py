"""Models small enough to reason about. They stand in for a real one in the laws, and only there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, CostTable
from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.drafters.cascade import CascadeDrafter
from edgespec.drafters.confidence import ConfidenceDrafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.headed import HeadedDrafter
from edgespec.drafters.kseq import KSeqDrafter
from edgespec.drafters.lookahead import LookaheadDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.drafters.medusa import MedusaDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.drafters.suffix import SuffixDrafter
from edgespec.drafters.tree import TreeDrafter
from edgespec.errors import Cancelled, RollbackRefusedError
from edgespec.model import ROOT, HiddenStates, Logits, Token
from edgespec.sampling import Distribution
from tests.eagle_fakes import FakeHead
from tests.head_fakes import FakeHeads


class ChainsOnly:
    """Of a model that takes no trees."""

    branches = 1

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        raise AssertionError("a tree for a model that takes none")

    def keep(self, path: Sequence[int]) -> None:
        raise AssertionError("a tree for a model that takes none")

    def states(self) -> HiddenStates:
        raise AssertionError("nobody asked for states")


class FakeModel:
    """A model whose logits are a pure function of the whole text, given by `logits_of`."""

    def __init__(
        self,
        logits_of: Callable[[tuple[Token, ...]], Sequence[float] | NDArray[np.float32]],
        vocab_size: int,
        *,
        capacity: int = 512,
        batch_size: int = 16,
        max_rows: int = 16,
        refuses: bool = False,
        branches: int = 16,
    ) -> None:
        self._logits_of = logits_of
        self.vocab_size = vocab_size
        self.capacity = capacity
        self.batch_size = batch_size
        self.max_rows = max_rows
        self._refuses = refuses
        self.branches = branches
        self._tokens: list[Token] = []
        self._nodes: list[tuple[Token, int]] = []
        """Of the tree below the text: each token and its parent."""
        self.fed = 0
        """Tokens computed so far."""
        self._seen: list[tuple[Token, ...]] = []
        self.fail_at: int | None = None
        """Raise `Cancelled` in the call that would compute this many tokens."""

    @property
    def tokens(self) -> Sequence[Token]:
        return self._tokens

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        assert len(tokens) > 0, "an empty batch"
        assert 0 <= rows <= min(len(tokens), self.max_rows), (rows, len(tokens))
        assert len(self._tokens) + len(tokens) <= self.capacity, "beyond the context"
        self._nodes = []
        self._feed(tokens)
        start = len(self._tokens) + len(tokens) - rows
        before = len(self._tokens)
        self._tokens.extend(tokens)
        self._seen = [tuple(self._tokens[: end + 1]) for end in range(before, len(self._tokens))]
        table = [self._logits_of(tuple(self._tokens[: start + row + 1])) for row in range(rows)]
        return np.array(table, np.float32).reshape(rows, self.vocab_size)

    def _feed(self, tokens: Sequence[Token]) -> None:
        assert all(0 <= token < self.vocab_size for token in tokens), "an unknown id"
        if self.fail_at is not None and self.fed + len(tokens) >= self.fail_at:
            self._nodes = []
            raise Cancelled
        self.fed += len(tokens)

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        assert len(tokens) == len(parents) > 0, "an empty batch"
        assert len(tokens) <= self.max_rows
        assert len(self._tokens) + len(self._nodes) + len(tokens) <= self.capacity, "full"
        self._feed(tokens)
        first = len(self._nodes)
        self._nodes += zip(tokens, parents, strict=True)
        assert all(ROOT <= parent < node for node, (_, parent) in enumerate(self._nodes))
        leaves = set(range(len(self._nodes))) - {parent for _, parent in self._nodes}
        assert len(leaves) <= self.branches, "more leaves than sequences"
        self._seen = [self._text_to(node) for node in range(first, len(self._nodes))]
        table = [self._logits_of(text) for text in self._seen]
        return np.array(table, np.float32).reshape(len(tokens), self.vocab_size)

    def states(self) -> HiddenStates:
        """Of all tokens of the last pass: how long the text was there, and its last two tokens."""
        return np.array([(len(text), *(-1, -1, *text)[-2:]) for text in self._seen], np.float32)

    def _text_to(self, node: int) -> tuple[Token, ...]:
        upwards: list[Token] = []
        while node != ROOT:
            token, node = self._nodes[node]
            upwards.append(token)
        return (*self._tokens, *reversed(upwards))

    def keep(self, path: Sequence[int]) -> None:
        last = ROOT
        for node in path:
            token, parent = self._nodes[node]
            assert parent == last, "no path"
            self._tokens.append(token)
            last = node
        self._nodes = []

    def truncate(self, length: int) -> None:
        self._nodes = []
        if self._refuses and 0 < length < len(self._tokens):
            raise RollbackRefusedError("no", "")
        del self._tokens[length:]


def chaotic(vocab_size: int, seed: int, *, depth: int = 3) -> Callable[[tuple[Token, ...]], Logits]:
    """Logits that depend on the last `depth` tokens and on nothing a drafter could guess."""

    def logits_of(text: tuple[Token, ...]) -> Logits:
        rng = np.random.default_rng([seed, *text[-depth:]])
        return rng.normal(scale=2, size=vocab_size).astype(np.float32)

    return logits_of


def noisy(
    logits_of: Callable[[tuple[Token, ...]], Logits], seed: int, scale: float
) -> Callable[[tuple[Token, ...]], Logits]:
    """A drafter's view of a target: the same logits, disturbed."""

    def disturbed(text: tuple[Token, ...]) -> Logits:
        rng = np.random.default_rng([seed, *text[-3:]])
        clear = logits_of(text)
        return (clear + rng.normal(scale=scale, size=len(clear))).astype(np.float32)

    return disturbed


class Scripted:
    """Proposes what it is told to, point masses; for cases that a real drafter reaches rarely."""

    def __init__(self, guess: Callable[[list[Token], int], Sequence[Token]]) -> None:
        self._guess = guess
        self._text: list[Token] = []

    def begin(self, prompt: Sequence[Token]) -> None:
        self._text = list(prompt)

    def propose(self, limit: int, policy: Policy) -> Draft:
        tokens = tuple(self._guess(self._text, limit))[:limit]
        return Draft(tokens, (None,) * len(tokens))

    def accept(self, tokens: Sequence[Token]) -> None:
        self._text.extend(tokens)

    def close(self) -> None: ...


DrafterMaker = Callable[[Callable[[tuple[Token, ...]], Logits], int], Drafter]


def no_drafter(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> NoDrafter:
    return NoDrafter()


def lookup(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> LookupDrafter:
    return LookupDrafter(min_match=1)


class Untaught(SuffixDrafter):
    """Learns nothing of acceptance: law D asks for what follows from the text alone."""

    def accept(self, tokens: Sequence[Token]) -> None:
        super().accept(tokens)
        self.forget()


def suffix(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> SuffixDrafter:
    return Untaught()


def cascade(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> CascadeDrafter:
    return CascadeDrafter(Untaught(), good_draft(logits_of, vocab), strong=0.5, least=0.05)


def lookahead(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> LookaheadDrafter:
    return LookaheadDrafter(2, 3, 2)


def good_draft(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> DraftModelDrafter:
    return DraftModelDrafter(FakeModel(noisy(logits_of, 7, 0.5), vocab), vocab)


def bad_draft(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> DraftModelDrafter:
    return DraftModelDrafter(FakeModel(chaotic(vocab, 99), vocab), vocab)


def self_draft(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> DraftModelDrafter:
    return DraftModelDrafter(FakeModel(logits_of, vocab), vocab)


def tree(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> TreeDrafter:
    return TreeDrafter(FakeModel(noisy(logits_of, 7, 0.5), vocab), vocab)


def narrow_tree(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> TreeDrafter:
    """Of a draft model that takes small trees, and soon has no room for any."""
    model = FakeModel(noisy(logits_of, 7, 0.5), vocab, capacity=48, max_rows=3, branches=2)
    return TreeDrafter(model, vocab, budget=7, least=0)


def kseq(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> KSeqDrafter:
    return KSeqDrafter(FakeModel(noisy(logits_of, 7, 0.5), vocab, capacity=80), vocab, drafts=3)


def unsure(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> ConfidenceDrafter:
    return ConfidenceDrafter(good_draft(logits_of, vocab), threshold=0.5)


def medusa(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> MedusaDrafter:
    return MedusaDrafter(FakeHeads(logits_of, vocab, scale=1), least=0)


def eagle3(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> HeadedDrafter:
    model = FeatureModel(FakeHead(noisy(logits_of, 7, 0.5), vocab))
    return HeadedDrafter(DraftModelDrafter(model, vocab), model)


def eagle3_tree(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> HeadedDrafter:
    model = FeatureModel(FakeHead(noisy(logits_of, 7, 0.5), vocab, capacity=60, max_rows=5))
    return HeadedDrafter(TreeDrafter(model, vocab), model)


def auto(logits_of: Callable[[tuple[Token, ...]], Logits], vocab: int) -> AutoDrafter:
    """Everything at once, and drafting cheap enough to be used."""
    costs = Costs((CostTable(0, {1: 1.0, 2: 1.1, 16: 2.0}, {1: 0.1, 16: 0.3}),))
    clock = iter(range(1_000_000))
    return AutoDrafter(
        costs,
        LookupDrafter(min_match=1),
        good_draft(logits_of, vocab),
        12,
        lambda: next(clock) / 2,
    )


DRAFTERS: dict[str, DrafterMaker] = {
    "none": no_drafter,
    "lookup": lookup,
    "suffix": suffix,
    "lookahead": lookahead,
    "good draft": good_draft,
    "bad draft": bad_draft,
    "self draft": self_draft,
    "cascade": cascade,
    "medusa": medusa,
    "tree": tree,
    "narrow tree": narrow_tree,
    "k-SEQ": kseq,
    "confidence": unsure,
    "eagle3": eagle3,
    "eagle3 tree": eagle3_tree,
    "auto": auto,
}


def dense(*probs: float) -> Distribution:
    return Distribution(np.array(probs, np.float64))
