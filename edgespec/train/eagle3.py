"""An EAGLE-3 head that learns (Li et al. 2025): llama.cpp's src/models/eagle3.cpp in torch.

The head reads pairs: at place P the feature of token P, made of what three layers of the target saw,
and token P + 1; it says token P + 2. Drafting further, its own state stands for the feature that is not
there yet. It learns that too: from each place it is unrolled some steps, as the paper's training-time
test does, with the text's own tokens. Needs the extra `train`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from edgespec.train.loss import crossed
from edgespec.train.shards import Shard
from edgespec.train.speaking import LIKELY

EPSILON, BASE = 1e-5, 10_000.0
"""Of the norms, and of the rotary positions."""
_TEXTS = 8
"""Texts in a step."""
_LESS = 0.8
"""Weight of a step's loss beside the one before it."""
_ABSENT = -100

Texts = Sequence[tuple[Shard, int]]
"""Shards, and which of their texts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some texts, padded at their ends: n texts of at most t states."""

    states: torch.Tensor
    """float32[n, t, 3 * width]."""
    tokens: torch.Tensor
    """int64[n, t + steps]: rows of the embeddings of the token after each state, and of those after."""
    places: torch.Tensor
    """int64[n, t, steps, LIKELY]: places in the vocabulary of what is likely to be said."""
    shares: torch.Tensor
    """float32[n, t, steps, LIKELY]: the probabilities; 0 for what is to be left out."""


