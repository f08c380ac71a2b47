"""Which layers a draft can do without: left out one after the other, each time the least missed. Pure.

What a layer is worth only grows as others go, nearly always. So what was measured with fewer gone is a
bound from above, and only those that promise most are measured again (lazy greedy: Minoux 1978).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass

from edgespec.derive.agreement import Kinds, total

_LOOKS = 4
"""Measured again in a step at most, after the first one."""

Measure = Callable[[Collection[int]], Kinds]
"""What the draft is worth without some layers."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left when some layers are gone."""

    drop: tuple[int, ...]
    """Ascending."""
    kinds: Kinds


@dataclass(frozen=True, slots=True)
class Tried:
    """One more measurement."""

    number: int
    drop: tuple[int, ...]
    kinds: Kinds


def search(
    groups: Sequence[tuple[int, ...]], measure: Measure, go_on: Callable[[Sequence[Left]], bool]
) -> Generator[Tried, None, list[Left]]:
    """Leave out group after group as long as `go_on` says of the ways so far; returns these ways.

    The first step measures every group, the others a few.
    """
    bounds = dict.fromkeys(groups, float("inf"))
    found: list[Left] = []
    number = 0
    while bounds and go_on(found):
        gone = found[-1].drop if found else ()
        best: tuple[float, tuple[int, ...], Left] | None = None
        looks = 0
        for group in sorted(bounds, key=lambda one: -bounds[one]):
            enough = found and looks >= _LOOKS
            if best and (enough or bounds[group] <= best[0]):
                break
            drop = tuple(sorted((*gone, *group)))
            kinds = measure(drop)
            number, looks = number + 1, looks + 1
            yield Tried(number, drop, kinds)
            bounds[group] = total(kinds).sampled
            if best is None or bounds[group] > best[0]:
                best = (bounds[group], group, Left(drop, kinds))
        if best is None:
            break
        found.append(best[2])
        del bounds[best[1]]
    return found
