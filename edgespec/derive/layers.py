"""Which layers to leave out, found by measuring a copy of the target whose layers can be skipped."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgespec.costs import CostTable
from edgespec.derive.agreement import Kinds, judged, total
from edgespec.derive.candidates import CONTEXT, ROWS, Doing, Judge, first_of_kinds
from edgespec.derive.costs import gains, overall
from edgespec.derive.recipes import bytes_read, layer_count, removable
from edgespec.derive.search import Left, search
from edgespec.derive.skipping import SkippingModel
from edgespec.llama.quantise import check_room
from model_registry.gguf import GGUFHeader
from model_registry.shape import Shape

_WORSE, _PATIENCE = 0.97, 3
"""The search ends after so many steps that are worse than the best by so much."""
_MOST_GONE = 2 / 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a draft with fewer layers is predicted to bring, before it is made."""

    table: CostTable
    """Of the target."""
    shape: Shape
    """Of the draft with all layers."""
    share: float
    """A step with all layers, of a single row of the target; it goes by the bytes that are read."""

    def __call__(self, left: Left) -> float:
        """The speed-up over all kinds of text."""
        part = bytes_read(self.shape, left.drop) / bytes_read(self.shape)
        return overall(gains(self.table, self.share * part, left.kinds))


def ways(
    judge: Judge, original: Path, header: GGUFHeader, forecast: Forecast, keep: int | None
) -> Generator[Doing, None, list[Left]]:
    """The best ways to leave layers of a file out, one for each number of them, the fewest first.

    As many as pay, or until `keep` are left. Raises OutOfMemoryError, EdgeSpecError, `Cancelled`.
    """
    count = layer_count(header)
    samples = first_of_kinds(judge.samples)
    yield Doing("a copy of it whose layers can be skipped", 0, 0)
    check_room(judge.folder, original.stat().st_size)
    skipping = SkippingModel(
        original,
        judge.folder / "layers.gguf",
        context=CONTEXT,
        threads=judge.target.model.batch_threads,
        max_rows=ROWS,
    )
    with skipping, judge.halt.over(skipping.model.abort.on):

        def measure(drop: Collection[int]) -> Kinds:
            skipping.skip(drop)
            *_, kinds = judged(skipping.model, samples)
            return kinds

        whole = forecast(Left((), measure(())))

        def go_on(found: Sequence[Left]) -> bool:
            if keep is not None:
                return len(found) < count - keep
            return pays_on([whole, *map(forecast, found)]) and (
                not found or len(found[-1].drop) < _MOST_GONE * count
            )

        steps = search(removable(header, one_by_one=keep is not None), measure, go_on)
        while True:
            try:
                one = next(steps)
            except StopIteration as end:
                found: list[Left] = end.value
                return found
            agreed = (
                f"{count - len(one.drop)} of {count} layers agree in {total(one.kinds).sampled:.0%}"
            )
            yield Doing(agreed, one.number, 0)


def pays_on(speedups: Sequence[float]) -> bool:
    """Whether leaving out more may pay, by what it was predicted to bring so far, step by step."""
    last = speedups[-_PATIENCE:]
    return len(speedups) <= _PATIENCE or max(last) >= _WORSE * max(speedups)
