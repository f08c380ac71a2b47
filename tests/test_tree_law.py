"""Law E for the drafters whose guesses branch, through the engine: by enumeration, to 1e-12.

What they put into a tree depends on what they drew before. Known mistakes must fail the same check.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from edgespec.drafters import growth
from edgespec.drafters.base import Draft, Policy
from edgespec.drafters.branching import BranchingDrafter
from edgespec.drafters.kseq import KSeqDrafter
from edgespec.drafters.tree import TreeDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import Round
from edgespec.model import Logits, Token
from edgespec.sampling import Distribution, Sampling, distribution
from tests.chances import distance, law, texts
from tests.fakes import FakeModel

Text = tuple[Token, ...]
EXACT = 1e-12
LENGTH = 3


class Exact(FakeModel):
    """Rows in double precision, so that a law can be checked to it."""

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        return super().extend(tokens, rows).astype(np.float64)

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        return super().grow(tokens, parents).astype(np.float64)


@cache
def toy(seed: int, vocab: int) -> Callable[[Text], Logits]:
    """After the prompt `(0,)` always 1: an answer's first token is no draft's."""

    @cache
    def logits_of(text: Text) -> Logits:
        if text == (0,):
            return np.array([-1000, 0, *[-1000] * (vocab - 2)], np.float32)
        rng = np.random.default_rng([seed, *text[-3:]])
        return rng.normal(scale=1.3, size=vocab).astype(np.float32)

    return logits_of


def p_of(seed: int, vocab: int, sampling: Sampling) -> Callable[[Text], Distribution]:
    """The target's own distribution after (0, 1, *text)."""

    @cache
    def after(text: Text) -> Distribution:
        whole = (0, 1, *text)
        logits: Any = toy(seed, vocab)(whole).astype(np.float64)
        return distribution(logits, sampling, sampling.window(whole))

    return after


Maker = Callable[[FakeModel, int], BranchingDrafter]


def error(make: Maker, seed: int, sampling: Sampling, *, vocab: int = 3, nodes: int = 15) -> float:
    """How far the law of the `LENGTH` tokens after the first is from the target's.

    They are those of one round, where it has fewer with the target's own behind them.
    """

    def first_round(uniform: Callable[[], float]) -> Text:
        drafter = make(Exact(toy(seed + 50, vocab), vocab), vocab)
        drafter._rows = np.empty((32, vocab), np.float64)
        options = DecodeOptions(
            sampling=sampling, draft_length=LENGTH - 1, max_tokens=LENGTH + 1, uniform=uniform
        )
        target = Exact(toy(seed, vocab), vocab, max_rows=nodes + 1)
        events = decode(target, drafter, [0], options)
        return next(event.tokens for event in events if isinstance(event, Round))

    found: dict[Text, float] = {}
    own = p_of(seed, vocab, sampling)
    for begun, chance in law(first_round).items():
        for rest in itertools.product(range(vocab), repeat=LENGTH - len(begun)):
            text = (*begun, *rest)
            more = (own(text[:i]).prob(text[i]) for i in range(len(begun), LENGTH))
            found[text] = found.get(text, 0.0) + chance * math.prod(more)
    assert abs(sum(found.values()) - 1) < EXACT
    return distance(found, texts(own, vocab, LENGTH))


TREES = {
    "five nodes": (5, 0.0),
    "only what is likely": (6, 0.12),
    "three nodes": (3, 0.0),
}
WARM = Sampling(temperature=1.0)
SAMPLINGS = {
    "plain": WARM,
    "cut off": Sampling(temperature=1.0, top_k=2),
    "with penalties": Sampling(temperature=1.0, presence_penalty=0.7, repeat_penalty=1.2),
}


@pytest.mark.parametrize("sampling", list(SAMPLINGS))
@pytest.mark.parametrize("shape", list(TREES))
@pytest.mark.parametrize("seed", range(2))
def test_law_e_of_the_tree_drafter(seed: int, shape: str, sampling: str) -> None:
    shapes = set[tuple[int, ...]]()

    class Watched(TreeDrafter):
        def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
            draft = super().propose(limit, policy)
            shapes.add(draft.parents)
            return draft

    def make(model: FakeModel, vocab: int) -> TreeDrafter:
        return Watched(model, vocab, *TREES[shape])

    assert error(make, seed, SAMPLINGS[sampling]) < EXACT
    assert any(len(set(parents)) > 1 for parents in shapes)
    assert len(shapes) > 1 or shape == "three nodes" or sampling == "cut off"


@pytest.mark.parametrize("sampling", list(SAMPLINGS))
@pytest.mark.parametrize("seed", range(2))
def test_law_e_of_k_seq(seed: int, sampling: str) -> None:
    assert (
        error(lambda model, vocab: KSeqDrafter(model, vocab, 2), seed, SAMPLINGS[sampling]) < EXACT
    )


def test_law_e_of_k_seq_whose_depth_depends_on_the_nodes_drawn() -> None:
    """Four nodes: three drafts take a second step only where all agreed at first."""
    depths = set()

    class Watched(KSeqDrafter):
        def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
            draft = super().propose(limit, policy)
            depths.add(len(draft.samples[0]))
            return draft

    assert error(lambda model, vocab: Watched(model, vocab, 3), 1, WARM, vocab=2, nodes=4) < EXACT
    assert depths == {1, 2}


class Choosy(TreeDrafter):
    """A mistake: takes a guess out for what was drawn."""

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        draft = super().propose(limit, policy)
        if draft.tokens[-1] != 0:
            return draft
        return Draft(draft.tokens[:-1], draft.proposals[:-1], "", draft.parents[:-1])


class Stale(growth.Followers):
    """A mistake: younger siblings are drawn without the elder, and claim the whole distribution."""

    def __init__(self, likeliest: list[tuple[Token, float]], proposal: Distribution | None) -> None:
        super().__init__(likeliest, proposal)
        self._whole = proposal

    def take(self, uniform: Callable[[], float]) -> tuple[Token, Distribution | None, float]:
        token, _, chance = super().take(uniform)
        return token, self._whole, chance


class Short(KSeqDrafter):
    """A mistake: how deep the drafts go is decided by what was drawn last."""

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        draft = super().propose(limit, policy)
        if draft.tokens[-1] != 0:
            return draft
        samples = tuple(sample[:1] for sample in draft.samples)
        count = 1 + max(max(sample) for sample in samples)
        return Draft(draft.tokens[:count], draft.proposals, "", draft.parents[:count], samples)


def test_law_e_fails_for_known_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert error(lambda model, vocab: Choosy(model, vocab, 5, 0.0), 1, WARM) > 1e-3
    assert error(lambda model, vocab: Short(model, vocab, 2), 1, WARM) > 1e-3
    monkeypatch.setattr("edgespec.drafters.tree.Followers", Stale)
    assert error(lambda model, vocab: TreeDrafter(model, vocab, 5, 0.0), 1, WARM) > 1e-3
