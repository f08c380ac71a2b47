"""Drafting with a target's own layer for the token after the next, on tiny random weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from edgespec.bench.arms import arms_of
from edgespec.drafters.features import FeatureModel
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import ModelFileError, UsageError
from edgespec.events import FirstToken, Reason, Round
from edgespec.llama.mtp import MtpHead
from edgespec.loaded import LoadedModel
from edgespec.model import Token
from edgespec.noise import SharedNoise
from edgespec.pair import Pair
from edgespec.prospect import look_ahead
from edgespec.session import Session
from edgespec.settings import Load, Method, Settings
from tests import tiny_models
from tests.gguf_files import Changes
from tests.real import rig
from tests.real.test_eagle3_pair import COSTS, SPREAD, TEXT, answer, options
from tests.tiny_models import EXPERTS, Kind, tiny_model


def model(
    folder: Path,
    kind: Kind = "qwen35",
    *,
    mtp: bool = True,
    spread: float = 6.0,
    changes: Changes | None = None,
) -> Path:
    return tiny_model(kind, folder / "model.gguf", mtp=mtp, spread=spread, changes=changes)


def load(path: Path, method: Method = "mtp") -> Load:
    return Load(str(path), method=method, context=512, threads=1)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    opened = Pair.open(load(model(tmp_path)))
    yield opened
    opened.close()


@pytest.fixture
def even(tmp_path: Path) -> Iterator[Pair]:
    """All tokens are about equally likely for target and layer: guesses are often kept."""
    opened = Pair.open(load(model(tmp_path, spread=SPREAD)))
    yield opened
    opened.close()


def head_of(pair: Pair) -> MtpHead:
    assert pair.draft
    assert isinstance(pair.draft.model, MtpHead)
    return pair.draft.model


def normed(row: np.ndarray, weight: np.ndarray) -> np.ndarray:
    found: np.ndarray = row / np.sqrt((row**2).mean() + 1e-5) * weight
    return found


def test_the_first_pair_is_that_of_numpy(pair: Pair) -> None:
    """A single pair sees itself only, so that attention gives its own values (src/models/qwen35.cpp)."""
    target, head = pair.target.model, head_of(pair)
    target.extend([5, 6, 7], rows=1)
    state = target.states()[1].copy()
    logits, own = head.step([7], state[None])
    names = {one.name: one.data for one in GGUFReader(pair.target.weights.path).tensors}
    at = {name.removeprefix("blk.2."): one for name, one in names.items()}
    token = normed(names["token_embd.weight"][7], at["nextn.enorm.weight"])
    both = np.concatenate([token, normed(state, at["nextn.hnorm.weight"])])
    first = at["nextn.eh_proj.weight"] @ both
    row = normed(first, at["attn_norm.weight"])
    values = (at["attn_v.weight"] @ row).reshape(2, 16)
    gates = (at["attn_q.weight"] @ row).reshape(2, 2, 16)[:, 1]
    row = first + at["attn_output.weight"] @ (values / (1 + np.exp(-gates))).reshape(-1)
    inner = normed(row, at["post_attention_norm.weight"])
    gate = at["ffn_gate.weight"] @ inner
    row = row + at["ffn_down.weight"] @ (gate / (1 + np.exp(-gate)) * (at["ffn_up.weight"] @ inner))
    row = normed(row, at["nextn.shared_head_norm.weight"])
    assert np.abs(own[0] - row).max() < 1e-3 * np.abs(row).max()
    wanted = names["token_embd.weight"] @ row
    assert np.abs(logits[0] - wanted).max() < 1e-3 * np.abs(wanted).max()


def test_a_prompt_s_pairs_are_those_of_the_target_s_states(pair: Pair) -> None:
    """Read in pieces, as drafting does it, and pair by pair."""
    target, head = pair.target.model, head_of(pair)
    text = [*range(5, 80), 7]
    reader = FeatureModel(head)
    reader.states_held(text)
    for start in range(0, len(text), 40):
        target.extend(text[start : start + 40], rows=1)
        reader.read_states(min(start + 40, len(text)), target.states())
    reader.accept([9])
    found = reader.extend([*text, 9][len(reader.tokens) :], rows=1).copy()
    target.truncate(0)
    head.truncate(0)
    for token, following in pairwise([*text, 9]):
        target.extend([token], rows=1)
        logits, _ = head.step([following], target.states())
    assert np.abs(found[0] - logits[0]).max() < 1e-3 * np.abs(logits[0]).max()


def test_pairs_are_taken_back_for_nothing(pair: Pair) -> None:
    """The layer has a plain KV cache, whatever the target has: nothing is read again."""
    head = head_of(pair)
    states = np.random.default_rng(0).standard_normal((12, head.width)).astype(np.float32)
    first = [head.step([token], states[token : token + 1])[0].copy() for token in range(12)]
    head.truncate(7)
    assert list(head.tokens) == list(range(7))
    again = [head.step([token], states[token : token + 1])[0].copy() for token in range(7, 12)]
    assert np.array_equal(first[7:], again)


def test_the_target_outlives_its_layer(pair: Pair) -> None:
    assert pair.draft
    pair.draft.close()
    assert pair.target.weights.handle
    assert pair.target.model.extend([5, 6], rows=1).shape[0] == 1


def test_a_session_counts_the_file_once(pair: Pair) -> None:
    memory = Session(pair, Settings(load(pair.target.weights.path))).memory()
    assert memory.weights == pair.target.weights.file_bytes
    assert [one.name for one in memory.models] == ["model", "MTP layer of model"]


def test_bench_counts_what_the_layer_takes(pair: Pair) -> None:
    arms = {arm.method: arm.memory_bytes or 0 for arm in arms_of(pair, ["mtp", "lookup"], [2])}
    assert arms["mtp"] > arms["lookup"] == 0


def test_states_are_those_before_the_output_and_of_every_token(pair: Pair) -> None:
    target = pair.target.model
    rows = target.extend([5, 6, 7, 8], rows=4).copy()
    whole = target.states().copy()
    table = next(
        one.data
        for one in GGUFReader(pair.target.weights.path).tensors
        if one.name == "token_embd.weight"
    )
    assert np.abs(whole @ table.T - rows).max() < 1e-3 * np.abs(rows).max()
    target.truncate(0)
    target.extend([5, 6, 7, 8], rows=1)
    assert np.abs(target.states() - whole).max() < 1e-3 * np.abs(whole).max()


@pytest.mark.parametrize("kind", ["qwen35", *EXPERTS])
def test_greedy_text_is_that_of_plain_decoding_turn_after_turn(tmp_path: Path, kind: Kind) -> None:
    with closing(Pair.open(load(model(tmp_path, kind)))) as pair:
        _stays_plain(pair)


def _stays_plain(pair: Pair) -> None:
    assert (pair.method, pair.means.mtp, pair.means.draft) == ("mtp", True, False)
    assert pair.draft
    assert pair.draft.name == "MTP layer of model"
    prompt = rig.encode(pair, rig.question(TEXT))
    for turn in range(3):
        steps = rig.oracle(pair, prompt, 40)
        tokens, rounds, _ = answer(pair, prompt, options(pair, max_tokens=len(steps)))
        rig.compare(tokens, steps)
        assert {one.source for one in rounds if one.proposed} == {"mtp"}
        prompt = [*prompt, *tokens, 40 + turn, 41, 42]


def test_a_seed_gives_the_text_of_plain_decoding_and_guesses_are_kept(even: Pair) -> None:
    prompt = rig.encode(even, rig.question(TEXT))
    found = []
    methods: tuple[Method, ...] = ("plain", "mtp")
    for name in methods:
        rig.empty(even)
        settings = options(
            even,
            sampling=rig.WARM,
            acceptance="shared-noise",
            noise=SharedNoise((1, 0, 0)),
            max_tokens=120,
        )
        found.append(answer(even, prompt, settings, name))
    (plain, _, _), (tokens, rounds, _) = found
    assert tokens == plain
    assert sum(one.accepted for one in rounds) > 0.2 * len(rounds)


def test_law_d_guesses_after_many_rounds_are_those_of_a_new_layer(even: Pair) -> None:
    """What was drafted in a second answer over the same text is what was drafted in the first."""
    prompt = rig.encode(even, rig.question(TEXT))
    rng = np.random.default_rng(1)
    settings = options(even, sampling=rig.WARM, uniform=rng.random, max_tokens=60)
    tokens, _, _ = answer(even, prompt, settings)
    text = [*prompt, *tokens, 40, 41]
    found = []
    for fresh in (False, True):
        if fresh:
            rig.empty(even)
        _, rounds, _ = answer(even, text, options(even))
        found.append([(one.proposed, one.accepted) for one in rounds])
    assert found[0] == found[1]


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_cancelled_answer_leaves_all_exact(even: Pair, stop: int) -> None:
    prompt = rig.encode(even, rig.question(TEXT))
    settings = replace(
        options(even, acceptance="shared-noise", noise=SharedNoise((stop, 0, 0))), sampling=rig.WARM
    )
    tokens = cut(even, prompt, settings, stop)
    again, _, reason = answer(even, prompt, settings)
    rig.empty(even)
    expected, _, _ = answer(even, prompt, settings, "plain")
    assert tokens == expected[: len(tokens)]
    assert (again, reason) == (expected, Reason.LENGTH)


def cut(pair: Pair, prompt: list[Token], settings: DecodeOptions, stop: int) -> list[Token]:
    """An answer that is cancelled at its event number `stop`."""
    tokens = list[Token]()
    events = decode(pair.target.model, pair.drafter, prompt, settings)
    for number, event in enumerate(events, start=1):
        tokens += [event.token] if isinstance(event, FirstToken) else ()
        tokens += event.tokens if isinstance(event, Round) else ()
        if number == stop:
            pair.interrupt(on=True)
    pair.interrupt(on=False)
    return tokens


def test_other_methods_do_not_load_the_layer(tmp_path: Path) -> None:
    path = model(tmp_path)
    sizes = []
    for method in ("mtp", "lookup"):
        opened = Pair.open(load(path, method))
        sizes.append(opened.target.weights.buffers.weights)
        lack = opened.means.lack("mtp")
        assert (lack is None) is (method == "mtp")
        opened.close()
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        (
            "llama",
            {},
            "needs a model with a layer for the token after the next, and model has none",
        ),
        ("qwen35", {}, "and model has none"),
        ("qwen35", {"qwen35.nextn_predict_layers": 1}, "and model has none"),
    ],
)
def test_a_model_without_the_layer_is_refused_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, changes: Changes, says: str
) -> None:
    monkeypatch.setattr(LoadedModel, "open", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(UsageError, match=says) as error:
        Pair.open(load(model(tmp_path, kind, mtp=False, changes=changes)))
    assert "another method" in error.value.hint


def test_a_layer_of_an_architecture_that_is_not_driven_is_refused(tmp_path: Path) -> None:
    path = model(tmp_path, "llama", changes={"llama.nextn_predict_layers": 1})
    with pytest.raises(
        UsageError, match="cannot use the MTP layer of a llama model: EdgeSpec drives"
    ):
        look_ahead(load(path))


@pytest.mark.parametrize("method", ["mtp", "lookup"])
def test_a_file_of_nothing_but_the_layer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    """llama.cpp loads it, and ends the process when it computes."""
    only(monkeypatch, "blk.2.", "output_norm", "token_embd")
    with pytest.raises(ModelFileError, match="model holds nothing of a model but the layer"):
        Pair.open(load(model(tmp_path), method))


def only(monkeypatch: pytest.MonkeyPatch, *starts: str) -> None:
    """Files have these tensors only."""
    every = tiny_models._tensors

    def some(
        kind: Kind, what: list[str], dice: tiny_models._Dice, tokens: int, spread: float
    ) -> tiny_models.Tensors:
        found = every(kind, what, dice, tokens, spread)
        return ((name, one) for name, one in found if name.startswith(starts))

    monkeypatch.setattr(tiny_models, "_tensors", some)


def test_the_layer_may_be_in_another_part_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, starts in enumerate([("blk.0", "blk.1", "output_norm", "token_embd"), ("blk.2",)]):
        changes = {"split.no": number, "split.count": 2}
        with monkeypatch.context() as patched:
            only(patched, *starts)
            made = model(tmp_path, changes=changes)
        made.rename(tmp_path / f"tiny-{number + 1:05d}-of-00002.gguf")
    assert look_ahead(load(tmp_path / "tiny-00001-of-00002.gguf")).plan.head


@pytest.mark.parametrize("now", ["auto", "lookup"])
@pytest.mark.parametrize("mtp", [True, False])
def test_a_chat_can_change_to_it_where_the_file_has_the_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: Method, mtp: bool
) -> None:
    monkeypatch.setattr("edgespec.pair.costs_for", lambda *_: (COSTS, None))
    settings = Settings(load(model(tmp_path, mtp=mtp), now))
    with closing(Session.open(settings)) as session:
        lack = session.lack("mtp")
    assert lack is None if mtp else lack and "and model has none" in lack


def test_several_layers_are_refused(tmp_path: Path) -> None:
    path = model(tmp_path, changes={"qwen35.nextn_predict_layers": 2})
    with pytest.raises(UsageError, match="cannot use the MTP 2 layers of a qwen35 model"):
        look_ahead(load(path))


def test_the_memory_plan_counts_it(tmp_path: Path) -> None:
    path = model(tmp_path)
    ours, plain = look_ahead(load(path)).plan, look_ahead(load(path, "lookup")).plan
    opened = Pair.open(load(path))
    assert opened.draft
    measured = sum(share.total for share in opened.draft.shares)
    opened.close()
    assert ours.rooms[-1].used - plain.rooms[-1].used == ours.head > measured // 2
    assert plain.head == 0
