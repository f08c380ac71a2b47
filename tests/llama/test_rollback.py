"""Whatever a memory is made of: what was taken back is gone, and what stays is computed right."""

from __future__ import annotations

from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from edgespec.errors import RollbackRefusedError
from edgespec.llama import rollback
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.memory import COPIES
from edgespec.model import Token
from tests.llama.stand import ROWS, SNAPSHOTS, STATES, Open, back_to, close, right, rows_of, some
from tests.tiny_models import KINDS, Kind, tiny_model


@pytest.mark.parametrize(
    ("kind", "memory"),
    list(zip(KINDS, ["kv", "window", "recurrent", *["hybrid"] * 4], strict=True)),
)
def test_what_there_is(opened: Open, tiny: dict[Kind, Weights], kind: Kind, memory: str) -> None:
    model = opened(kind)
    assert tiny[kind].memory == memory
    assert tiny[kind].rolls_back
    assert model.snapshots == (7 if kind in SNAPSHOTS else 0)
    assert opened(kind, rows=1).snapshots == 0, "a draft's steps are passes of their own"
    assert len(model.tokens) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_for_a_plain_cache(tiny: dict[Kind, Weights], kind: Kind) -> None:
    model = LlamaModel(tiny[kind], context=256, threads=1, max_rows=8, branches=8, snapshots=7)
    assert model.branches == (8 if kind == "llama" else 1)
    model.close()


def walk(model: LlamaModel, fresh: LlamaModel, rng: np.random.Generator) -> int:
    """Refused or right, never wrong: any passes, any lengths. Returns how often it was refused."""
    rows = model.max_rows
    text: list[Token] = []
    refused = 0
    for _ in range(60):
        if rng.random() < 0.5 and text:
            back = int(rng.integers(1, 9 if rng.random() < 0.8 else len(text) + 1))
            length = max(len(text) - back, 0)
            possible = back_to(model, length)
            refused += possible < length
            del text[possible:]
            assert list(model.tokens) == text
        else:
            tokens = some(rng, int(rng.choice([1, 1, 1, 2, 4, 9, 12, 40, 90])))
            wanted = min(len(tokens), rows) if rng.random() < 0.7 else 1
            got = model.extend(tokens, wanted).copy()
            text += tokens
            assert close(got, rows_of(fresh, text, wanted))
    right(model, fresh, text)
    return refused


@pytest.mark.parametrize("rows", [1, ROWS])
@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_back_and_forth(opened: Open, kind: Kind, rows: int) -> None:
    rng = np.random.default_rng([rows, KINDS.index(kind)])
    refused = walk(opened(kind, rows=rows), opened(kind), rng)
    assert (refused > 0) == (kind in STATES)


def test_a_walk_with_a_window_beside_a_running_state(tmp_path: Path) -> None:
    changes = {"lfm2.attention.sliding_window": 16}
    weights = Weights(tiny_model("lfm2", tmp_path / "both.gguf", changes=changes))
    assert (weights.memory, weights.window) == ("hybrid", 16)
    for rows in (1, ROWS):
        model, fresh = (
            LlamaModel(weights, context=1024, threads=1, batch_size=64, max_rows=n, snapshots=7)
            for n in (rows, ROWS)
        )
        walk(model, fresh, np.random.default_rng(rows))
        model.close()
        fresh.close()
    weights.close()


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_round_any_part_can_be_taken_back(opened: Open, kind: Kind) -> None:
    rng = np.random.default_rng(1)
    model, fresh = opened(kind), opened(kind)
    text = some(rng, 9)
    model.extend(text, rows=1)
    for count in (2, 5, 9, ROWS):
        for kept in range(1, count + 1):
            tokens = some(rng, count)
            model.extend(tokens, rows=count)
            text += tokens[:kept]
            model.truncate(len(text))
            assert list(model.tokens) == text
    right(model, fresh, text)


