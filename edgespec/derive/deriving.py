"""The way to the best draft of a target: bits first, then layers, each step by what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgespec.derive.candidates import Candidate, Doing, Judge, load_for, opened
from edgespec.derive.halt import Halt
from edgespec.derive.layers import Forecast, ways
from edgespec.derive.recipes import (
    TRIED,
    Recipe,
    check_drop,
    check_keep,
    layer_count,
    why_whole,
)
from edgespec.derive.search import Left
from edgespec.derive.skipping import UnskippableError
from edgespec.errors import EdgeSpecError, ModelFileError, OutOfMemoryError, UsageError
from edgespec.fitting import shape
from edgespec.llama.quantise import Job, planned_bytes
from edgespec.reply import Notice
from edgespec.settings import Load
from model_registry.gguf import GGUFHeader
from model_registry.inspect import check_file, split_parts
from model_registry.problem import ModelFileProblem
from model_registry.records import Traits

_SMALLER = 0.85
"""Of the target's bytes: what is not much smaller is hardly faster."""
_WORTH = 1.03
"""A speed-up below this is noise."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for."""

    target: Path
    load: Load = Load()
    """Its threads and GPU layers are used."""
    bits: tuple[str | None, ...] = ()
    """To choose from, None for the target's own; empty for the usual ones."""
    layers: int | Literal["all"] | None = None
    """To keep; None for as many as pay."""
    drop: tuple[int, ...] = ()
    """Layers to leave out; then none are searched for."""
    text: str | None = None
    """To judge by; None for the target's own answers."""

    @property
    def exact(self) -> Recipe | None:
        """The one file that is meant, where nothing is left to be chosen."""
        if isinstance(self.layers, int) or len(self.bits) > 1 or not (self.bits or self.drop):
            return None
        return Recipe(self.bits[0] if self.bits else None, self.drop)


@dataclass(frozen=True, slots=True)
class Derived:
    """The last event: all that were measured, and the best of them."""

    candidates: tuple[Candidate, ...]
    best: Candidate
    """The only one whose file is still there."""
    layers: int
    """Of the target."""
    doubts: tuple[str, ...]
    """Why the figures are not to be believed."""

    @property
    def pays(self) -> bool:
        """Whether the best one is predicted to be faster than plain decoding."""
        return self.best.speedup >= _WORTH


Event = Doing | Notice | Candidate | Derived


