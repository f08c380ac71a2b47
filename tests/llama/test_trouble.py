"""Passes that are interrupted, copies that are of no use, and what would make llama.cpp end the process."""

from __future__ import annotations

from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from edgespec import fitting
from edgespec.calibrate import Bench, finish
from edgespec.errors import Cancelled
from edgespec.exact import measure_exact
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.memory import ModelCost
from edgespec.quick import calibrate_quick
from tests.llama.stand import SNAPSHOTS, STATES, Open, right, some
from tests.tiny_models import KINDS, Kind, tiny_model


class Interrupted:
    """Stops a context's next pass after so many nodes of its graph."""

    def __init__(self, model: LlamaModel, nodes: int) -> None:
        self._model, self._left = model, nodes
        self._callback = llama_cpp.ggml_abort_callback(self._asked)

    def _asked(self, _data: object) -> bool:
        self._left -= 1
        return self._left < 0

    def __enter__(self) -> None:
        llama_cpp.llama_set_abort_callback(self._model._ctx, self._callback, None)

    def __exit__(self, *_problem: object) -> None:
        switch = self._model.abort
        llama_cpp.llama_set_abort_callback(self._model._ctx, switch.callback, switch.data)


@pytest.mark.parametrize("nodes", [0, 3, 9, 20, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_that_is_interrupted_leaves_no_trace(opened: Open, kind: Kind, nodes: int) -> None:
    text = some(np.random.default_rng(4), 30)
    model, fresh = opened(kind), opened(kind)
    model.extend(text[:20], rows=1)
    for token in text[20:]:
        model.extend([token], rows=1)
    guesses = some(np.random.default_rng(5), 9)
    with Interrupted(model, nodes), pytest.raises(Cancelled):
        model.extend(guesses, rows=9)
    right(model, fresh, text)
    model.truncate(0)
    model.extend(text[:20], rows=1)
    model.extend(text[20:21], rows=1)
    with Interrupted(model, nodes), pytest.raises(Cancelled):
        model.extend(text[21:22], rows=1)
    # Before a single token no copy is made: it would cost plain decoding too much.
    assert len(model.tokens) in ({20, 21} if kind in STATES else {21})
    right(model, fresh, text[: len(model.tokens)])


@pytest.mark.parametrize("nodes", [0, 9, 20])
@pytest.mark.parametrize("kind", ["mamba", "jamba"])
def test_going_back_is_interrupted(opened: Open, kind: Kind, nodes: int) -> None:
    text = some(np.random.default_rng(6), 26)
    model, fresh = opened(kind), opened(kind)
    model.extend(text[:20], rows=1)
    model.extend(text[20:], rows=6)
    with Interrupted(model, nodes), pytest.raises(Cancelled):
        model.truncate(24)
    right(model, fresh, text[:20])


def test_a_copy_that_cannot_be_put_back(
    opened: Open, tiny: dict[Kind, Weights], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "llama_state_seq_set_data_ext", lambda *_: 0)
    opened("mamba")
    assert not tiny["mamba"].rolls_back
    monkeypatch.undo()
    opened("mamba")
    assert tiny["mamba"].rolls_back


def test_a_copy_that_is_another_text(
    opened: Open, tiny: dict[Kind, Weights], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory says yes, and is where it should be; only what it computes tells."""
    real = llama_cpp.llama_state_seq_set_data_ext

    def disturbed(context: int, data: object, size: int, *rest: int) -> int:
        bytes_ = np.frombuffer(data, np.uint8)[:size].copy()  # type: ignore[call-overload]
        bytes_[-2048:] = 0  # the state of the last layer
        return int(real(context, np.ctypeslib.as_ctypes(bytes_), size, *rest))

    monkeypatch.setattr(llama_cpp, "llama_state_seq_set_data_ext", disturbed)
    opened("mamba")
    assert not tiny["mamba"].rolls_back
    monkeypatch.undo()
    opened("mamba")


@pytest.mark.parametrize(("batch", "rows", "most"), [(4, 4, 2), (2, 2, 0), (64, 3, 2), (64, 60, 7)])
def test_no_assertion_of_llama_cpp_ends_the_process(
    opened: Open, batch: int, rows: int, most: int
) -> None:
    model, fresh = opened("lfm2", batch=batch, rows=rows, snapshots=31), opened("lfm2")
    assert model.snapshots == most
    text = some(np.random.default_rng(10), 20)
    model.extend(text, rows=1)
    model.extend([1, 2], rows=2)
    model.truncate(21)
    right(model, fresh, [*text, 1])


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_many_layers_with_snapshots(tmp_path: Path, kind: Kind) -> None:
    """llama.cpp's graph has room for as many nodes as a model has tensors, times 8; and what it takes is
    no more than what the plan says."""
    path = tiny_model(kind, tmp_path / "deep.gguf", layers=90)
    weights = Weights(path)
    taken = []
    for snapshots in (0, 7):
        model = LlamaModel(weights, context=256, threads=1, max_rows=8, snapshots=snapshots)
        assert model.snapshots == snapshots
        model.extend([4, 5, 6, 7], rows=4)
        model.truncate(2)
        taken.append(model.buffers.kv_cache)
        model.close()
    weights.close()
    cost = ModelCost(fitting.shape(path), 256, "f16", 8)
    planned = sum(cost.kv_cache(layer) for layer in range(cost.count))
    if cost.snapshots == 7:
        assert taken[1] <= planned + 2**15, "llama.cpp tells hundredths of a MiB"
    assert taken[1] > taken[0]


@pytest.mark.parametrize("kind", STATES)
def test_what_passes_cost_is_measured_on_any_memory(opened: Open, kind: Kind) -> None:
    target, draft = opened(kind, context=512), opened(kind, context=512, rows=1)
    bench = Bench(target, draft)
    found = calibrate_quick(bench, threads=(1, 1), seconds=0.2)
    assert found.costs.tables[0].token > 0
    assert len(target.tokens) == len(draft.tokens) == 0
    assert min(finish(measure_exact(Bench(target, None))).values()) >= 1
