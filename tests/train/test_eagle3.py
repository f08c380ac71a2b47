"""EAGLE-3 heads that learn compute what numpy and llama.cpp do, and learn to go on from themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgespec.llama.context import LlamaModel
from edgespec.llama.eagle3 import Eagle3Head
from edgespec.llama.eagle3_file import check_head
from edgespec.llama.weights import Weights
from edgespec.train.shards import Shard
from model_registry.gguf import read_header
from tests.eagle_files import Head
from tests.tiny_models import tiny_model
from tests.train.models import NO_TORCH, text

pytest.importorskip("torch", reason=NO_TORCH)

import torch

from edgespec.train import eagle3_file
from edgespec.train.eagle3 import BASE, EPSILON, Eagle3Learner, Form
from edgespec.train.loop import looked
from edgespec.train.tensors import EMBEDDINGS, OUTPUT, rows

torch.set_num_threads(1)  # two wait for each other where the machine is busy

WIDTH, TOKENS, STEPS = 32, 40, 3
VOCABULARY = np.arange(3, TOKENS, 2)
"""Odd ids, from 3."""


def shard(seed: int, texts: int = 6, length: int = 24) -> Shard:
    """Counts by 2, 4 or 6, which its states tell only a little late; prompts of 5 tokens."""
    rng = np.random.default_rng(seed)
    codes = np.random.default_rng(99).standard_normal((TOKENS, 3 * WIDTH))
    ways = np.random.default_rng(98).standard_normal((3, 3 * WIDTH))
    states, found = [], []
    many = len(VOCABULARY)
    for number in range(texts):
        way = int(rng.integers(0, 3))
        said = VOCABULARY[(rng.integers(0, many) + (way + 1) * np.arange(length + 1)) % many]
        states.append(codes[said[:-1]] * 50 + ways[way] * 40)
        found.append(text(said.tolist(), 5, of=TOKENS, layer_row=number * length))
    layers = np.concatenate(states).astype(np.float16)
    return Shard(0, False, 0.0, tuple(found), np.zeros((0, WIDTH), np.float16), layers)


def learner(seed: int = 0, *, half: bool = False) -> Eagle3Learner:
    rng = np.random.default_rng(seed)
    output = rng.standard_normal((len(VOCABULARY), WIDTH)).astype(np.float32)
    embeddings = np.random.default_rng(97).standard_normal((TOKENS, WIDTH)).astype(np.float32)
    return Eagle3Learner(
        Form(WIDTH, 4, 64), output, VOCABULARY, TOKENS, (np.arange(TOKENS), embeddings),
        steps=STEPS, half=half, seed=seed,
    )  # fmt: skip


def trained(one: Eagle3Learner, epochs: int) -> None:
    adam = torch.optim.Adam(
        [{"params": [one.weights[name]], "lr": rate} for name, rate in one.rates.items()]
    )
    rng = np.random.default_rng(0)
    for epoch in range(epochs):
        for batch in one.batches([shard(10 + epoch)], rng):
            loss, _ = one.loss(batch)
            adam.zero_grad()
            torch.autograd.backward(loss)
            adam.step()


def reference(one: Eagle3Learner) -> Head:
    """The same weights as llama.cpp has them, in numpy."""
    whole = {"fc", "output", "output_norm", "enc.output_norm"}
    tensors = {
        f"{name}.weight" if name in whole else f"blk.0.{name}.weight": weight.detach().numpy()
        for name, weight in one.weights.items()
    }
    return Head(tensors, one.form.heads, one.form.heads, (0, 1, 1), WIDTH)


@pytest.mark.parametrize("half", [False, True])
def test_it_learns(half: bool) -> None:
    one = learner(half=half)
    before = looked(one, [shard(3)])
    trained(one, 80)
    after = looked(one, [shard(3)])
    assert before[0] < 0.3
    assert after[-1] > 0.6
    assert list(after) == sorted(after, reverse=True)


def test_each_step_is_that_of_numpy() -> None:
    """At place P: the text's pairs up to P, and own states in place of features after it."""
    one = learner()
    trained(one, 2)
    head, found = reference(one), shard(4, texts=2)
    batch = one._batch([(found, 0), (found, 1)])
    with torch.no_grad():
        states = [state.numpy() for state in one.unrolled(batch.states, batch.tokens)]
        logits = [one.logits(torch.from_numpy(state)).numpy() for state in states]
    embeddings = one._embeddings.numpy()
    for row in range(2):
        one_text = found.texts[row]
        tokens = np.array(one_text.tokens)
        features = head.encode(found.layers_of(one_text).astype(np.float32))
        for place in (0, 6, 20):
            pairs = features[: place + 1]
            for step in range(STEPS):
                embedded = embeddings[tokens[1 : place + step + 2]]
                wanted, own = head.decode(embedded, pairs)
                assert np.abs(states[step][row, place] - own[-1]).max() < 1e-3
                assert np.abs(logits[step][row, place] - wanted[-1]).max() < 1e-3
                pairs = np.concatenate([pairs, own[-1:]])


