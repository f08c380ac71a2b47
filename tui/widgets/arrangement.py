"""Where each turn is, told without laying out those that nobody sees.

Heights that were never measured are guessed. When a guess turns out wrong, what the reader looks at
stays where it is on the screen: the place is held by a turn, not by a number of rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from textual.widget import Widget

GAP = 1
"""Blank rows below each turn."""


class Hold(NamedTuple):
    """A row of the conversation that is found again when heights have changed."""

    turn: Widget
    offset: int
    """Rows below the turn's top."""
    of: int
    """The turn's rows at that time, with the gap below it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Turns and where they begin, in rows from the top of the conversation."""

    turns: Sequence[Widget] = ()
    tops: Sequence[int] = (0,)
    """One more than turns: the last is the height of all."""
    numbers: dict[Widget, int] = field(default_factory=dict)

    @classmethod
    def of(cls, turns: Sequence[Widget], height: Callable[[Widget], int]) -> Places:
        """Put the turns one below the other."""
        tops, numbers, top = [0], {}, 0
        for number, turn in enumerate(turns):
            numbers[turn] = number
            top += height(turn) + GAP
            tops.append(top)
        return cls(turns, tops, numbers)

    @property
    def height(self) -> int:
        """Rows of all turns and the gaps below them."""
        return self.tops[-1]

    def span(self, turn: Widget) -> tuple[int, int] | None:
        """The turn's first row and the one behind its last; None for one that is not there."""
        number = self.numbers.get(turn)
        return None if number is None else (self.tops[number], self.tops[number + 1] - GAP)

    def between(self, first: int, last: int) -> Sequence[Widget]:
        """The turns that have a row from `first` to `last` (exclusive)."""
        start = max(bisect_right(self.tops, first) - 1, 0)
        end = bisect_right(self.tops, max(last - 1, first))
        return self.turns[start : min(end, len(self.turns))]

    def hold(self, row: int) -> Hold | None:
        """Remember `row`; None where no turn is."""
        found = self.between(row, row + 1)
        if not found:
            return None
        number = self.numbers[found[0]]
        top = self.tops[number]
        return Hold(found[0], row - top, self.tops[number + 1] - top)

    def find(self, hold: Hold, *, stretched: bool) -> int | None:
        """The row that was held; None when its turn is gone.

        `stretched` says that other heights come from another width, not from another text.
        """
        number = self.numbers.get(hold.turn)
        if number is None:
            return None
        rows = self.tops[number + 1] - self.tops[number]
        offset = hold.offset * rows // hold.of if stretched else hold.offset
        return self.tops[number] + min(offset, rows - 1)