@pytest.mark.parametrize("kind", STATES)
def test_a_draft_goes_back_to_where_it_began_to_guess(opened: Open, kind: Kind) -> None:
    """Nothing is computed again: what was accepted is fed with what comes after it."""
    rng = np.random.default_rng(2)
    model, fresh = opened(kind, rows=1), opened(kind)
    text = some(rng, 100)
    model.extend(text, rows=0)
    for number, accepted in enumerate((0, 3, 5, 1, 0, 0, 2, 4)):
        text += some(rng, 1)
        model.extend(text[len(model.tokens) :], rows=1)
        guesses = some(rng, 5)
        for token in guesses[:-1]:  # what is fed gives the next one
            model.extend([token], rows=1)
        text += guesses[:accepted]
        if accepted < 4:
            # The first step of all follows no cut, and so is not known to begin a draft.
            assert back_to(model, len(text)) == len(text) - accepted - (number == 0)
    text = text[: len(model.tokens)]
    right(model, fresh, text)


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_a_snapshot_of_another_text_is_not_believed(opened: Open, kind: Kind) -> None:
    """Single tokens write none. llama.cpp would take an older one and say that it went well."""
    text = some(np.random.default_rng(3), 20)
    model, fresh = opened(kind), opened(kind)
    model.extend(text[:16], rows=1)
    for token in text[16:]:
        model.extend([token], rows=1)
    model.truncate(len(text) - 1)
    right(model, fresh, text[:-1])
    # Negative control.
    careless = opened(kind)
    careless.extend(text[:16], rows=1)
    for token in text[16:]:
        careless.extend([token], rows=1)
    assert llama_cpp.llama_memory_seq_rm(careless._memory, 0, len(text) - 1, -1)
    del careless._tokens[-1:]
    with pytest.raises(AssertionError):
        right(careless, fresh, text[:-1])


@pytest.mark.parametrize("kind", STATES)
def test_no_copy_is_old_and_there_are_few(opened: Open, kind: Kind) -> None:
    rng = np.random.default_rng(7)
    model, fresh = opened(kind, batch=128), opened(kind)
    text = some(rng, 70)
    model.extend(text, rows=1)
    states = model._rollback
    assert isinstance(states, rollback.States)
    for _ in range(300):
        token = some(rng, 1)
        model.extend(token, rows=1)
        text += token
        assert len(states._copies) <= COPIES
        assert len(text) - states._copies[-1].length <= rollback.LONG
    assert states._copies[0].length == 69, "the text that was read, but its last token"
    model.truncate(69)
    right(model, fresh, text[:69])


def test_a_window_changes_what_is_said(tmp_path: Path) -> None:
    """Else these tests would show nothing about windows."""
    text = some(np.random.default_rng(8), 40)
    rows = []
    for window in (16, 64):
        weights = Weights(tiny_model("gemma3", tmp_path / f"{window}.gguf", window=window))
        model = LlamaModel(weights, context=256, threads=1)
        rows.append(model.extend(text, rows=1)[0].copy())
        model.close()
        weights.close()
    assert not close(rows[0], rows[1])


def test_cells_that_a_window_has_left_are_missed(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp with a cache of the window's size takes back what it has no past of any more."""
    fresh = opened("gemma3")
    whole = LlamaModel._params

    def small(self: LlamaModel, context: int, threads: int) -> llama_cpp.llama_context_params:
        params = whole(self, context, threads)
        params.swa_full = False
        return params

    monkeypatch.setattr(LlamaModel, "_params", small)
    model = opened("gemma3")
    text = some(np.random.default_rng(9), 700)
    for start in range(0, 700, 64):
        model.extend(text[start : start + 64], rows=0)
    model.truncate(680)
    with pytest.raises(RollbackRefusedError) as refused:
        model.truncate(100)
    assert refused.value.possible == 0
    right(model, fresh, text[:680])
    assert llama_cpp.llama_memory_seq_rm(model._memory, 0, 100, -1), "so it would have said"
