"""Models whose passes take the time that a test wrote down, on a clock that nothing else moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edgespec.calibrate import Bench
from edgespec.errors import Cancelled
from edgespec.model import Logits, Token
from tests.fakes import ChainsOnly

Cost = Callable[[int, int, int], float]
"""Seconds of a pass over so many tokens, at a depth, with so many threads."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class TimedModel(ChainsOnly):
    """Logits of passes over more than `rounds_alike` rows differ in a bit.

    Passes over `taints_from` rows or more leave a cache that makes the rows after them differ.
    """

    vocab_size = 50

    def __init__(
        self,
        clock: Clock,
        cost: Cost,
        *,
        capacity: int = 4096,
        max_rows: int = 32,
        rounds_alike: Callable[[int], int] = lambda depth: 99,
        taints_from: int = 99,
    ) -> None:
        self.clock, self.cost = clock, cost
        self.capacity, self.batch_size = capacity, 512
        self._rows = max_rows
        self.rounds_alike = rounds_alike
        self.threads = self.batch_threads = 1
        self.kv_type = "f16"
        self.row_limit: Callable[[int], int] | None = None
        self._taints_from = taints_from
        self._tainted: list[int] = []
        self.passes: list[tuple[int, int]] = []
        """Depth and tokens of each."""
        self.cancel_at: int | None = None
        """The pass that is interrupted."""
        self._tokens: list[Token] = []

    @property
    def max_rows(self) -> int:
        limit = self.row_limit
        return min(self._rows, limit(len(self._tokens))) if limit else self._rows

    @property
    def tokens(self) -> Sequence[Token]:
        return self._tokens

    def set_threads(self, single: int, batch: int) -> None:
        self.threads, self.batch_threads = single, batch

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        assert 0 < len(tokens) <= self.batch_size
        assert 0 <= rows <= min(len(tokens), self.max_rows)
        depth = len(self._tokens)
        assert depth + len(tokens) <= self.capacity
        assert all(0 <= token < self.vocab_size for token in tokens)
        if self.cancel_at == len(self.passes):
            raise Cancelled
        self.passes.append((depth, len(tokens)))
        self._tokens.extend(tokens)
        threads = self.threads if len(tokens) == 1 else self.batch_threads
        self.clock.now += self.cost(len(tokens), depth, threads)
        other = rows > self.rounds_alike(depth) or bool(self._tainted)
        if rows >= self._taints_from:
            self._tainted.append(depth)
        numbers = np.array(self._tokens[len(self._tokens) - rows :], np.float32).reshape(rows, 1)
        table = np.repeat(numbers, self.vocab_size, axis=1)
        return np.nextafter(table, np.float32(99)) if other else table

    def truncate(self, length: int) -> None:
        del self._tokens[length:]
        self._tainted = [depth for depth in self._tainted if depth < length]


def bench(
    clock: Clock,
    target: TimedModel,
    draft: TimedModel | None = None,
    *,
    others: Callable[[], float] = lambda: 0.0,
    samples: dict[str, list[float]] | None = None,
) -> Bench:
    return Bench(target, draft, {} if samples is None else samples, clock=clock, others=others)
