"""From a row of logits to the distribution that a token is drawn from. Pure functions, seeded draws.

The order is that of llama.cpp's default chain (common/sampling.cpp): penalties, top-k, top-p, min-p,
temperature. Every row of every model, target and draft alike, goes through `choose` (temperature 0)
or `distribution`, so both sides of a rejection test mean the same thing by "probability".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import UsageError
from edgespec.model import Logits, Token

BLOCK = 512
"""Vocabulary entries summed together; a draw looks at one sum a block, then into one block."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen. The defaults change nothing: the model's own distribution."""

    temperature: float = 1.0
    """0 is greedy: always the most likely token."""
    top_k: int = 0
    """Keep the k most likely; 0 keeps all."""
    top_p: float = 1.0
    """Keep the fewest tokens that hold this much probability; 1 keeps all."""
    min_p: float = 0.0
    """Keep tokens at least this likely relative to the most likely one; 0 keeps all."""
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64
    """How many of the last tokens, prompt included, the penalties look at."""

    def __post_init__(self) -> None:
        """Refuse values that no distribution follows from. Raises UsageError."""
        _require(0 <= self.temperature < math.inf, "temperature", self.temperature, "0 or more")
        _require(self.top_k >= 0, "top-k", self.top_k, "0 (off) or more")
        _require(0 < self.top_p <= 1, "top-p", self.top_p, "above 0 and at most 1 (off)")
        _require(0 <= self.min_p <= 1, "min-p", self.min_p, "from 0 (off) to 1")
        _require(
            0 < self.repeat_penalty < math.inf, "repeat-penalty", self.repeat_penalty, "above 0"
        )
        _require(
            math.isfinite(self.presence_penalty),
            "presence-penalty",
            self.presence_penalty,
            "finite",
        )
        _require(
            math.isfinite(self.frequency_penalty),
            "frequency-penalty",
            self.frequency_penalty,
            "finite",
        )

    @property
    def greedy(self) -> bool:
        """Whether the choice is the arg-max."""
        return self.temperature == 0

    @property
    def looks_back(self) -> bool:
        """Whether the choice depends on earlier tokens other than through the logits."""
        return (self.repeat_penalty, self.presence_penalty, self.frequency_penalty) != (
            1.0,
            0.0,
            0.0,
        )

    def window(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """The part of `tokens` that the penalties look at; empty when there are none."""
        return tokens[-self.penalty_window :] if self.looks_back and self.penalty_window > 0 else ()


def _require(valid: bool, name: str, value: object, range_text: str) -> None:
    if not valid:
        raise UsageError(f"{name} {value} is out of range.", f"Give a value that is {range_text}.")


@dataclass(frozen=True, slots=True)
class Distribution:
    """Probabilities over a vocabulary: dense, or over the few tokens that survived truncation."""

    probs: NDArray[np.floating]
    """Sum to 1. [vocabulary] when dense, else [survivors]."""
    ids: NDArray[np.int64] | None = None
    """Token of each entry of `probs`, ascending; None when dense."""

    def prob(self, token: Token) -> float:
        """The probability of one token; 0 for one that is cut off or outside the vocabulary."""
        if self.ids is None:
            return float(self.probs[token]) if token < len(self.probs) else 0.0
        i = int(self.ids.searchsorted(token))
        return float(self.probs[i]) if i < len(self.ids) and self.ids[i] == token else 0.0

    def at(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """The probabilities of several tokens."""
        if self.ids is None:
            inside = ids < len(self.probs)
            return np.where(inside, self.probs[np.where(inside, ids, 0)], 0)
        places = self.ids.searchsorted(ids).clip(max=len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.probs[places], 0)

    @property
    def highest(self) -> float:
        """The probability of the most likely token."""
        return float(self.probs.max())

    def draw(self, uniform: float) -> Token:
        """The token at `uniform` in [0, 1) of the cumulative distribution."""
        if self.ids is not None:
            return int(self.ids[_pick(self.probs, uniform)])
        return _pick_by_blocks(self.probs, uniform)


def _pick(weights: NDArray[np.floating], uniform: float) -> int:
    cumulative = weights.cumsum(dtype=np.float64)
    place = int(cumulative.searchsorted(uniform * cumulative[-1], side="right"))
    if place < len(weights):
        return place
    return int(weights.nonzero()[0][-1])  # uniform * total rounded up to total itself


def _pick_by_blocks(weights: NDArray[np.floating], uniform: float) -> int:
    """`_pick` without a running sum over the whole vocabulary, which would cost more than exp()."""
    whole = len(weights) - len(weights) % BLOCK
    sums = weights[:whole].reshape(-1, BLOCK).sum(axis=1)
    if whole < len(weights):
        sums = np.append(sums, weights[whole:].sum())
    ends = sums.cumsum(dtype=np.float64)
    target = uniform * ends[-1]
    block = _pick(sums, uniform)
    inside = weights[block * BLOCK : (block + 1) * BLOCK]
    before = ends[block - 1] if block else 0.0
    # A block's own sum and its running sum differ in the last bits: stay inside the block.
    share = min(max((target - before) / sums[block], 0.0), math.nextafter(1.0, 0.0))
    return block * BLOCK + _pick(inside, float(share))


def residual(p: Distribution, q: Distribution) -> Distribution:
    """The distribution of the token that replaces a rejected draft: norm(max(p - q, 0)), as vectors.

    Leviathan et al. 2023, algorithm 1. Where p and q agree to the last bit nothing is left; a
    rejection then has probability 0, and p itself is returned for the rounding case.
    """
    if p.ids is None and q.ids is None:
        shared = min(len(p.probs), len(q.probs))
        rest = np.maximum(p.probs[:shared] - q.probs[:shared], 0)
        rest = np.append(rest, p.probs[shared:]) if shared < len(p.probs) else rest
    elif p.ids is None:
        rest = p.probs.copy()
        inside = q.ids < len(rest)  # type: ignore[operator]
        rest[q.ids[inside]] -= q.probs[inside]  # type: ignore[index]
        rest.clip(min=0, out=rest)
    else:
        rest = np.maximum(p.probs - q.at(p.ids), 0)
    return _normalised(rest, p)


def without(p: Distribution, token: Token) -> Distribution:
    """The residual for a point-mass proposal: p with `token` taken out."""
    rest = p.probs.copy()
    place = token if p.ids is None else int(p.ids.searchsorted(token))
    if place < len(rest) and (p.ids is None or p.ids[place] == token):
        rest[place] = 0
    return _normalised(rest, p)


def _normalised(rest: NDArray[np.floating], p: Distribution) -> Distribution:
    total = rest.sum()
    return Distribution(rest / total, p.ids) if total > 0 else p


def choose(logits: Logits, sampling: Sampling, recent: Sequence[Token] = ()) -> Token:
    """The arg-max of float32[vocabulary] logits, after penalties for the tokens in `recent`."""
    return int((penalised(logits, sampling, recent) if recent else logits).argmax())


def runner_up(logits: Logits, highest: Token) -> Token:
    """The second most likely token of float32[vocabulary] logits, whose arg-max is `highest`."""
    kept = logits[highest]
    logits[highest] = -np.inf
    second = int(logits.argmax())
    logits[highest] = kept
    return second


def confidence(logits: Logits, highest: Token, near: NDArray[np.bool_]) -> float:
    """The probability of `highest`, the arg-max of float32[vocabulary] logits as they are.

    Tokens below e^-16 of it are left out: a comparison costs less than exp(), and all of them
    together hold next to nothing. `near` is room for a flag a token: fresh memory would cost more
    than the arithmetic.
    """
    top = logits[highest]
    np.greater(logits, top - 16, out=near)
    return float(1 / np.exp(logits[near.nonzero()[0]] - top).sum())


def distribution(
    logits: Logits, sampling: Sampling, recent: Sequence[Token] = (), out: Logits | None = None
) -> Distribution:
    """What a token is drawn from, for float32[vocabulary] logits and a temperature above 0.

    `recent` holds the tokens that the penalties count (`Sampling.window`). A dense result is written
    to `out` when given, so that a caller who keeps several rows allocates none.
    """
    logits = penalised(logits, sampling, recent)
    ids = _survivors(logits, sampling)
    if ids is None:
        probs = np.subtract(logits, logits.max(), out=out)
    else:
        probs = logits[ids]
        probs -= probs.max()
    if sampling.temperature != 1:
        probs *= np.float32(1 / sampling.temperature)
    np.exp(probs, out=probs)
    probs /= probs.sum()
    return Distribution(probs, ids)


def penalised(logits: Logits, sampling: Sampling, recent: Sequence[Token]) -> Logits:
    """Logits after penalties for the tokens in `recent`; the same array where there are none.

    llama.cpp's `llama_sampler_penalties_apply` (src/llama-sampler.cpp), on a copy.
    """
    if not recent or not sampling.looks_back:
        return logits
    counted = Counter(token for token in recent if token < len(logits))
    ids = np.fromiter(counted.keys(), np.int64, len(counted))
    counts = np.fromiter(counted.values(), np.float32, len(counted))
    changed = logits[ids]
    repeat = np.float32(sampling.repeat_penalty)
    changed = np.where(changed <= 0, changed * repeat, changed / repeat)
    changed -= counts * np.float32(sampling.frequency_penalty)
    changed -= np.float32(sampling.presence_penalty)
    logits = logits.copy()
    logits[ids] = changed
    return logits


def _survivors(logits: Logits, sampling: Sampling) -> NDArray[np.int64] | None:
    """Ascending ids of the tokens that truncation leaves; None when it leaves all."""
    ids: NDArray[np.int64] | None = None
    if 0 < sampling.top_k < len(logits):
        ids = _top(logits, sampling.top_k)
    if sampling.top_p < 1:
        ids = _nucleus(logits, ids, sampling.top_p)
    if sampling.min_p > 0:
        floor = logits.max() + np.float32(math.log(sampling.min_p))
        ids = (logits >= floor).nonzero()[0] if ids is None else ids[logits[ids] >= floor]
    return None if ids is None else np.sort(ids)


def _top(logits: Logits, k: int) -> NDArray[np.int64]:
    """The k largest, largest first; of equal ones the smaller id.

    Each block's maximum is an element, so the k-th largest maximum is a bound that at least k
    elements reach. One comparison against it leaves few candidates to sort: a partition of a
    whole 150k vocabulary costs several times more.
    """
    whole = len(logits) - len(logits) % 64
    candidates: NDArray[np.int64]
    if k < whole // 64:
        maxima = logits[:whole].reshape(-1, 64).max(axis=1)
        bound = np.partition(maxima, len(maxima) - k)[len(maxima) - k]
        candidates = (logits >= bound).nonzero()[0]
    else:
        candidates = np.arange(len(logits))
    return candidates[np.argsort(-logits[candidates], kind="stable")[:k]]


def _nucleus(logits: Logits, ids: NDArray[np.int64] | None, top_p: float) -> NDArray[np.int64]:
    """Of `ids` (largest first; None: of all) the fewest that hold `top_p` of their probability."""
    highest = logits.max()
    if ids is not None:
        weights = np.exp(logits[ids] - highest, dtype=np.float64)
        return ids[: _reach(weights, top_p * weights.sum())]
    goal = top_p * float(np.exp(logits - highest).sum(dtype=np.float64))
    k = 128
    while True:
        ids = _top(logits, k)
        weights = np.exp(logits[ids] - highest, dtype=np.float64)
        if k >= len(logits) or weights.sum() >= goal:
            return ids[: _reach(weights, goal)]
        k *= 16


def _reach(weights: NDArray[np.float64], goal: float) -> int:
    """How many of the first weights it takes to reach `goal`; at least 1, at most all."""
    return min(int(weights.cumsum().searchsorted(goal)) + 1, len(weights))
