"""The EAGLE-3 head of llama.cpp against numpy, on real weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from gguf import dequantize

from edgespec.drafters.base import Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.eagle3 import Eagle3Drafter
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.tree import TreeDrafter
from edgespec.llama.context import LlamaModel
from edgespec.llama.eagle3 import Eagle3Head
from edgespec.llama.eagle3_file import check_head
from edgespec.llama.weights import Weights
from edgespec.model import ROOT, HiddenStates, Token
from edgespec.sampling import Sampling
from tests.eagle_files import Head, random_head
from tests.gguf_files import _reader, smollm2_path, smollm2_vocab

TEXT = [504, 2004, 314, 253, 28, 30, 42, 198, 520, 1180]
LAYERS = (2, 15, 27)


@dataclass
class Bench:
    target: LlamaModel
    numpy: Head
    head: Eagle3Head
    other: Eagle3Head
    """The same head, with another cache."""

    def states(self, tokens: list[Token]) -> HiddenStates:
        self.target.truncate(0)
        self.target.extend(tokens, rows=1)
        return self.target.states().copy()

    def expected(
        self, tokens: list[Token], features: HiddenStates
    ) -> tuple[HiddenStates, HiddenStates]:
        """Logits of the draft's vocabulary and own states after each pair."""
        tensors = _reader(smollm2_path()).tensors
        table = next(one for one in tensors if one.name == "token_embd.weight")
        embedded = dequantize(table.data[tokens], table.tensor_type)
        return self.numpy.decode(embedded, features)


@pytest.fixture(scope="module", params=["norms", "raw"])
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """A head that borrows the target's embeddings and guesses 4096 of its tokens."""
    folder: Path = tmp_path_factory.mktemp("eagle")
    norms = request.param == "norms"
    made = random_head(
        576, 49152, LAYERS, heads=9, kv_heads=3, draft_vocab=4096,
        norm_before_fc=norms, norm_before_residual=norms,
    )  # fmt: skip
    path = made.write(folder / "head.gguf", smollm2_vocab())
    target_weights, head_weights = Weights(smollm2_path()), Weights(path)
    layers = check_head(smollm2_path(), path)
    target = LlamaModel(
        target_weights, context=128, threads=1, batch_size=64, max_rows=16, states=layers
    )
    head, other = (
        Eagle3Head(head_weights, target, context=128, threads=1, branches=8) for _ in range(2)
    )
    yield Bench(target, made, head, other)
    for one in (head, other, head_weights, target, target_weights):
        one.close()


def near(one: HiddenStates, other: HiddenStates) -> float:
    """The largest difference, in shares of the largest number."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def test_encoder_and_decoder_are_those_of_numpy(bench: Bench) -> None:
    states = bench.states(TEXT)
    features = bench.head.encode(states)
    assert near(features, bench.numpy.encode(states)) < 1e-3
    bench.head.truncate(0)
    bench.head.read(TEXT[1:5], features[:4])
    logits, own = bench.head.step(TEXT[5:], features[4:-1])
    wanted, wanted_own = bench.expected(TEXT[1:], features[:-1])
    assert bench.numpy.d2t is not None
    found = logits[:, bench.numpy.d2t]
    assert near(own, wanted_own[4:]) < 1e-3
    assert near(found, wanted[4:]) < 1e-3
    assert near(found, wanted[3:-1]) > 0.1
    outside = np.delete(logits, bench.numpy.d2t, axis=1)
    assert np.isneginf(outside).all()


@pytest.mark.parametrize("branches", [False, True])
def test_law_d_drafts_after_many_rounds_are_those_of_a_new_head(
    bench: Bench, branches: bool
) -> None:
    """Whatever was drafted, kept and refused: it guesses from the text's own states only."""
    old, rng = drafter(bench.head, branches), np.random.default_rng(1)
    text, places = list(TEXT), bench.states(TEXT)
    old.states_held(text)
    old.read_states(len(text), places)
    old.begin(text)
    old.accept([30])
    text.append(30)
    for _ in range(5):
        draft = old.propose(5, policy())
        assert len(draft.tokens) >= 5
        assert draft.source == "eagle3"
        kept = [draft.tokens[node] for node in draft.path(int(rng.integers(-1, 5)))]
        fresh = drafter(bench.other, branches)
        fresh.states_held(text[:-1])
        fresh.read_states(len(text) - 1, places)
        fresh.begin(text[:-1])
        fresh.accept(text[-1:])
        assert fresh.propose(5, policy()).tokens == draft.tokens
        known = bench.states([*text, *kept])
        old.read_states(len(known), known[len(text) - 1 :])
        places = np.concatenate([places, known[len(text) - 1 :]])
        old.accept([*kept, 28])
        text += [*kept, 28]


def drafter(head: Eagle3Head, branches: bool) -> Eagle3Drafter:
    model = FeatureModel(head)
    chain = DraftModelDrafter(model, 49152)
    return Eagle3Drafter(TreeDrafter(model, 49152) if branches else chain, model, "eagle3")


def policy() -> Policy:
    return Policy(Sampling(temperature=0), lambda: 0.5, draw=False, nodes=16, branches=8)


def test_a_tree_of_pairs_is_as_its_paths(bench: Bench) -> None:
    head = bench.head
    features = head.encode(bench.states(TEXT))
    head.truncate(0)
    head.read(TEXT[1:6], features[:5])
    _, own = head.branch([28, 30], features[[5, 5]], [ROOT, ROOT])
    own = own.copy()
    logits, _ = head.branch([42, 43], own, [0, 1])
    logits = logits.copy()
    head.keep([1])
    assert list(head.tokens) == [*TEXT[1:6], 30]
    for row, (first, second) in enumerate(((28, 42), (30, 43))):
        head.truncate(5)
        head.step([first], features[5:6])
        alone, _ = head.step([second], own[row : row + 1])
        finite = np.isfinite(alone[0])
        assert near(logits[row][finite], alone[0][finite]) < 1e-3