@dataclass(frozen=True, slots=True)
class Form:
    """How large a head is."""

    width: int
    """Of the target's states, and of its own."""
    heads: int
    inner: int
    """Of its feed-forward network."""

    @classmethod
    def of(cls, width: int) -> Form:
        """The usual one for a width."""
        size = next(size for size in (64, 32, 16, 8, 4, 2) if width % size == 0)
        return cls(width, width // size, -(-width * 8 // 3 // 64) * 64)


class Eagle3Learner:
    """One head."""

    def __init__(
        self,
        form: Form,
        output: NDArray[np.float32],
        vocabulary: NDArray[np.integer],
        vocab_size: int,
        embeddings: tuple[NDArray[np.integer], NDArray[np.float32]],
        *,
        steps: int,
        half: bool,
        seed: int,
        rate: float = 0.01,
    ) -> None:
        """`output` float32[tokens, width] is for the ids of `vocabulary`, of `vocab_size`.

        `embeddings` are ids, ascending, and float32[n, width]: the target's, of all tokens in texts. They
        are not trained, since the head will borrow those of the target.
        """
        self.form, self.steps, self._half = form, steps, half
        self._ids = torch.from_numpy(np.array(vocabulary, np.int64))
        self._places = np.full(vocab_size + 1, _ABSENT, np.int64)
        self._places[np.array(vocabulary)] = np.arange(len(vocabulary))
        self._known = np.array(embeddings[0], np.int64)
        self._embeddings = torch.from_numpy(embeddings[1].copy())
        self.weights = _begun(form, output, seed)
        self.rates: Mapping[str, float] = {
            name: rate * float(one.detach().square().mean().sqrt())
            for name, one in self.weights.items()
        }

    def batches(self, shards: Sequence[Shard], rng: np.random.Generator) -> list[Texts]:
        """All texts, some at a time."""
        texts = [(shard, place) for shard in shards for place in range(len(shard.texts))]
        order = rng.permutation(len(texts))
        parts = (order[at : at + _TEXTS] for at in range(0, len(order), _TEXTS))
        return [[texts[number] for number in part] for part in parts]

    def steps_in(self, shards: Sequence[Shard]) -> int:
        """At most."""
        return -(-sum(len(shard.texts) for shard in shards) // _TEXTS)

    def _batch(self, texts: Texts) -> Batch:
        most = max(len(shard.texts[place].tokens) - 1 for shard, place in texts)
        width = 3 * self.form.width
        states = np.zeros((len(texts), most, width), np.float32)
        tokens = np.zeros((len(texts), most + self.steps), np.int64)
        places = np.zeros((len(texts), most, self.steps, LIKELY), np.int64)
        shares = np.zeros(places.shape, np.float32)
        for row, (shard, place) in enumerate(texts):
            text = shard.texts[place]
            count = len(text.tokens) - 1
            states[row, :count] = shard.layers_of(text)
            tokens[row, :count] = np.searchsorted(self._known, np.array(text.tokens[1:]))
            # The first state that drafts is that of the prompt's last token.
            for step in range(self.steps):
                likely = self._places[text.likely[step + 1 :]]
                there = slice(text.start - 1, text.start - 1 + len(likely))
                places[row, there, step] = np.maximum(likely, 0)
                shares[row, there, step] = (likely != _ABSENT) * text.shares[step + 1 :]
        return Batch(*(torch.from_numpy(part) for part in (states, tokens, places, shares)))

    def loss(self, texts: Texts) -> tuple[torch.Tensor, int]:
        """Cross-entropy of all steps; how many places have something to be guessed at first."""
        batch = self._batch(texts)
        total, weights = 0 * self.weights["output_norm"].sum(), 1e-9
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            for step, state in enumerate(self.unrolled(batch.states, batch.tokens)):
                there = batch.shares[:, :, step].sum(dim=-1) > 0
                if bool(there.any()):
                    logits = self.logits(state[there]).float()
                    places, shares = (
                        batch.places[:, :, step][there],
                        batch.shares[:, :, step][there],
                    )
                    total = total + _LESS**step * crossed(logits, places, shares)
                    weights += _LESS**step
        return total / weights, int((batch.shares[:, :, 0].sum(dim=-1) > 0).sum())

    def right(self, shard: Shard) -> NDArray[np.bool_]:
        """bool[n, steps] at all places that have a text long enough after them."""
        found = [np.zeros((0, self.steps), np.bool_)]
        for at in range(0, len(shard.texts), _TEXTS):
            several = [(shard, n) for n in range(at, min(at + _TEXTS, len(shard.texts)))]
            guesses = self.guesses(self._batch(several))
            for row, (_, place) in enumerate(several):
                text = shard.texts[place]
                count = len(text.best) - self.steps
                if count > 0:
                    truth = [text.best[step : step + count] for step in range(1, self.steps + 1)]
                    said = guesses[row, text.start - 1 :][:count]
                    found.append(said == np.stack(truth, axis=1))
        return np.concatenate(found)

    def guesses(self, batch: Batch) -> NDArray[np.int64]:
        """int64[n, t, steps]: the likeliest token of each step."""
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            states = self.unrolled(batch.states, batch.tokens)
            best = [self.logits(state).argmax(dim=-1) for state in states]
        found: NDArray[np.int64] = self._ids[torch.stack(best, dim=-1)].numpy()
        return found

    def logits(self, state: torch.Tensor) -> torch.Tensor:
        """[..., tokens] of the vocabulary for [..., width]."""
        return functional.linear(_norm(state, self.weights["output_norm"]), self.weights["output"])

    def unrolled(self, states: torch.Tensor, tokens: torch.Tensor) -> Iterator[torch.Tensor]:
        """[n, t, width] own states of each step, before the last norm.

        Step s at place P comes after the pairs of the text up to P, and s - 1 pairs of own states.
        """
        weights, count = self.weights, states.shape[1]
        feature = functional.linear(_norm(states, weights["enc.output_norm"]), weights["fc"])
        places = torch.arange(count)
        before = torch.ones(count, count, dtype=torch.bool).tril()
        text: tuple[torch.Tensor, torch.Tensor] | None = None
        own: list[tuple[torch.Tensor, torch.Tensor]] = []
        for step in range(self.steps):
            embedded = self._embeddings[tokens[:, step : step + count]]
            normed = _norm(feature, weights["attn_norm_2"])
            both = torch.cat([_norm(embedded, weights["attn_norm"]), normed], dim=-1)
            query, key, value = self._parts(both, places + step)
            if text is None:
                text = key, value
            else:
                own.append((key, value))
            mixed = _attended(query, text, own, before)
            state = functional.linear(mixed.transpose(1, 2).flatten(2), weights["attn_output"])
            state = state.float() + normed
            inner = _norm(state, weights["ffn_norm"])
            gate = functional.silu(functional.linear(inner, weights["ffn_gate"]))
            up = functional.linear(inner, weights["ffn_up"])
            state = state + functional.linear(gate * up, weights["ffn_down"]).float()
            yield state
            feature = state

    def _parts(
        self, both: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values, [n, heads, t, size] each."""
        found = []
        for name in ("attn_q", "attn_k", "attn_v"):
            part = functional.linear(both, self.weights[name]).float()
            found.append(part.reshape(*part.shape[:-1], self.form.heads, -1).transpose(1, 2))
        query, key, value = found
        return _turned(query, places), _turned(key, places), value


def _attended(
    query: torch.Tensor,
    text: tuple[torch.Tensor, torch.Tensor],
    own: Sequence[tuple[torch.Tensor, torch.Tensor]],
    before: torch.Tensor,
) -> torch.Tensor:
    """What [n, heads, t, size] queries see: the text's pairs up to their place, and own ones of it."""
    query = query * query.shape[-1] ** -0.5
    scores = (query @ text[0].transpose(-1, -2)).float().masked_fill(~before, float("-inf"))
    further = [(query * key).sum(dim=-1, keepdim=True).float() for key, _ in own]
    shares = torch.cat([scores, *further], dim=-1).softmax(dim=-1)
    count = scores.shape[-1]
    mixed = (shares[..., :count] @ text[1]).float()
    for number, (_, value) in enumerate(own):
        mixed = mixed + shares[..., count + number, None] * value
    return mixed


def _norm(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    rows = rows.float()
    return rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + EPSILON) * weight


def _turned(rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Rotary positions on neighbouring pairs of [..., t, size] (llama.cpp's type NORM)."""
    size = rows.shape[-1]
    angles = places[:, None] * BASE ** (-torch.arange(0, size, 2) / size)
    cos, sin = angles.cos(), angles.sin()
    even, odd = rows[..., ::2], rows[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def _begun(form: Form, output: NDArray[np.float32], seed: int) -> dict[str, torch.Tensor]:
    """Weights before any training: random, but for the output, which is the target's."""
    dice = torch.Generator().manual_seed(seed)
    width, inner = form.width, form.inner
    shapes = {
        "fc": (width, 3 * width),
        "attn_q": (width, 2 * width),
        "attn_k": (width, 2 * width),
        "attn_v": (width, 2 * width),
        "attn_output": (width, width),
        "ffn_gate": (inner, width),
        "ffn_up": (inner, width),
        "ffn_down": (width, inner),
    }
    found = {
        name: torch.randn(shape, generator=dice) * shape[1] ** -0.5
        for name, shape in shapes.items()
    }
    for name in ("attn_norm", "attn_norm_2", "ffn_norm", "output_norm"):
        found[name] = torch.ones(width)
    found["enc.output_norm"] = torch.ones(3 * width)
    found["output"] = torch.from_numpy(output.copy())
    return {name: one.requires_grad_() for name, one in found.items()}
