"""What tests of contexts on tiny models share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edgespec.errors import RollbackRefusedError
from edgespec.llama.context import LlamaModel
from edgespec.model import Logits, Token
from tests.tiny_models import Kind

STATES: tuple[Kind, ...] = ("mamba", "jamba", "lfm2", "qwen35", "nemotron_h")
SNAPSHOTS: tuple[Kind, ...] = ("lfm2", "qwen35", "nemotron_h")
ROWS = 12
CLOSE = 0.02
"""Of the range of a row. Passes of other widths round differently; another text is ten times as far off."""

Open = Callable[..., LlamaModel]


def some(rng: np.random.Generator, count: int) -> list[Token]:
    return [int(token) for token in rng.integers(3, 280, count)]


def right(model: LlamaModel, fresh: LlamaModel, text: Sequence[Token]) -> None:
    """The cache holds the text, and what comes after it is what a cache of its own says."""
    assert list(model.tokens) == list(text)
    after = [7, 8]
    got = model.extend(after, rows=1)[0].copy()
    assert close(got, rows_of(fresh, [*text, *after], 1)[0])


def rows_of(fresh: LlamaModel, text: Sequence[Token], rows: int) -> Logits:
    fresh.truncate(0)
    return fresh.extend(text, rows=rows)


def close(got: Logits, expected: Logits) -> bool:
    return bool(np.abs(got - expected).max() < CLOSE * np.ptp(expected))


def back_to(model: LlamaModel, length: int) -> int:
    """Take back tokens; where it refuses, to the length that it names, which is returned."""
    before = list(model.tokens)
    try:
        model.truncate(length)
    except RollbackRefusedError as refused:
        possible = refused.possible
    else:
        return length
    assert list(model.tokens) == before
    assert possible < length
    model.truncate(possible)
    return possible
