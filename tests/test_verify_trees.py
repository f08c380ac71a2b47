"""Law E for trees and for k-SEQ: by enumeration, to 1e-12; known mistakes must fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from edgespec.drafters.base import Draft
from edgespec.model import ROOT, Token
from edgespec.sampling import Distribution, residual, without
from edgespec.verify import KSeq, Verdict, verify_kseq, verify_tree, verify_tree_greedy
from tests.chances import distance, law, texts
from tests.fakes import dense
from tests.test_verify import PAIRS, markov

Text = tuple[Token, ...]
Model = Callable[[Text], Distribution]
Maker = Callable[[Model, Callable[[], float]], Draft]
EXACT = 1e-12


def grown(shape: list[int], *, replace: bool, points: bool = False) -> Maker:
    """A tree of the parents in `shape`, each node drawn from q; without replacement among siblings."""

    def make(q_of: Model, uniform: Callable[[], float]) -> Draft:
        tokens: list[Token] = []
        proposals: list[Distribution | None] = []
        for node, parent in enumerate(shape):
            q = q_of(text_to(tokens, shape, parent))
            elder = [tokens[other] for other in range(node) if shape[other] == parent]
            for token in [] if replace else elder:
                if q.prob(token) == 1:
                    break
                q = without(q, token)
            if points:
                tokens.append(int(q.probs.argmax()))
                proposals.append(None)
            else:
                tokens.append(q.draw(uniform()))
                proposals.append(q)
        return Draft(tuple(tokens), tuple(proposals), parents=tuple(shape))

    return make


def sampled(k: int, length: int) -> Maker:
    """k independent drafts, equal beginnings shared."""

    def make(q_of: Model, uniform: Callable[[], float]) -> Draft:
        tokens: list[Token] = []
        parents: list[int] = []
        proposals: list[Distribution | None] = []
        samples: list[tuple[int, ...]] = []
        for _ in range(k):
            node, sample = ROOT, list[int]()
            for _ in range(length):
                q = q_of(text_to(tokens, parents, node))
                token = q.draw(uniform())
                known = [i for i, t in enumerate(tokens) if t == token and parents[i] == node]
                if not known:
                    tokens.append(token)
                    parents.append(node)
                    proposals.append(q)
                node = known[0] if known else len(tokens) - 1
                sample.append(node)
            samples.append(tuple(sample))
        return Draft(tuple(tokens), tuple(proposals), "", tuple(parents), tuple(samples))

    return make


def text_to(tokens: list[Token], parents: list[int], node: int) -> Text:
    return (*text_to(tokens, parents, parents[node]), tokens[node]) if node != ROOT else ()


def text_of(draft: Draft, node: int) -> Text:
    return tuple(draft.tokens[i] for i in draft.path(node))


Rule = Callable[[Draft, Callable[[int], Distribution], Callable[[], float]], Verdict]


def decoded(
    make: Maker, rule: Rule, p_of: Model, q_of: Model, length: int, uniform: Callable[[], float]
) -> Text:
    """One round, and the target alone for what is left of `length` tokens."""
    draft = make(q_of, uniform)
    verdict = rule(draft, lambda row: p_of(text_of(draft, row - 1)), uniform)
    text = (*(draft.tokens[node] for node in verdict.path), verdict.token)
    while len(text) < length:
        text = (*text, p_of(text).draw(uniform()))
    return text[:length]


def error(make: Maker, rule: Rule, p_of: Model, q_of: Model, vocab: int, length: int) -> float:
    found = law(partial(decoded, make, rule, p_of, q_of, length))
    assert abs(sum(found.values()) - 1) < EXACT
    return distance(found, texts(p_of, vocab, length))


SHAPES = {
    "chain": [ROOT, 0],
    "two children": [ROOT, ROOT],
    "three children": [ROOT, ROOT, ROOT],
    "each branches": [ROOT, ROOT, 0, 0],
    "second goes on": [ROOT, ROOT, 1],
}


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_law_e_of_trees(shape: str, replace: bool, name: str) -> None:
    p, q = (dense(*probs) for probs in PAIRS[name])
    make = grown(SHAPES[shape], replace=replace)
    assert error(make, verify_tree, lambda text: p, lambda text: q, 3, 2) < EXACT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("points", [True, False])
def test_law_e_of_trees_where_all_depends_on_the_text(points: bool, seed: int) -> None:
    make = grown([ROOT, ROOT, 0, 0, 1], replace=False, points=points)
    assert error(make, verify_tree, markov(seed, 3), markov(seed + 50, 3), 3, 3) < EXACT


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_law_e_of_k_seq(k: int, name: str) -> None:
    p, q = (dense(*probs) for probs in PAIRS[name])
    assert error(sampled(k, 1), verify_kseq, lambda text: p, lambda text: q, 3, 2) < EXACT


@pytest.mark.parametrize("seed", range(4))
def test_law_e_of_k_seq_where_all_depends_on_the_text(seed: int) -> None:
    p_of, q_of = markov(seed, 2), markov(seed + 50, 2)
    assert error(sampled(3, 2), verify_kseq, p_of, q_of, 2, 3) < EXACT


def test_law_e_of_k_seq_on_truncated_distributions() -> None:
    p = Distribution(np.array([0.6, 0.4]), np.array([0, 2]))
    q = Distribution(np.array([0.5, 0.3, 0.2]), np.array([0, 1, 3]))
    found = law(partial(decoded, sampled(2, 1), verify_kseq, lambda t: p, lambda t: q, 1))
    assert distance(found, {(0,): 0.6, (2,): 0.4}) < EXACT


def stale(
    draft: Draft, target: Callable[[int], Distribution], uniform: Callable[[], float]
) -> Verdict:
    """A mistake: the second child is tested against p itself."""
    children = draft.children()[ROOT]
    p = target(0)
    for child in children:
        q = draft.proposals[child]
        assert q is not None
        if uniform() < p.prob(draft.tokens[child]) / q.prob(draft.tokens[child]):
            return Verdict([child], target(child + 1).draw(uniform()))
    assert q is not None
    return Verdict([], residual(p, q).draw(uniform()))


def test_law_e_fails_for_known_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    p_of, q_of = markov(2, 4), markov(52, 4)
    two = grown([ROOT, ROOT], replace=False)
    assert error(two, stale, p_of, q_of, 4, 2) > 0.01
    # Children that were drawn without replacement, taken for independent ones, and the other way.
    claimed = grown([ROOT, ROOT], replace=True)

    def mislabelled(q_of: Model, uniform: Callable[[], float]) -> Draft:
        draft = two(q_of, uniform)
        return Draft(draft.tokens, (q_of(()), q_of(())), parents=draft.parents)

    assert error(claimed, verify_tree, p_of, q_of, 4, 2) < EXACT
    assert error(mislabelled, verify_tree, p_of, q_of, 4, 2) > 0.001

    def choosy(q_of: Model, uniform: Callable[[], float]) -> Draft:
        """Drops a draft because of what was drawn."""
        draft = two(q_of, uniform)
        return draft if draft.tokens[0] != 0 else Draft()

    assert error(choosy, verify_tree, p_of, q_of, 4, 2) > 0.001
    monkeypatch.setattr(KSeq, "of", classmethod(too_eager))
    assert error(sampled(2, 1), verify_kseq, p_of, q_of, 4, 2) > 0.001


def too_eager(cls: type[KSeq], p: Distribution, q: Distribution, k: int) -> KSeq:
    """A mistake: every draft is tested as if it were the only one, with the residual of one."""
    return cls(1.0, residual(p, q))


@pytest.mark.parametrize("seed", range(30))
def test_k_seq_s_rho_is_the_least_that_keeps_within_p(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = (dense(*rng.dirichlet(np.full(6, 0.7))) for _ in range(2))
    k = int(rng.integers(1, 6))
    rule = KSeq.of(p, q, k)

    def most(rho: float) -> float:
        """By how much some token would be taken more often than p has it."""
        common = np.minimum(q.probs, p.probs / rho)
        return float((common * (1 - (1 - common.sum()) ** k) / common.sum() - p.probs).max())

    assert 1 <= rule.rho <= k
    assert most(rule.rho) <= EXACT
    assert rule.rho <= 1 + 2e-3 or most(rule.rho - 2e-3) > 0


def test_k_seq_with_more_drafts_takes_one_more_often() -> None:
    """The point of it: with one draft it is rejection sampling."""
    p_of, q_of = markov(3, 4), markov(53, 4)
    taken = []
    for k in (1, 2, 4):
        found = law(partial(kept, sampled(k, 1), p_of, q_of))
        taken.append(found[1])
    overlap = float(np.minimum(p_of(()).probs, q_of(()).probs).sum())
    assert taken[0] == pytest.approx(overlap, abs=1e-3)
    assert taken[0] < taken[1] < taken[2] < 1


def kept(make: Maker, p_of: Model, q_of: Model, uniform: Callable[[], float]) -> int:
    draft = make(q_of, uniform)
    return verify_kseq(draft, lambda row: p_of(text_of(draft, row - 1)), uniform).accepted


def test_greedy_goes_down_the_tree() -> None:
    draft = Draft((4, 7, 5, 6, 9), (None,) * 5, parents=(ROOT, ROOT, 0, 1, 3))
    ways = {
        (7, 6, 9, 1): ([1, 3, 4], 1),
        (7, 5): ([1], 5),
        (4, 5, 3): ([0, 2], 3),
        (6,): ([], 6),
    }
    for own, (path, token) in ways.items():
        said = iter(own)
        verdict = verify_tree_greedy(draft, lambda row, said=said: next(said))  # type: ignore[misc]
        assert (list(verdict.path), verdict.token) == (path, token)


def test_window_tokens_are_no_guesses() -> None:
    draft = Draft((4, 7, 7), (None,) * 3, parents=(ROOT, ROOT, 0), window=2)
    assert draft.children() == [[], [], [], [0]]
    assert list(verify_tree_greedy(draft, lambda row: 7).path) == []
