"""Medusa heads that learn compute what those that draft compute, and learn what there is to learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec.heads.medusa import MedusaHeads
from edgespec.train.shards import Shard
from tests.train.models import NO_TORCH, text

pytest.importorskip("torch", reason=NO_TORCH)

import torch

from edgespec.train.loop import looked
from edgespec.train.medusa import MedusaLearner, scale_of

torch.set_num_threads(1)  # two wait for each other where the machine is busy

WIDTH, TOKENS, HEADS = 16, 12, 3
VOCABULARY = np.arange(1, 2 * TOKENS, 2)
"""Odd ids only."""


def shard(seed: int, texts: int = 6, length: int = 30) -> Shard:
    """Counts from anywhere in steps of 2; a state tells where it is."""
    rng = np.random.default_rng(seed)
    codes = np.random.default_rng(99).standard_normal((2 * TOKENS, WIDTH))
    states, found = [], []
    for number in range(texts):
        best = (rng.integers(0, TOKENS) * 2 + 1 + 2 * np.arange(length)) % (2 * TOKENS)
        states.append(codes[best] * 3 + rng.standard_normal((length, WIDTH)) / 10)
        tokens = (0, *best.tolist())
        found.append(text(tokens, 1, of=2 * TOKENS, row=number * length))
    return Shard(0, False, 0.0, tuple(found), np.concatenate(states).astype(np.float16), None)


def learner(seed: int = 0, *, half: bool = False) -> MedusaLearner:
    output = np.random.default_rng(seed).standard_normal((TOKENS, WIDTH)).astype(np.float32)
    scale = scale_of([shard(0)])
    return MedusaLearner(output, VOCABULARY, 2 * TOKENS, scale, heads=HEADS, half=half, rate=0.05)


def trained(one: MedusaLearner, epochs: int) -> None:
    adam = torch.optim.Adam(
        [{"params": [one.weights[name]], "lr": rate} for name, rate in one.rates.items()]
    )
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        for batch in one.batches([shard(1), shard(2)], rng):
            loss, positions = one.loss(batch)
            assert positions > 0
            adam.zero_grad()
            torch.autograd.backward(loss)
            adam.step()


@pytest.mark.parametrize("half", [False, True])
def test_it_learns(half: bool) -> None:
    one = learner(half=half)
    before = looked(one, [shard(3)])
    trained(one, 80)
    after = looked(one, [shard(3)])
    assert before[0] < 0.3
    assert after[-1] > 0.9
    assert list(after) == sorted(after, reverse=True)


def test_numpy_computes_the_same() -> None:
    one = learner()
    trained(one, 2)
    heads = MedusaHeads(one.blocks, one.output, VOCABULARY)
    found = shard(5)
    first = found.texts[0]
    states = found.final_of(first)
    guesses = one.guesses(states)
    for state, row in zip(states, guesses, strict=True):
        logits = heads.logits(state.astype(np.float32), HEADS)
        assert VOCABULARY[logits.argmax(axis=1)].tolist() == row.tolist()
    for head, (logits, truth) in enumerate(one.judged([found], 1000)):
        count = len(first.best) - HEADS
        assert len(logits) == count * len(found.texts)
        wanted = [heads.logits(state.astype(np.float32), HEADS)[head] for state in states[:count]]
        assert np.abs(logits[:count] - np.array(wanted)).max() < 1e-3
        assert VOCABULARY[truth[:count]].tolist() == first.best[head + 1 :][:count].tolist()


def test_what_head_k_is_to_guess() -> None:
    """What the target says k places after what the state itself says, by its probabilities."""
    one = learner()
    found = shard(0, texts=1, length=10)
    (batch,) = one.batches([found], np.random.default_rng(0))
    states, places, shares = (part.numpy() for part in batch)
    assert len(states) == 9  # the last one has nothing after it
    for state, place, share in zip(states, places, shares, strict=True):
        at = int(np.abs(found.final.astype(np.float32) - state).sum(axis=1).argmin())
        for head in range(HEADS):
            if at + head + 1 >= 10:
                assert not share[head].any()
                continue
            best = found.texts[0].best[at + head + 1]
            # The second one is even, and the vocabulary lacks it.
            assert np.abs(share[head][:3] - [0.6, 0, 0.15]).max() < 1e-3
            assert VOCABULARY[place[head][[0, 2]]].tolist() == [best, (best + 2) % (2 * TOKENS)]


def test_it_learns_how_likely_what_is() -> None:
    one = learner()
    trained(one, 150)
    ((_, places, _),) = batches = one.batches([shard(3)], np.random.default_rng(0))
    with torch.no_grad():
        shares = one._logits(batches[0][0], 0).softmax(dim=-1).numpy()
    there = places[:, 0].numpy()
    assert (
        np.abs(np.take_along_axis(shares, there, axis=1)[:, [0, 2]].mean(axis=0) - [0.8, 0.2]).max()
        < 0.06
    )


def test_what_the_vocabulary_lacks_is_no_lesson_and_no_hit() -> None:
    one = learner()
    found = shard(0, texts=1, length=10)
    first = found.texts[0]
    even = np.where(np.arange(10) % 2 == 0, first.best - 1, first.best)
    other = text(first.tokens, 1, of=2 * TOKENS, best=even.tolist())
    mixed = Shard(0, False, 0.0, (other,), found.final, None)
    (batch,) = one.batches([mixed], np.random.default_rng(0))
    assert int((batch[2][:, :, 0] > 0).sum()) == 5 + 4 + 4
    right: NDArray[np.bool_] = one.right(mixed)
    assert right.shape == (7, HEADS)
    assert not right[1::2, 0].any()
