"""The EAGLE-3 head of llama.cpp against numpy, and the laws of drafters, on real weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gguf import dequantize

from edgespec.drafters.base import Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.headed import HeadedDrafter
from edgespec.drafters.tree import TreeDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.llama.context import LlamaModel
from edgespec.llama.eagle3 import Eagle3Head
from edgespec.llama.log import native_log
from edgespec.llama.weights import Weights
from edgespec.memory import BATCH, MIB
from edgespec.model import ROOT, HiddenStates, Token
from edgespec.pair import Pair
from edgespec.prospect import look_ahead
from edgespec.settings import Load
from tests.eagle_files import Head, random_head
from tests.gguf_files import _reader, smollm2_path, smollm2_vocab
from tests.real import rig

TEXT = [504, 2004, 314, 253, 28, 30, 42, 198, 520, 1180]
LAYERS = (2, 15, 27)
WIDTH, VOCAB = 576, 49152
LENGTH = 16


def some_head(*, norms: bool) -> Head:
    """Borrows the target's embeddings and guesses 1024 of its tokens."""
    return random_head(
        WIDTH, VOCAB, LAYERS, heads=9, kv_heads=3, inner=WIDTH, draft_vocab=1024,
        norm_before_fc=norms, norm_before_residual=norms,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eagle")


@pytest.fixture(scope="module")
def load(folder: Path) -> Load:
    """SmolLM2 with a head of random weights."""
    path = some_head(norms=True).write(folder / "norms.gguf", smollm2_vocab())
    return Load(draft=str(path), method="eagle3", context=512, draft_length=5, threads=1)


@pytest.fixture(scope="module")
def pair(load: Load) -> Iterator[Pair]:
    opened = Pair.open(load)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def head(pair: Pair) -> Eagle3Head:
    assert pair.draft
    assert isinstance(pair.draft.model, Eagle3Head)
    return pair.draft.model


@pytest.fixture
def other(pair: Pair) -> Iterator[Eagle3Head]:
    """The same head, with a cache of its own."""
    assert pair.draft
    made = Eagle3Head(pair.draft.weights, pair.target.model, context=128, threads=1, branches=8)
    yield made
    made.close()


def test_the_memory_plan_counts_what_llama_cpp_takes(pair: Pair, load: Load) -> None:
    """As for a model (test_offload.py). Buffers for states come with the first pass."""
    assert pair.draft
    ahead = look_ahead(load)
    assert ahead.plan.draft
    (expected,) = ahead.plan.draft.shares
    (measured,) = pair.draft.shares
    assert measured.weights == pytest.approx(expected.weights, rel=0.005, abs=20_000)
    assert measured.kv_cache == pytest.approx(expected.kv_cache, rel=0.001, abs=20_000)
    assert measured.compute - MIB < expected.compute < 1.25 * measured.compute + MIB
    log = native_log()
    model = LlamaModel(pair.target.weights, context=512, threads=1, max_rows=1, states=LAYERS)
    before = model.buffers.compute
    log.mark()
    model.extend(TEXT, rows=1)
    states = BATCH * ahead.plan.wish.reads * 4
    assert log.buffers().compute - before == pytest.approx(states, abs=20_000)
    model.close()


def states_of(pair: Pair, tokens: list[Token]) -> HiddenStates:
    model = pair.target.model
    model.truncate(0)
    model.extend(tokens, rows=1)
    return model.states().copy()


def near(one: HiddenStates, other: HiddenStates) -> float:
    """The largest difference, in shares of the largest number."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def check_with_numpy(pair: Pair, head: Eagle3Head, numpy: Head) -> None:
    states = states_of(pair, TEXT)
    features = head.encode(states)
    assert near(features, numpy.encode(states)) < 1e-3
    head.truncate(0)
    head.read(TEXT[1:5], features[:4])
    logits, own = head.step(TEXT[5:], features[4:-1])
    tensors = _reader(smollm2_path()).tensors
    table = next(one for one in tensors if one.name == "token_embd.weight")
    embedded = dequantize(table.data[TEXT[1:]], table.tensor_type)
    wanted, wanted_own = numpy.decode(embedded, features[:-1])
    assert numpy.d2t is not None
    found = logits[:, numpy.d2t]
    assert near(own, wanted_own[4:]) < 1e-3
    assert near(found, wanted[4:]) < 1e-3
    assert near(found, wanted[3:-1]) > 0.1
    outside = np.delete(logits, numpy.d2t, axis=1)
    assert np.isneginf(outside).all()


def test_encoder_and_decoder_are_those_of_numpy(pair: Pair, head: Eagle3Head) -> None:
    check_with_numpy(pair, head, some_head(norms=True))


def test_so_they_are_without_the_norms_that_some_heads_lack(pair: Pair, folder: Path) -> None:
    made = some_head(norms=False)
    weights = Weights(made.write(folder / "raw.gguf", smollm2_vocab()))
    raw = Eagle3Head(weights, pair.target.model, context=64, threads=1, branches=1)
    check_with_numpy(pair, raw, made)
    raw.close()
    weights.close()


def test_a_tree_of_pairs_is_as_its_paths(pair: Pair, head: Eagle3Head) -> None:
    features = head.encode(states_of(pair, TEXT))
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


def drafter(head: Eagle3Head, branches: bool) -> HeadedDrafter:
    model = FeatureModel(head)
    chain = DraftModelDrafter(model, VOCAB)
    return HeadedDrafter(TreeDrafter(model, VOCAB) if branches else chain, model, "eagle3")


def policy() -> Policy:
    return Policy(rig.GREEDY, lambda: 0.5, draw=False, nodes=16, branches=8)


@pytest.mark.parametrize("branches", [False, True])
def test_law_d_drafts_after_many_rounds_are_those_of_a_new_head(
    pair: Pair, head: Eagle3Head, other: Eagle3Head, branches: bool
) -> None:
    """Whatever was drafted, kept and refused: it guesses from the text's own states only."""
    old, rng = drafter(head, branches), np.random.default_rng(1)
    head.truncate(0)
    text, places = list(TEXT), states_of(pair, TEXT)
    old.states_held(text)
    old.read_states(len(text), places)
    old.begin(text)
    old.accept([30])
    text.append(30)
    for _ in range(4):
        draft = old.propose(5, policy())
        assert len(draft.tokens) >= 5
        assert draft.source == "eagle3"
        kept = [draft.tokens[node] for node in draft.path(int(rng.integers(-1, 5)))]
        fresh = drafter(other, branches)
        fresh.states_held(text[:-1])
        fresh.read_states(len(text) - 1, places)
        fresh.begin(text[:-1])
        fresh.accept(text[-1:])
        assert fresh.propose(5, policy()).tokens == draft.tokens
        known = states_of(pair, [*text, *kept])
        old.read_states(len(known), known[len(text) - 1 :])
        places = np.concatenate([places, known[len(text) - 1 :]])
        old.accept([*kept, 28])
        text += [*kept, 28]


def answered(
    pair: Pair, drafts: HeadedDrafter, prompt: list[Token], length: int
) -> tuple[list[Token], list[Round]]:
    """A greedy answer; checks law B after each event."""
    rig.empty(pair)
    tokens, rounds = list[Token](), list[Round]()
    settings = DecodeOptions(sampling=rig.GREEDY, draft_length=length, max_tokens=LENGTH)
    for event in decode(pair.target.model, drafts, prompt, settings):
        if isinstance(event, FirstToken):
            tokens.append(event.token)
        if isinstance(event, Round):
            tokens += event.tokens
            rounds.append(event)
        if tokens:
            assert list(pair.target.model.tokens) == [*prompt, *tokens[:-1]]
    return tokens, rounds


@pytest.fixture(scope="module")
def prompt(pair: Pair) -> list[Token]:
    return rig.encode(pair, rig.question("Count from 1 to 30, separated by commas."))


@pytest.fixture(scope="module")
def steps(pair: Pair, prompt: list[Token]) -> list[rig.Step]:
    """What plain decoding says, and a little more than is asked for."""
    return rig.oracle(pair, prompt, LENGTH + 4)


@pytest.mark.parametrize("branches", [False, True])
def test_laws_a_and_b_with_guesses_that_are_wrong(
    pair: Pair, head: Eagle3Head, prompt: list[Token], steps: list[rig.Step], branches: bool
) -> None:
    tokens, rounds = answered(pair, drafter(head, branches), prompt, 3)
    rig.compare(tokens, steps[:LENGTH])
    assert all(one.proposed >= 3 for one in rounds[:-3])


def test_laws_a_to_c_with_a_head_that_knows_the_answer(
    pair: Pair, folder: Path, prompt: list[Token], steps: list[rig.Step]
) -> None:
    """By heart: its features of the target's states are the token after the next; all else is zero."""
    said = [one.token for one in steps]
    text = [*prompt, *said]
    known = sorted(set(said))
    states = states_of(pair, text)[len(prompt) - 1 : len(text) - 2]
    wanted = np.zeros((len(states), WIDTH), np.float32)
    wanted[np.arange(len(states)), [known.index(token) for token in said[1:]]] = 30
    made = some_head(norms=False)
    tensors = {
        name: one if one.ndim == 1 else np.zeros_like(one) for name, one in made.tensors.items()
    }
    tensors["fc.weight"] = (np.linalg.pinv(states.astype(np.float64)) @ wanted).T.astype(np.float32)
    tensors["output.weight"] = np.eye(len(known), WIDTH, dtype=np.float32)
    knowing = replace(made, tensors=tensors, d2t=np.array(known, np.int64))
    weights = Weights(knowing.write(folder / "knows.gguf", smollm2_vocab()))
    head = Eagle3Head(weights, pair.target.model, context=256, threads=1, branches=1)
    tokens, rounds = answered(pair, drafter(head, branches=False), prompt, 1)
    rig.compare(tokens, steps[:LENGTH])
    assert sum(one.accepted for one in rounds) >= len(rounds) - 1
    head.close()
    weights.close()