def test_what_a_step_is_to_guess() -> None:
    one = learner()
    found = shard(4, texts=2)
    batch = one._batch([(found, 0), (found, 1)])
    for row, said in enumerate(found.texts):
        for place in range(len(said.tokens) - 1):
            for step in range(STEPS):
                shares = batch.shares[row, place, step]
                at = place + 2 + step
                if place < said.start - 1 or at >= len(said.tokens):
                    assert not shares.any()
                    continue
                # The second one is even, and the vocabulary lacks it.
                assert (
                    np.abs(shares[:3].numpy() - [0.6, 0, 0.15]).max() < 1e-3
                    or said.tokens[at] == TOKENS - 1
                )
                assert VOCABULARY[int(batch.places[row, place, step, 0])] == said.tokens[at]
                assert int(batch.tokens[row, place + step]) == said.tokens[at - 1]


def test_llama_cpp_computes_what_was_trained(tmp_path: Path) -> None:
    target = tiny_model("llama", tmp_path / "llama.gguf", layers=4)
    size = read_header(target).token_count or 0
    vocabulary, known = np.arange(5, size, 3), np.arange(size)
    one = Eagle3Learner(
        Form(WIDTH, 4, 64), rows(target, OUTPUT, vocabulary), vocabulary, size,
        (known, rows(target, EMBEDDINGS, known)), steps=STEPS, half=False, seed=3,
    )  # fmt: skip
    layers = (1, 2, 3)
    made = eagle3_file.HeadFile(
        weights={name: weight.detach().numpy() for name, weight in one.weights.items()},
        vocabulary=vocabulary, layers=layers, heads=4, epsilon=EPSILON, base=BASE,
        context=512, name="tiny", about={},
    )  # fmt: skip
    path = tmp_path / "head.gguf"
    eagle3_file.write(path, target, made)
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["head.gguf", "llama.gguf"]
    weights, head_weights = Weights(target), Weights(path)
    assert head_weights.tokenizer.size == size
    assert check_head(target, path) == layers
    model = LlamaModel(weights, context=256, threads=1, states=layers)
    head = Eagle3Head(head_weights, model, context=256, threads=1)
    tokens = [65, 70, 80, 66, 67, 90, 33]
    model.extend(tokens, rows=1)
    states = model.states().copy()
    logits, own = head.step(tokens[1:], head.encode(states)[:-1])
    batch = torch.tensor([[*tokens[1:], 0, *([0] * STEPS)]])
    with torch.no_grad():
        wanted = next(one.unrolled(torch.from_numpy(states)[None], batch))[0, :-1]
        said = one.logits(wanted).numpy()
    assert np.abs(own - wanted.numpy()).max() < 2e-2 * np.abs(own).max()
    assert np.abs(logits[:, vocabulary] - said).max() < 2e-2 * np.abs(said).max()
    assert np.isneginf(np.delete(logits, vocabulary, axis=1)).all()
    for opened_one in (head, head_weights, model, weights):
        opened_one.close()
