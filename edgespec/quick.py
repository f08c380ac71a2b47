"""The short form of calibrating: a few seconds, when a pair is used for the first time.

A slow machine gets fewer samples, not a longer wait: before each pass stands the question whether it
still fits. What is never measured lies on a line between what was, and use corrects it.
"""

from __future__ import annotations

from collections.abc import Generator

from edgespec.busy import busy, low
from edgespec.calibrate import SHALLOW, Bench, Calibration, finish, sample_name, table
from edgespec.costs import Costs
from edgespec.measuring import Measured
from edgespec.model import LanguageModel

_ROWS = (4, 8, 2, 16, 32, 3, 6, 12)
"""In the order of what they tell: the steps of kernels first."""
_FED = (2, 4, 16)
_PIECE = 16
_FILL = 0.15
"""Of the time, for each model's cache to be filled in."""
_ROUNDS = 7
SECONDS = 10.0
"""What the short form takes at most."""


def calibrate_quick(
    bench: Bench, *, threads: tuple[int, int], seconds: float = SECONDS
) -> Calibration:
    """`quick_steps` at once, for those who show no progress."""
    return finish(quick_steps(bench, threads=threads, seconds=seconds))


def quick_steps(
    bench: Bench, *, threads: tuple[int, int], seconds: float = SECONDS
) -> Generator[Measured, None, Calibration]:
    """Measure at one depth for `seconds` at most, but one pass of each model at least.

    `threads` are those the models have, for single rows and for batches; they stay as they are. The
    caches are empty at the end. A pass for which there is no time counts as done. Raises what the
    models raise, `Cancelled` among it.
    """
    begun = bench.clock()
    end = begun + seconds
    bench.others()
    depth = _fill(bench, bench.target, "prefill target", seconds * _FILL)
    if bench.draft:
        _fill(bench, bench.draft, "prefill draft", seconds * _FILL)
    points = _points(bench)
    total = _ROUNDS * len(points)
    for number in range(total):
        kind, n = points[number % len(points)]
        first = number < len(points) and n == 1
        if first or bench.clock() + _expected(bench, kind, n, depth) <= end:
            took = _pass(bench, kind, n, depth)
            yield Measured(number + 1, total, f"{kind}, {n} at {depth}", took)
    bench.add("others", bench.others())
    for model in (bench.target, bench.draft):
        if model:
            model.truncate(0)
    return _result(bench, points, depth, threads)


def _points(bench: Bench) -> list[tuple[str, int]]:
    """What takes turns, in the order of what it tells."""
    draft = bench.draft
    rows = [n for n in _ROWS if n <= _most_rows(bench.target)]
    fed = [n for n in _FED if n <= draft.capacity // 2] if draft else []
    singles = [("verify", 1), *([("draft", 1)] if draft else [])]
    return [*singles, *(("verify", n) for n in rows), *(("draft", n) for n in fed)]


def _result(
    bench: Bench, points: list[tuple[str, int]], depth: int, threads: tuple[int, int]
) -> Calibration:
    rows, fed = ([n for one, n in points if one == kind] for kind in ("verify", "draft"))
    found = table(bench, depth, rows, fed)
    return Calibration(
        costs=Costs((found,)),
        prefill=low(bench.samples["prefill target"]),
        draft_prefill=low(bench.samples["prefill draft"]) if bench.draft else None,
        threads=threads[0],
        batch_threads=threads[1],
        doubts=busy(bench.samples, found),
    )


def _most_rows(model: LanguageModel) -> int:
    return min(model.max_rows, model.batch_size, model.capacity - len(model.tokens))


def _fill(bench: Bench, model: LanguageModel, name: str, seconds: float) -> int:
    """A short text in the cache, shorter where reading takes long; returns its length."""
    model.truncate(0)
    end = bench.clock() + seconds
    piece, took = 1, bench.timed(model, 1, 1, keep=True)
    depth = min(SHALLOW, model.capacity // 2)
    while len(model.tokens) < depth:
        piece = min(_PIECE, depth - len(model.tokens))
        if bench.clock() + took * piece > end:
            break
        took = bench.add(name, bench.timed(model, piece, 1, keep=True) / piece)
    if not bench.count(name):
        bench.add(name, took)
    return len(model.tokens)


def _expected(bench: Bench, kind: str, n: int, depth: int) -> float:
    """Seconds of a pass, from its like; before there is one, as if each row cost as much as the first."""
    name = sample_name(kind, n, depth)
    return bench.low(name) if bench.count(name) else n * bench.low(sample_name(kind, 1, depth))


def _pass(bench: Bench, kind: str, n: int, depth: int) -> float:
    model = bench.draft if kind == "draft" else bench.target
    if model is None:
        raise ValueError("there is no draft to measure")
    rows = n if kind == "verify" else 1
    return bench.add(sample_name(kind, n, depth), bench.timed(model, n, rows))