class Deriving:
    """One run. What it wrote is the caller's to remove, with the folder."""

    def __init__(self, wish: Wish, folder: Path) -> None:
        """Files are made in `folder`. Raises UsageError, ModelFileError."""
        self._wish, self._folder = wish, folder
        self._halt = Halt()
        self._header = checked(wish)
        self._tag = Traits.of(self._header, wish.target.name).quant
        self._done: list[Candidate] = []
        self._no_room = False

    def cancel(self) -> None:
        """Let `steps` raise `Cancelled` soon. From any thread."""
        self._halt.on()

    def steps(self) -> Iterator[Event]:
        """Make, measure, choose; `Derived` is the last event. Raises EdgeSpecError, `Cancelled`."""
        load = load_for(self._wish.load, self._wish.target)
        with closing(opened(self._wish.target, load)) as target:
            if not target.weights.rolls_back:
                raise UsageError(
                    f"{target.weights.name} cannot take back tokens, so nothing is drafted for it.",
                    "With --recipe and --output it can be written in other bits.",
                )
            judge = Judge(target, load, self._folder, self._halt)
            with self._halt.over(target.model.abort.on):
                yield from judge.prepare(self._wish.text)
                yield from self._all(judge)
        self._halt.check()
        if not self._done:
            raise self._nothing()
        best = self._best
        yield Derived(tuple(self._done), best, layer_count(self._header), judge.rows.doubts)

    @property
    def _best(self) -> Candidate:
        return max(self._done, key=lambda one: one.speedup)

    def _nothing(self) -> EdgeSpecError:
        name = self._wish.target.stem
        if self._no_room:
            return OutOfMemoryError(
                f"No draft of {name} had room beside it.", "Derive one on a larger machine."
            )
        return EdgeSpecError(
            f"{name} can be made no smaller: its bits are few already, and its layers stay.",
            "Use it with --draft lookup.",
        )

    def _all(self, judge: Judge) -> Iterator[Event]:
        wish = self._wish
        if wish.exact and wish.exact.kind != "copy":
            yield from self._candidate(judge, wish.exact)
            return
        for bits in wish.bits or self._usual():
            if bits or wish.drop:  # a copy alone would be the target itself
                yield from self._candidate(judge, Recipe(bits, wish.drop))
        if wish.drop or wish.layers == "all":
            return
        if reason := why_whole(self._header):
            yield Notice(f"No layers are left out: {reason}.")
            return
        try:
            yield from self._with_fewer_layers(judge)
        except (OutOfMemoryError, UnskippableError) as problem:
            if isinstance(wish.layers, int):
                raise
            self._no_room |= isinstance(problem, OutOfMemoryError)
            yield Notice(f"No layers are left out. {problem.message}")

    def _usual(self) -> Sequence[str]:
        """Bits that make the target much smaller, none twice."""
        whole = shape(self._wish.target).weights
        found: dict[int, str] = {}
        for bits in TRIED:
            recipe = Recipe(bits)
            job = Job(self._wish.target, self._folder / "unwritten", recipe.file_type)
            size = planned_bytes(job)
            if size <= _SMALLER * whole:
                # Narrow matrices fall back to other bits, so that two names can mean one file.
                found.setdefault(size, bits)
        return list(found.values())

    def _candidate(self, judge: Judge, recipe: Recipe) -> Iterator[Event]:
        """Make and judge one; only the best one's file stays."""
        wish = self._wish
        path = yield from judge.made(wish.target, recipe, self._tag)
        try:
            found = yield from judge.judged(recipe, path)
        except OutOfMemoryError as problem:
            path.unlink()
            self._no_room = True
            yield Notice(f"{recipe.bits or 'A copy'} is left out. {problem.message}")
            return
        self._done.append(found)
        for one in self._done:
            if one is not self._best:
                one.path.unlink(missing_ok=True)
        yield found

    def _with_fewer_layers(self, judge: Judge) -> Iterator[Event]:
        wish, base = self._wish, self._best if self._done else None
        original = base.path if base else wish.target
        if len(split_parts(original, self._header)) > 1 and not base:
            original = yield from judge.made(wish.target, Recipe(None), self._tag)
        forecast = Forecast(judge.rows.table, shape(original), base.share if base else 1.0)
        keep = wish.layers if isinstance(wish.layers, int) else None
        found = yield from ways(judge, original, self._header, forecast, keep)
        bits = base.recipe.bits if base else None
        best = found[-1] if keep is not None else max(found, key=forecast)
        yield from self._candidate(judge, Recipe(bits, best.drop))
        if base and keep is None and not wish.bits:
            yield from self._own_bits(judge, found)

    def _own_bits(self, judge: Judge, found: Sequence[Left]) -> Iterator[Event]:
        """Fewer layers at the target's own bits, where that promises something."""
        forecast = Forecast(judge.rows.table, shape(self._wish.target), 1.0)
        best = max(found, key=forecast)
        if forecast(best) >= _WORTH:
            yield from self._candidate(judge, Recipe(None, best.drop))
        else:
            yield Notice(
                f"Fewer layers at the target's own bits promise {forecast(best):.2f}x at best: not made."
            )


def checked(wish: Wish) -> GGUFHeader:
    """The target's header, if the wish can be met. Raises UsageError, ModelFileError."""
    try:
        header = check_file(wish.target)
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    check_drop(header, wish.drop)
    if isinstance(wish.layers, int):
        check_keep(header, wish.layers)
    return header
