"""Trees on real weights: a node's logits are those of its path, and what is kept is a plain cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from edgespec.errors import Cancelled
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.model import ROOT, Logits, Token
from model_registry import locate

CLOSE = 0.2
"""Of the spread of a row: kernels round by the number of rows and the order of cells, and quantised
activations make steps of that. Another text is farther away by far."""


@pytest.fixture(scope="module")
def weights() -> Iterator[Weights]:
    found = Weights(locate.find(None).target)
    yield found
    found.close()


@pytest.fixture
def model(weights: Weights) -> Iterator[LlamaModel]:
    found = LlamaModel(weights, context=128, threads=1, max_rows=16, branches=8)
    yield found
    found.close()


def linear(weights: Weights, tokens: Sequence[Token]) -> Logits:
    """The logits after the last of `tokens`, in a cache of their own."""
    fresh = LlamaModel(weights, context=128, threads=1)
    row: Logits = fresh.extend(tokens, rows=1)[0].copy()
    fresh.close()
    return row


def alike(row: Logits, other: Logits) -> bool:
    return bool(np.abs(row - other).mean() < CLOSE * other.std())


TEXT = [504, 2004, 314, 253]
NODES = [28, 30, 42, 198, 260, 34, 1000]
PARENTS = [ROOT, 0, 0, 1, ROOT, 4, 4]


def way(node: int) -> list[Token]:
    return [*way(PARENTS[node]), NODES[node]] if node != ROOT else []


@pytest.mark.parametrize("passes", [[7], [1, 6], [2, 1, 4]])
def test_the_logits_of_a_node_are_those_of_its_path(
    model: LlamaModel, weights: Weights, passes: list[int]
) -> None:
    model.extend(TEXT, rows=0)
    done = 0
    for count in passes:
        logits = model.grow(NODES[done : done + count], PARENTS[done : done + count]).copy()
        for i in range(count):
            own = linear(weights, TEXT + way(done + i))
            assert alike(logits[i], own), done + i
            assert not alike(logits[i], linear(weights, [*TEXT, 99, NODES[done + i]]))
        done += count
    assert list(model.tokens) == TEXT


@pytest.mark.parametrize("path", [[], [0], [0, 2], [0, 1, 3], [4, 6]])
def test_what_is_kept_is_a_cache_like_any(
    model: LlamaModel, weights: Weights, path: list[int]
) -> None:
    model.extend(TEXT, rows=0)
    model.grow(NODES[:2], PARENTS[:2])
    model.grow(NODES[2:], PARENTS[2:])
    model.keep(path)
    text = TEXT + [NODES[node] for node in path]
    assert list(model.tokens) == text
    assert alike(model.extend([55], rows=1)[0], linear(weights, [*text, 55]))
    model.grow([7, 8], [ROOT, ROOT])
    model.keep([1])
    model.truncate(len(text))
    assert alike(model.extend([11, 12], rows=2)[1], linear(weights, [*text, 11, 12]))


def test_many_rounds_of_trees_leave_no_rubbish_behind(model: LlamaModel, weights: Weights) -> None:
    """The context holds 128 tokens: sequences or cells that are never freed would fill it."""
    rng = np.random.default_rng(1)
    text = list(TEXT)
    model.extend(text, rows=0)
    for _ in range(40):
        model.grow(rng.integers(100, 900, 12).tolist(), [ROOT, 0, 0, 1, 1, 2, ROOT, 6, 7, 7, 2, 0])
        model.keep([])
        own = rng.integers(100, 900, 3).tolist()
        model.grow([5, *own[:2]], [ROOT, ROOT, 1])
        model.keep([1, 2])
        text += own[:2]
    assert list(model.tokens) == text
    assert alike(model.extend([55], rows=1)[0], linear(weights, [*text, 55]))


def test_a_tree_that_is_interrupted_leaves_the_text(model: LlamaModel, weights: Weights) -> None:
    model.extend(TEXT, rows=0)
    model.grow(NODES[:2], PARENTS[:2])
    model.abort.on()
    with pytest.raises(Cancelled):
        model.grow(NODES[2:], PARENTS[2:])
    model.abort.off()
    assert list(model.tokens) == TEXT
    assert alike(model.extend([55], rows=1)[0], linear(weights, [*TEXT, 55]))


def test_chains_round_the_same_whether_trees_are_possible_or_not(weights: Weights) -> None:
    rows = []
    for branches in (1, 8):
        one = LlamaModel(weights, context=128, threads=1, max_rows=16, branches=branches)
        one.extend(TEXT, rows=0)
        rows.append(one.extend(NODES, rows=7).copy())
        one.close()
    assert np.array_equal(rows[0], rows[1])
