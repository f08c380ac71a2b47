"""Find which passes over several rows give each of them the very bits that a single row gets.

Kernels work in groups of rows and round differently with the group's size, and llama.cpp's attention
splits a long cache between threads for a single row only (ggml/src/ggml-cpu/ops.cpp, from 512 cells
on), so the answer depends on the number of rows, on the depth and on the threads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Mapping

import numpy as np
from numpy.typing import NDArray

from edgespec.calibrate import Bench, TimedModel
from edgespec.measuring import Measured
from edgespec.model import LanguageModel, Logits, Token

WIDEST = 16
_DEPTHS = (200, 300, 1000)
"""On both sides of what kernels change at, and some way beyond. A pass begun at 200 is over before
256, where the cache grows by its next step."""
_REPEATS = 2

ExactRows = Mapping[int, int]
"""By depth, the number of rows up to which all are exact."""


def exact_at(exact: ExactRows, depth: int) -> int:
    """Rows that are exact at a depth: at both of the measured ones that it lies between."""
    if depth in exact:
        return exact[depth]
    known = sorted(exact)
    right = bisect_left(known, depth)
    return min(exact[one] for one in (known[max(right - 1, 0)], known[min(right, len(known) - 1)]))


def measure_exact(bench: Bench) -> Generator[Measured, None, dict[int, int]]:
    """Compare passes over 2 to 16 rows with single ones; returns `ExactRows`.

    Random tokens; the first row that differs by a bit ends a depth. What is known already by the
    bench's samples is not measured again. The cache is empty at the end. Raises what the model
    raises, `Cancelled` among it.
    """
    model = bench.target
    most = min(WIDEST, model.max_rows)
    depths = [depth for depth in _DEPTHS if depth + WIDEST + 1 <= model.capacity]
    depths = depths or [max(model.capacity - WIDEST - 1, 1)]
    model.truncate(0)
    for place, depth in enumerate(depths):
        name = _name(model, depth, most)
        while bench.count(name) < _REPEATS:
            begun = bench.clock()
            bench.fill(model, depth)
            bench.add(name, _widest(bench, model, most))
            done = place * _REPEATS + bench.count(name)
            seconds = bench.clock() - begun
            yield Measured(done, len(depths) * _REPEATS, f"exact rows at {depth}", seconds)
    model.truncate(0)
    return {depth: int(min(bench.samples[_name(model, depth, most)])) for depth in depths}


def _name(model: TimedModel, depth: int, most: int) -> str:
    return f"exact {depth} {most} {model.threads}/{model.batch_threads}"


def _widest(bench: Bench, model: LanguageModel, most: int) -> int:
    depth = len(model.tokens)
    # One more than the widest pass: its row shows what the last of the others left in the cache.
    tokens = bench.tokens(model, min(most + 1, model.capacity - depth))
    single = [_bits(model.extend([token], rows=1))[0] for token in tokens]
    most = max(1, min(most, len(tokens) - 1))
    for rows in range(2, most + 1):
        model.truncate(depth)
        if not _same(model, tokens[: rows + 1], single):
            model.truncate(depth)
            return rows - 1
    model.truncate(depth)
    return most


def _same(model: LanguageModel, tokens: list[Token], single: list[NDArray[np.uint32]]) -> bool:
    together = _bits(model.extend(tokens[:-1], rows=len(tokens) - 1))
    after = _bits(model.extend(tokens[-1:], rows=1))
    rows = [*together, *after]
    return all(np.array_equal(a, b) for a, b in zip(rows, single, strict=False))


def _bits(logits: Logits) -> NDArray[np.uint32]:
    """A copy, as bits: the next call writes over the logits, and 0.0 equals -0.0."""
    return logits.copy().view(np.uint32)
