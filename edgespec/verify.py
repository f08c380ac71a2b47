"""Which tokens of a draft the target keeps, and the token it adds. Pure: no model, cache or clock.

Every rule leaves the distribution of the text exactly as plain decoding has it:

* `verify_greedy`: keep while the draft says what the target does. At a temperature that is a token drawn
  from p, or picked by noise, whatever the draft says: the law is that of p, and a seed repeats the text
  (llama.cpp's common_sampler_sample_and_accept_n; with shared noise Daliri et al. 2024).
* `verify_sampled`: keep x with probability min(1, p(x) / q(x)); on the first rejection draw from
  norm(max(p - q, 0)), taken over the whole vocabulary; when all are kept draw one more from p
  (Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2). A proposal without a
  distribution is a point mass: q(x) = 1, so keep x with p(x), else draw from p without x.
* `verify_tree`: the same with several guesses for one place, tried one after the other against what
  the refused ones leave of p (SpecInfer, Miao et al. 2024; without replacement: Sequoia, Chen et al.
  2024). `verify_tree_greedy` follows the target's own choices down the tree.
* `verify_kseq`: several independent drafts, of which k-SEQ takes one (SpecTr, Sun et al. 2023).

p is the target's distribution after all processors, given the accepted prefix; rows are asked for
one after the other, and none beyond the first rejection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.drafters.base import Draft
from edgespec.model import ROOT, Token
from edgespec.sampling import Distribution, residual, without


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one verify pass."""

    path: Sequence[int]
    """The draft tokens that are kept, as indices in order; of a chain the first ones."""
    token: Token
    """What the target puts after them: the correction, or the bonus when all were kept."""

    @property
    def accepted(self) -> int:
        """How many draft tokens are kept."""
        return len(self.path)


def verify_greedy(draft: Sequence[Token], choose: Callable[[int], Token]) -> Verdict:
    """Compare a draft with the target's own choices; `choose(i)` is the target's at row i, asked once."""
    for i, token in enumerate(draft):
        own = choose(i)
        if own != token:
            return Verdict(range(i), own)
    return Verdict(range(len(draft)), choose(len(draft)))


def verify_sampled(
    draft: Sequence[Token],
    proposals: Sequence[Distribution | None],
    target: Callable[[int], Distribution],
    uniform: Callable[[], float],
) -> Verdict:
    """Rejection-sample a draft.

    `proposals[i]` is the distribution that `draft[i]` was drawn from, None for a point mass;
    `target(i)` is p at row i, given that `draft[:i]` was kept; `uniform()` draws from [0, 1).
    """
    for i, (token, q) in enumerate(zip(draft, proposals, strict=True)):
        p = target(i)
        ratio = p.prob(token) / (1.0 if q is None else q.prob(token))
        if uniform() < ratio:
            continue
        rest = without(p, token) if q is None else residual(p, q)
        return Verdict(range(i), rest.draw(uniform()))
    return Verdict(range(len(draft)), target(len(draft)).draw(uniform()))


def verify_tree_greedy(draft: Draft, choose: Callable[[int], Token]) -> Verdict:
    """Follow the target's own choices down a tree.

    `choose(row)` is the target's after node `row - 1`, asked once; row 0 is after the text.
    """
    children, path, node = draft.children(), list[int](), ROOT
    while True:
        own = choose(node + 1)
        node = next((child for child in children[node] if draft.tokens[child] == own), ROOT)
        if node == ROOT:
            return Verdict(path, own)
        path.append(node)


def verify_tree(
    draft: Draft, target: Callable[[int], Distribution], uniform: Callable[[], float]
) -> Verdict:
    """Rejection-sample a tree: at each node the children in order, until one is kept.

    What is kept, or drawn at the end, has distribution p whatever the children are drawn from, as
    long as each is drawn from its proposal given the ones before it. `target(row)` is p after node
    `row - 1`, row 0 after the text.
    """
    children, path, node = draft.children(), list[int](), ROOT
    while True:
        p = target(node + 1)
        for child in children[node]:
            token, q = draft.tokens[child], draft.proposals[child]
            if uniform() < p.prob(token) / (1.0 if q is None else q.prob(token)):
                break
            p = without(p, token) if q is None else residual(p, q)
        else:
            return Verdict(path, p.draw(uniform()))
        path.append(child)
        node = child


def verify_kseq(
    draft: Draft, target: Callable[[int], Distribution], uniform: Callable[[], float]
) -> Verdict:
    """Take one of the draft's samples, token by token, by k-SEQ (SpecTr, algorithm 3).

    The drafts that agree with what is kept are tried in order: x is taken with min(1, p / (rho q)).
    If none is, the token is drawn from what the acceptances leave of p.
    """
    active, path, node = list(draft.samples), list[int](), ROOT
    while True:
        p = target(node + 1)
        depth = len(path)
        active = [sample for sample in active if len(sample) > depth]
        if depth:
            active = [sample for sample in active if sample[depth - 1] == node]
        if not active:
            return Verdict(path, p.draw(uniform()))
        q = draft.proposals[active[0][depth]]
        if q is None:
            raise ValueError("k-SEQ needs the distributions that its drafts were drawn from")
        rule = KSeq.of(p, q, len(active))
        for sample in active:
            token = draft.tokens[sample[depth]]
            if uniform() < p.prob(token) / (rule.rho * q.prob(token)):
                break
        else:
            return Verdict(path, rule.rest.draw(uniform()))
        node = sample[depth]
        path.append(node)


@dataclass(frozen=True, slots=True)
class KSeq:
    """k-SEQ for k independent drafts from q of one token of p."""

    rho: float
    """1 to k. A draft is taken with probability min(1, p / (rho q))."""
    rest: Distribution
    """Of the token when no draft is taken."""

    @classmethod
    def of(cls, p: Distribution, q: Distribution, k: int) -> KSeq:
        """The least rho at which no token is taken more often than p has it.

        A draft is taken with probability b = sum of min(q, p / rho), one of k with 1 - (1 - b)^k.
        Tokens are then taken in proportion to min(q, p / rho), which is at most p / rho; so they keep
        within p where 1 - (1 - b)^k <= rho b. Any greater rho is as exact, and takes fewer.
        """
        ids = p.ids if p.ids is not None else np.arange(len(p.probs))
        target, draft = p.probs, q.at(ids)
        low, high = 1.0, float(k)
        while high - low > 1e-3:
            middle = (low + high) / 2
            taken = float(np.minimum(draft, target / middle).sum())
            low, high = (low, middle) if _any(taken, k) <= middle * taken else (middle, high)
        return cls(high, _left(p, draft, high, k))


def _any(taken: float, k: int) -> float:
    """The probability that one of k drafts is taken."""
    return 1 - (1 - taken) ** k


def _left(p: Distribution, draft: NDArray[np.floating], rho: float, k: int) -> Distribution:
    common = np.minimum(draft, p.probs / rho)
    taken = float(common.sum())
    if taken <= 0:
        return p
    rest = np.maximum(p.probs - common * (_any(taken, k) / taken), 0)
    total = rest.sum()
    return Distribution(rest / total, p.ids) if total > 0 else p
