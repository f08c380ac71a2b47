"""JSON numbers within bounds, as GBNF. Digits are written out, so bounds are whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgespec.grammar.problem import GrammarProblem

MOST_DIGITS = 16
"""In front of the point; as in llama.cpp's converter, a number has an end."""
_SURE_DIGITS = 15
"""Decimal digits that a double keeps apart: with more, a number could be read as its bound."""

INTEGER = f'"-"? ("0" | [1-9] [0-9]{{0,{MOST_DIGITS - 1}}})'
NUMBER = f'{INTEGER} ("." [0-9]{{1,{MOST_DIGITS}}})? ([eE] [-+]? [0-9]{{1,2}})?'


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range."""

    value: int
    inside: bool
    """Whether the bound itself is in the range."""


def integer(schema: Mapping[str, object]) -> str:
    """An integer that keeps a schema's bounds. Raises GrammarProblem."""
    lowest, highest = _bounds(schema, whole=True)
    if lowest is None and highest is None:
        return INTEGER
    least = None if lowest is None else lowest.value + (not lowest.inside)
    most = None if highest is None else highest.value - (not highest.inside)
    ways = []
    if most is None or most >= 0:
        ways += _digits(max(0, least or 0), most)
    if least is None or least < 0:
        top = None if least is None else -least
        ways += [f'"-" ({way})' for way in _digits(max(1, -most) if most is not None else 1, top)]
    return _joined(ways)


def number(schema: Mapping[str, object]) -> str:
    """A number that keeps a schema's bounds, without an exponent where there are any.

    Raises GrammarProblem.
    """
    lowest, highest = _bounds(schema, whole=False)
    if lowest is None and highest is None:
        return NUMBER
    ways = []
    if highest is None or highest.value > 0 or (highest.value == 0 and highest.inside):
        zero = Bound(0, inside=True)
        ways += _magnitudes(lowest if lowest and lowest.value >= 0 else zero, highest)
    if lowest is None or lowest.value < 0:
        near = Bound(0, inside=highest is None or highest.value > 0 or highest.inside)
        if highest and highest.value < 0:
            near = Bound(-highest.value, highest.inside)
        far = lowest and Bound(-lowest.value, lowest.inside)
        ways += [f'"-" ({way})' for way in _magnitudes(near, far)]
    return _joined(ways)


def _joined(ways: list[str]) -> str:
    if not ways:
        raise GrammarProblem("no number is within these bounds")
    return " | ".join(ways)


def _bounds(schema: Mapping[str, object], *, whole: bool) -> tuple[Bound | None, Bound | None]:
    """The tighter of each two bounds. Fractions of bounds on integers are rounded away."""
    found: list[Bound | None] = []
    for name, other, up in (
        ("minimum", "exclusiveMinimum", True),
        ("maximum", "exclusiveMaximum", False),
    ):
        ends = [
            _bound(name, schema.get(name), inside=True, up=up, whole=whole),
            _bound(other, schema.get(other), inside=False, up=up, whole=whole),
        ]
        sign = 1 if up else -1
        tightest = max(
            (end for end in ends if end),
            key=lambda end: (sign * end.value, not end.inside),
            default=None,
        )
        found.append(tightest)
    return found[0], found[1]


def _bound(name: str, value: object, *, inside: bool, up: bool, whole: bool) -> Bound | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise GrammarProblem(f"{name!r} must be a number, not {value!r}")
    rounded = math.ceil(value) if up else math.floor(value)
    if rounded != value:
        if not whole:
            raise GrammarProblem(f"{name!r} must be a whole number for a grammar, not {value!r}")
        inside = True
    if abs(rounded) >= 10**MOST_DIGITS:
        raise GrammarProblem(f"{name!r} has more than {MOST_DIGITS} digits")
    return Bound(rounded, inside)


def _magnitudes(near: Bound, far: Bound | None) -> list[str]:
    """Numbers from `near`, 0 or more, to `far`, without a sign."""
    if far and (
        far.value < near.value or (far.value == near.value and not (near.inside and far.inside))
    ):
        return []
    if far and far.value == near.value:
        return [f'"{near.value}" ("." "0"{{1,8}})?']
    digits = len(str(max(near.value, far.value if far else 0)))
    places = max(1, min(8, _SURE_DIGITS - digits))
    fraction = f'("." [0-9]{{1,{places}}})?'
    beyond = f'"." [0-9]{{0,{places - 1}}} [1-9]'
    ways = [f'"{near.value}" {fraction if near.inside else beyond}']
    last = far.value - 1 if far else None
    if far is None or far.value - 1 > near.value:
        ways += [f"({way}) {fraction}" for way in _digits(near.value + 1, last)]
    if far and far.inside:
        ways.append(f'"{far.value}" ("." "0"{{1,{places}}})?')
    return ways


def _digits(least: int, most: int | None) -> list[str]:
    """Whole numbers from `least`, 0 or more, to `most`; without leading zeros."""
    top = 10**MOST_DIGITS - 1 if most is None else most
    ways: list[str] = []
    length = len(str(least))
    while length <= len(str(top)):
        low = max(least, 10 ** (length - 1) if length > 1 else 0)
        high = min(top, 10**length - 1)
        if low <= high:
            ways += _same_length(str(low), str(high))
        length += 1
    return ways


def _same_length(low: str, high: str) -> Iterator[str]:
    """The numbers between two of as many digits."""
    rest = len(low) - 1
    any_rest = f" [0-9]{{{rest}}}" if rest > 1 else " [0-9]" * rest
    if low == high:
        yield f'"{low}"'
    elif low[1:] == "0" * rest and high[1:] == "9" * rest:
        yield f"[{low[0]}-{high[0]}]{any_rest}"
    elif low[0] == high[0]:
        for way in _same_length(low[1:], high[1:]):
            yield f'"{low[0]}" {way}'
    else:
        first, last = int(low[0]), int(high[0])
        for way in _same_length(low[1:], "9" * rest):
            yield f'"{low[0]}" {way}'
        if last - first > 1:
            yield f"[{first + 1}-{last - 1}]{any_rest}"
        for way in _same_length("0" * rest, high[1:]):
            yield f'"{high[0]}" {way}'
