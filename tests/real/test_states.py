"""Hidden states of real weights: those of the tokens that they are said to be of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pytest

from edgespec.errors import ModelFileError
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.model import ROOT, HiddenStates
from model_registry import locate
from tests.tiny_models import Kind, tiny_model

TEXT = [504, 2004, 314, 253, 28, 30, 42]


@pytest.fixture(scope="module")
def weights() -> Iterator[Weights]:
    found = Weights(locate.find(None).target)
    yield found
    found.close()


def opened(weights: Weights, states: Literal["final"] | Sequence[int] | None) -> LlamaModel:
    return LlamaModel(
        weights, context=128, threads=2, batch_size=32, max_rows=16, branches=8, states=states
    )


def close(one: HiddenStates, other: HiddenStates) -> bool:
    """Within what kernels for one row and for several differ by."""
    scale = np.abs(other).mean(axis=-1, keepdims=True)
    return bool((np.abs(one - other) / scale).mean() < 0.1)


@pytest.mark.parametrize("states", ["final", [2, 15, 27]])
def test_states_are_of_the_tokens_of_the_pass(
    weights: Weights, states: Literal["final"] | list[int]
) -> None:
    whole, single = opened(weights, states), opened(weights, states)
    whole.extend(TEXT, rows=len(TEXT))
    found = whole.states().copy()
    width = 576 * (1 if states == "final" else 3)
    assert found.shape == (len(TEXT), width)
    assert found.dtype == np.float32
    rows = []
    for token in TEXT:
        single.extend([token], rows=1)
        rows.append(single.states()[0].copy())
    assert close(found, np.array(rows))
    assert not close(found[1:], np.array(rows)[:-1])
    whole.close()
    single.close()


@pytest.mark.parametrize(("states", "count"), [("final", 1), ([2, 15, 27], 6)])
def test_states_of_a_prompt_s_piece(
    weights: Weights, states: Literal["final"] | list[int], count: int
) -> None:
    """Final states are those of the rows that have logits, layers those of all tokens."""
    model, other = opened(weights, states), opened(weights, states)
    model.extend(TEXT[:6], rows=1)
    found = model.states().copy()
    assert len(found) == count
    other.extend(TEXT[:6], rows=6)
    assert close(found, other.states()[-count:])
    model.close()
    other.close()


@pytest.mark.parametrize("states", ["final", [2, 15, 27]])
def test_states_of_a_tree_are_those_of_its_paths(
    weights: Weights, states: Literal["final"] | list[int]
) -> None:
    model, linear = opened(weights, states), opened(weights, states)
    model.extend(TEXT[:4], rows=0)
    model.grow([28, 30, 42, 28], [ROOT, 0, ROOT, 2])
    found = model.states().copy()
    for row, path in enumerate(([28], [28, 30], [42], [42, 28])):
        linear.truncate(0)
        linear.extend([*TEXT[:4], *path], rows=1)
        assert close(found[row], linear.states()[-1])
    assert not close(found[0], found[3])
    model.close()
    linear.close()


def test_logits_do_not_depend_on_states(weights: Weights) -> None:
    rows = []
    for states in (None, "final", [2, 15, 27]):
        model = opened(weights, states)
        model.extend(TEXT, rows=0)
        rows.append(model.extend(TEXT[:3], rows=3).copy())
        model.close()
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])


def test_a_model_that_does_not_hand_out_its_layers_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tiny_model("gemma3", tmp_path_factory.mktemp("m") / "gemma3.gguf")
    weights = Weights(path)
    with pytest.raises(ModelFileError, match="does not hand out the layers of a gemma3 model"):
        opened(weights, [0, 1])
    weights.close()


@pytest.mark.parametrize("kind", ["lfm2", "qwen35", "nemotron_h"])
def test_a_prompt_that_is_read_in_two_passes_gives_the_states_of_both(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A running state is copied before a long prompt's last token."""
    weights = Weights(tiny_model(kind, tmp_path_factory.mktemp("m") / "tiny.gguf"))
    text = [3 + number * 7 % 200 for number in range(100)]
    rows = []
    for wanted in (0, 1):
        model = LlamaModel(
            weights, context=256, threads=1, batch_size=128, max_rows=8, states=[0, 1]
        )
        model.extend(text, rows=wanted)
        rows.append(model.states().copy())
        model.extend([5], rows=1)
        assert len(model.states()) == 1
        model.close()
    assert rows[0].shape == rows[1].shape == (100, 64)
    assert close(rows[1], rows[0])
    weights.close()


def test_states_that_nobody_asked_for(weights: Weights) -> None:
    model = opened(weights, None)
    model.extend(TEXT, rows=1)
    with pytest.raises(ValueError, match="no states"):
        model.states()
    model.close()
