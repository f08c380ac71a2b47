"""Plots made of characters: axes with numbers, readable without colour, also in ASCII. Pure."""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What is drawn with."""

    levels: str
    """A cell from empty to full."""
    side: str
    corner: str
    floor: str
    line: str
    """Of a level that curves are compared with."""


BLOCKS = Glyphs(" ▁▂▃▄▅▆▇█", "│", "└", "─", "·")
ASCII = Glyphs(" .:#", "|", "+", "-", ".")


@dataclass(frozen=True, slots=True)
class Curve:
    """Values at 0, 1, 2 and so on."""

    mark: str
    """What it is drawn with: a small letter, a capital one at the best place, or a digit."""
    values: Sequence[float]
    best: int


def glyphs_for(environment: Mapping[str, str], encoding: str | None) -> Glyphs:
    """What a terminal can show; the fonts of the Linux console have no eighths of a block."""
    try:
        unicode = codecs.lookup(encoding or "").name == "utf-8"
    except LookupError:
        unicode = False
    return BLOCKS if unicode and environment.get("TERM") != "linux" else ASCII


def bars(values: Sequence[float], width: int, height: int, glyphs: Glyphs) -> list[str]:
    """`values` of 1, 2, 3 and so on as bars that begin at zero: `height` lines of at most `width`."""
    values = values or (0.0,)
    frame = _Frame(max(values), 1, len(values), width, height, edges=True)
    full = len(glyphs.levels) - 1
    rows = []
    for row in reversed(range(frame.rows)):
        cells = ""
        for column in range(frame.used):
            level = round(values[frame.index(column)] / frame.top * frame.rows * full) - row * full
            cells += glyphs.levels[min(max(level, 0), full)]
        rows.append(cells)
    return frame.around(rows, glyphs)


def curves(
    found: Sequence[Curve], level: float, width: int, height: int, glyphs: Glyphs
) -> list[str]:
    """Curves from zero up, and a `level` to compare them with: `height` lines of at most `width`.

    Where several meet, the first is seen; the best place of each is seen before all.
    """
    count = max((len(one.values) for one in found), default=1)
    top = max([level, *(max(one.values) for one in found)])
    frame = _Frame(top, 0, count, width, height)
    grid = [[" "] * frame.used for _ in range(frame.rows)]
    grid[frame.row(level)] = [glyphs.line] * frame.used
    taken: set[tuple[int, int]] = set()
    for one in found:
        for place, value in enumerate(one.values):
            cell = frame.row(value), frame.column(place)
            if cell not in taken:
                taken.add(cell)
                grid[cell[0]][cell[1]] = one.mark
    for one in reversed(found):
        grid[frame.row(one.values[one.best])][frame.column(one.best)] = one.mark.upper()
    return frame.around(["".join(row) for row in grid], glyphs)


class _Frame:
    """The place inside the axes, and what is written at them."""

    def __init__(
        self, top: float, first: int, count: int, width: int, height: int, *, edges: bool = False
    ) -> None:
        """Room for `count` places from `first` on and for values up to `top`.

        With `edges` a value is written at the cell that something of this height ends with, else at
        the one that a point lies in.
        """
        self.top = top or 1.0
        self.rows = max(height - 2, 1)
        self._edges = edges
        self._first, self._count = first, max(count, 1)
        self._ticks = self._values()
        self._margin = max(map(len, self._ticks.values()))
        columns = max(width - self._margin - 1, 1)
        self._each = max(columns // self._count, 1)
        self.used = min(self._each * self._count, columns)

    def index(self, column: int) -> int:
        """The place, counted from 0, that a column stands for."""
        if self.used < self._count:
            return column * self._count // self.used
        return column // self._each

    def column(self, place: int) -> int:
        """The column of a place that is counted from 0."""
        if self.used < self._count:
            return place * self.used // self._count
        return place * self._each + self._each // 2

    def row(self, value: float) -> int:
        """The row, from the top, in which a point lies."""
        return self.rows - 1 - min(int(value / self.top * self.rows), self.rows - 1)

    def around(self, rows: Sequence[str], glyphs: Glyphs) -> list[str]:
        """The rows with both axes."""
        sides = [glyphs.side] * self.rows + [glyphs.corner]
        inner = [*rows, glyphs.floor * self.used]
        lines = [
            f"{self._ticks.get(number, ''):>{self._margin}}{side}{row}".rstrip()
            for number, (side, row) in enumerate(zip(sides, inner, strict=True))
        ]
        return [*lines, f"{'':{self._margin + 1}}{self._places()}"]

    def _values(self) -> dict[int, str]:
        """Round numbers by the row that they are written at."""
        step = _round_step(self.top / max(self.rows // 2, 1))
        digits = max(0, -math.floor(math.log10(step)))
        count = int(self.top / step + 1e-9)
        found: dict[int, str] = {}
        for number in range(count, -1, -1):
            value = number * step
            row = (
                self.rows - round(value / self.top * self.rows) if self._edges else self.row(value)
            )
            found.setdefault(row, f"{value:.{digits}f}")
        return found

    def _places(self) -> str:
        """Numbers of places below their columns: the first, and round ones that leave a gap."""
        line = f"{'':{self.column(0)}}{self._first}"
        step = _round_places(self._count)
        for number in range(step, self._first + self._count, step):
            text = str(number)
            column = min(self.column(number - self._first), self.used - len(text))
            if column > len(line):
                line = f"{line:{column}}{text}"
        return line


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least * (1 - 1e-9))


def _round_places(count: int) -> int:
    return next((step for step in (1, 2, 4, 8) if count / step <= 5), math.ceil(count / 5))
