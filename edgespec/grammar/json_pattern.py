"""`pattern` of a JSON schema: a regular expression as GBNF over the characters of a JSON string.

The part of ECMAScript's expressions that grammars can hold, and that most other languages read alike:
characters, sets, `\\d \\w \\s` (of ASCII), groups, alternatives, repetitions; `^` and `$` at the ends.
"""

from __future__ import annotations

import re

from edgespec.grammar.characters import ALL, Ranges, complement, intersection, union
from edgespec.grammar.json_strings import CONTROLS, ESCAPES, SPECIAL, characters, quoted
from edgespec.grammar.problem import GrammarProblem

_MOST_DEPTH = 50

_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_ANY_SPACE: Ranges = union(
    (ord(one), ord(one))
    for one in "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
_LINE_ENDS: Ranges = union((ord(one), ord(one)) for one in "\n\r\u2028\u2029")
_CLASSES = {
    **{"d": _DIGIT, "w": _WORD, "s": _SPACE},
    **{"D": complement(_DIGIT), "W": complement(_WORD), "S": complement(_ANY_SPACE)},
}
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_TIMES = re.compile(r"[*+?]|\{[0-9]{1,6}(,[0-9]{0,6})?\}")


def pattern(expression: str) -> str:
    """A string, in its quotes, in which the expression is found. Raises GrammarProblem."""
    return _Expression(expression).read()


class _Expression:
    """Recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> str:
        ways = []
        anything = f"({self._any_of(ALL)})*"
        while True:
            before = "" if self._take("^") else anything
            inner = self._sequence(0)
            after = "" if self._take("$") else anything
            ways.append(f"{before} {inner} {after}")
            if self._at == len(self._text):
                return quoted(f"({' | '.join(ways)})")
            if not self._take("|"):
                raise self._problem()

    def _sequence(self, depth: int) -> str:
        parts = []
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            item = self._item(depth)
            times = _TIMES.match(self._text, self._at)
            if times:
                item += times[0]
                self._at = times.end()
                self._take("?")  # as few as possible, or as many: the texts are the same
                if _TIMES.match(self._text, self._at):
                    raise self._problem()
            parts.append(item)
        return " ".join(parts)

    def _item(self, depth: int) -> str:
        mark = self._text[self._at]
        if mark == "(":
            return self._group(depth + 1)
        if mark == "[":
            return f"({self._any_of(self._set())})"
        self._at += 1
        if mark == ".":
            return f"({self._any_of(complement(_LINE_ENDS))})"
        if mark == "\\":
            return f"({self._any_of(self._escape())})"
        if mark in "*+?{}]^":
            self._at -= 1
            raise self._problem()
        return f"({self._any_of(_one(mark))})"

    def _group(self, depth: int) -> str:
        self._at += 1
        if self._take("?"):
            name = re.compile(r":|<[A-Za-z_]\w*>|P<[A-Za-z_]\w*>").match(self._text, self._at)
            if not name:
                raise self._problem()
            self._at = name.end()
        if depth > _MOST_DEPTH:
            raise self._problem()
        ways = [self._sequence(depth)]
        while self._take("|"):
            ways.append(self._sequence(depth))
        if not self._take(")"):
            raise self._problem()
        return f"({' | '.join(ways)})"

    def _set(self) -> Ranges:
        self._at += 1
        others = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            first = self._member()
            if self._peek(1) == "-" and self._peek(2)[1:] not in {"", "]"}:
                self._at += 1
                last = self._member()
                if len(first) != 1 or len(last) != 1 or first[0][0] > last[0][1]:
                    raise self._problem()
                found.append((first[0][0], last[0][1]))
            else:
                found.extend(first)
        return complement(union(found)) if others else union(found)

    def _member(self) -> Ranges:
        mark = self._peek(1)
        if not mark:
            raise self._problem()
        self._at += 1
        return self._escape() if mark == "\\" else _one(mark)

    def _escape(self) -> Ranges:
        """What a backslash and what follows it stand for."""
        mark = self._peek(1)
        self._at += 1
        if mark in _CLASSES:
            return _CLASSES[mark]
        if mark in _ESCAPES:
            return _one(_ESCAPES[mark])
        digits = {"x": 2, "u": 4}.get(mark, 0)
        number = self._text[self._at : self._at + digits]
        if digits and len(number) == digits and re.fullmatch("[0-9a-fA-F]+", number):
            self._at += digits
            return ((int(number, 16), int(number, 16)),)
        if not mark or mark.isalnum():
            self._at -= 1
            raise self._problem()
        return _one(mark)

    def _any_of(self, ranges: Ranges) -> str:
        """One of some characters as it stands in JSON, escaped where it must be."""
        plain = intersection(complement(SPECIAL), ranges)
        ways = [characters(plain)] if plain else []
        for character, short in ESCAPES.items():
            inside = intersection(_one(character), ranges)
            if inside and intersection(inside, SPECIAL):
                ways.append(rf'"\\{short}"' if short not in {'"', "\\"} else rf'"\\\{short}"')
        if not ways:
            if intersection(ranges, CONTROLS):
                raise GrammarProblem(
                    "'pattern' asks for a control character without a short escape"
                )
            raise self._problem()
        return " | ".join(ways)

    def _peek(self, count: int) -> str:
        return self._text[self._at : self._at + count]

    def _take(self, mark: str) -> bool:
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) * found
        return found

    def _problem(self) -> GrammarProblem:
        return GrammarProblem(
            f"'pattern' cannot be made a grammar, at character {self._at + 1} of {self._text!r}"
        )


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)
