"""Medusa heads that learn (Cai et al. 2024): what `edgespec.heads.medusa` computes, in torch.

    logits_k = output · (SiLU(block_k · x) + x)

Learnt are the blocks and `output`, which begins as the target's own rows. What is to be guessed is not
what was said but what the target found likely there, by its probabilities: from so little text as is
collected at home more is learnt from them than from one token a place.
Needs the extra `train`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from edgespec.train.loss import crossed
from edgespec.train.shards import Shard, Text
from edgespec.train.speaking import States

_BATCH = 512
"""Positions in a step."""
_LESS = 0.8
"""Weight of a head's loss beside the one before it, as in the paper."""
_ABSENT = -100
"""What cross-entropy leaves out."""

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""float32[n, width] states, int64[n, heads, LIKELY] places in the vocabulary, and float32 of their
probabilities, 0 where the vocabulary lacks the token."""


class MedusaLearner:
    """Some heads that share an output."""

    def __init__(
        self,
        output: NDArray[np.float32],
        vocabulary: NDArray[np.integer],
        vocab_size: int,
        scale: NDArray[np.float32],
        *,
        heads: int,
        half: bool,
        rate: float = 0.01,
    ) -> None:
        """`output` float32[tokens, width] is for the ids of `vocabulary`, of `vocab_size`.

        `scale` float32[width] is how large the numbers of states are: with it steps are of one size in
        all directions. `half` multiplies in bfloat16. `rate` is relative to what the weights are.
        """
        self._ids = torch.from_numpy(np.array(vocabulary, np.int64))
        places = np.full(vocab_size + 1, _ABSENT, np.int64)
        places[np.array(vocabulary)] = np.arange(len(vocabulary))
        self._places = places
        self._scale = torch.from_numpy(np.maximum(scale, 1e-6).astype(np.float32))
        self._half, self.heads = half, heads
        width = output.shape[1]
        self.weights: dict[str, torch.Tensor] = {
            f"block.{head}": torch.zeros(width, width, requires_grad=True) for head in range(heads)
        }
        self.weights["output"] = torch.from_numpy(output.copy()).requires_grad_()
        size = float(np.median(scale)) * width**-0.5
        own = float(np.sqrt(np.mean(np.square(output))))
        self.rates: Mapping[str, float] = {
            name: rate * (own if name == "output" else size) for name in self.weights
        }

    def batches(self, shards: Sequence[Shard], rng: np.random.Generator) -> list[Batch]:
        """Of all positions whose next guess is in the vocabulary, for one head at least."""
        states, places, shares = [], [], []
        for shard in shards:
            for text in shard.texts:
                states.append(shard.final_of(text))
                place, share = self._wanted(text)
                places.append(place)
                shares.append(share)
        x, y, p = np.concatenate(states), np.concatenate(places), np.concatenate(shares)
        order = np.flatnonzero(p.any(axis=(1, 2)))
        rng.shuffle(order)
        parts = [order[at : at + _BATCH] for at in range(0, len(order), _BATCH)]
        return [
            (
                torch.from_numpy(x[part].astype(np.float32)),
                torch.from_numpy(y[part]),
                torch.from_numpy(p[part]),
            )
            for part in parts
        ]

    def steps_in(self, shards: Sequence[Shard]) -> int:
        """At most."""
        return -(-sum(len(shard.final) for shard in shards) // _BATCH)

    def _labels(self, best: NDArray[np.int32]) -> NDArray[np.int64]:
        """int64[n, heads]: what is likeliest so many places after what each state itself says."""
        padded = np.concatenate([best, np.full(self.heads, -1, np.int32)])  # -1 is absent
        found = [self._places[padded[head : head + len(best)]] for head in range(1, self.heads + 1)]
        return np.stack(found, axis=1)

    def _wanted(self, text: Text) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Places and probabilities of `Batch`, n positions."""
        count = len(text.likely)
        none = np.full((self.heads, text.likely.shape[1]), -1)
        places = self._places[np.concatenate([text.likely, none])]  # -1 is absent
        shares = np.concatenate([text.shares, np.zeros(none.shape, np.float16)])
        shares[places == _ABSENT] = 0
        later = [slice(head, head + count) for head in range(1, self.heads + 1)]
        return (
            np.stack([np.maximum(places[part], 0) for part in later], axis=1),
            np.stack([shares[part] for part in later], axis=1).astype(np.float32),
        )

    def _logits(self, x: torch.Tensor, head: int) -> torch.Tensor:
        block = functional.linear(x / self._scale, self.weights[f"block.{head}"])
        return functional.linear(functional.silu(block) + x, self.weights["output"])

    def loss(self, batch: Batch) -> tuple[torch.Tensor, int]:
        """Cross-entropy of all heads."""
        x, places, shares = batch
        total, weights = torch.zeros(()), 1e-9
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            for head in range(self.heads):
                there = shares[:, head].sum(dim=1) > 0
                if bool(there.any()):
                    logits = self._logits(x[there], head).float()
                    one = crossed(logits, places[there, head], shares[there, head])
                    total = total + _LESS**head * one
                    weights += _LESS**head
        return total / weights, len(x)

    def right(self, shard: Shard) -> NDArray[np.bool_]:
        """bool[n, heads] at all positions that have a text long enough after them."""
        found = [np.zeros((0, self.heads), np.bool_)]
        for text in shard.texts:
            count = len(text.best) - self.heads
            if count > 0:
                guesses = self.guesses(shard.final_of(text)[:count])
                truth = [text.best[head : head + count] for head in range(1, self.heads + 1)]
                found.append(guesses == np.stack(truth, axis=1))
        return np.concatenate(found)

    def guesses(self, states: States) -> NDArray[np.int64]:
        """int64[n, heads]: the likeliest token of each head."""
        x = torch.from_numpy(states.astype(np.float32))
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            best = [self._logits(x, head).argmax(dim=1) for head in range(self.heads)]
        found: NDArray[np.int64] = self._ids[torch.stack(best, dim=1)].numpy()
        return found

    def judged(
        self, shards: Sequence[Shard], most: int
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """By head float32[n, tokens] of logits, and int64[n] places of what was right, -1 where the
        vocabulary lacks it; at `most` positions, from all over the texts.
        """
        states, truth = [], []
        for shard in shards:
            for text in shard.texts:
                count = max(len(text.best) - self.heads, 0)
                states.append(shard.final_of(text)[:count])
                truth.append(self._labels(text.best)[:count])
        x, labels = np.concatenate(states), np.maximum(np.concatenate(truth), -1)
        chosen = np.linspace(0, len(x) - 1, min(most, len(x))).astype(np.int64)
        rows = torch.from_numpy(x[chosen].astype(np.float32))
        for head in range(self.heads):
            with torch.no_grad():
                logits: NDArray[np.float32] = self._logits(rows, head).numpy()
            yield logits, labels[chosen, head]

    @property
    def blocks(self) -> NDArray[np.float32]:
        """float32[heads, width, width], for states as they are."""
        own = [(self.weights[f"block.{n}"] / self._scale).detach() for n in range(self.heads)]
        found: NDArray[np.float32] = torch.stack(own).numpy()
        return found

    @property
    def output(self) -> NDArray[np.float32]:
        """float32[tokens, width]."""
        found: NDArray[np.float32] = self.weights["output"].detach().numpy()
        return found


def scale_of(shards: Sequence[Shard]) -> NDArray[np.float32]:
    """float32[width]: the root of the mean square of each number of states."""
    total, count = 0.0, 0
    for shard in shards:
        total = total + np.square(shard.final.astype(np.float64)).sum(axis=0)
        count += len(shard.final)
    scale: NDArray[np.float32] = np.sqrt(total / max(count, 1)).astype(np.float32)
    return scale
