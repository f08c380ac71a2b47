"""JSON strings, as GBNF: characters with their escapes, lengths, formats, and keys that are not taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from edgespec.grammar.characters import Ranges, complement, intersection, union

CONTROLS: Ranges = ((0, 0x1F),)
SPECIAL: Ranges = union((*CONTROLS, (ord('"'), ord('"')), (ord("\\"), ord("\\"))))
"""What cannot stand in a JSON string as it is (RFC 8259, section 7)."""

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}

# One code point each: a pair of surrogates is one, and half of a pair is none.
_HEX = "[0-9a-fA-F]"
_UNICODE = (
    f'"u" ([0-9a-cA-CeEfF] {_HEX}{{3}} | [dD] [0-7] {_HEX}{{2}}'
    f' | [dD] [89abAB] {_HEX}{{2}} "\\\\u" [dD] [c-fC-F] {_HEX}{{2}})'
)
CHARACTER = f'[^"\\\\\\x00-\\x1F] | "\\\\" (["\\\\/bfnrt] | {_UNICODE})'
"""One character of a string."""

_DAYS_28 = '("0" [1-9] | "1" [0-9] | "2" [0-8])'
_LEAP_YEAR = (
    '([0-9]{2} ("0" [48] | [2468] [048] | [13579] [26])'
    ' | ("0" [48] | [2468] [048] | [13579] [26]) "00")'
)
_DATE = (
    f'([0-9]{{4}} "-" (("0" [1-9] | "1" [0-2]) "-" {_DAYS_28}'
    ' | ("0" [13-9] | "1" [0-2]) "-" ("29" | "30")'
    ' | ("0" [13578] | "1" [02]) "-31")'
    f' | {_LEAP_YEAR} "-02-29")'
)
_TIME = (
    '(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})?'
    ' ("Z" | [+-] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]))'
)
_UUID = ' "-" '.join(f"{_HEX}{{{count}}}" for count in (8, 4, 4, 4, 12))
FORMATS = {"date": _DATE, "time": _TIME, "date-time": f'{_DATE} "T" {_TIME}', "uuid": _UUID}
"""RFC 3339, without leap seconds; the days that there are. Other formats are only remarks."""


def literal(text: str) -> str:
    """A text as it is."""
    return f'"{"".join(map(_escaped, text))}"'


def constant(value: object) -> str:
    """A JSON value in its shortest form."""
    return literal(json.dumps(value, ensure_ascii=False))


def characters(ranges: Ranges) -> str:
    """A set of characters, in brackets."""
    return "[" + "".join(_range(first, last) for first, last in ranges) + "]"


def _range(first: int, last: int) -> str:
    ends = _escaped(chr(first)), _escaped(chr(last))
    return ends[0] if first == last else "-".join(ends)


def _escaped(character: str) -> str:
    """One character, in quotes or in brackets."""
    code = ord(character)
    if character in '"\\[]-^' or not character.isprintable():
        return f"\\x{code:02X}" if code < 0x100 else f"\\U{code:08X}"
    return character


def quoted(inner: str) -> str:
    """A string of what `inner` says, which must be in parentheses where it has alternatives."""
    return f'"\\"" {inner} "\\""'


class _Letters:
    """Texts as a tree of their letters."""

    def __init__(self) -> None:
        self.next: dict[str, _Letters] = {}
        self.ends = False

    def add(self, text: str) -> None:
        node = self
        for letter in text:
            node = node.next.setdefault(letter, _Letters())
        node.ends = True


def other_keys(names: Iterable[str], define: Callable[[str], str]) -> str:
    """A string without escapes that is none of `names`; `define` makes a rule of a text.

    The names are followed letter by letter: the key may leave them anywhere, and must not end where
    one of them does.
    """
    taken = _Letters()
    for name in names:
        if not intersection(union((ord(letter), ord(letter)) for letter in name), SPECIAL):
            taken.add(name)
    plain = define(characters(complement(SPECIAL)))
    return quoted(_leaving(taken, plain, define))


def _leaving(taken: _Letters, plain: str, define: Callable[[str], str]) -> str:
    """How a key goes on that has followed the names down to here."""
    letters = union((ord(letter), ord(letter)) for letter in taken.next)
    ways = [f"{characters(complement(union((*SPECIAL, *letters))))} {plain}*"]
    for letter, below in sorted(taken.next.items()):
        ways.append(f"{literal(letter)} {_leaving(below, plain, define)}")
    return f"{define(' | '.join(ways))}{'' if taken.ends else '?'}"
