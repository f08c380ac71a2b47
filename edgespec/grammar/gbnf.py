"""GBNF, llama.cpp's notation for grammars (grammars/README.md, src/llama-grammar.cpp), as Lark.

llguidance cuts a text into terminals, each the longest that fits, so that `("a" | "ab") "bc"` is not
"abc" if the strings are terminals; its own converter, `gbnf_to_lark`, makes them so. GBNF knows no such
cuts. `terminals` says what may be one all the same; in the rest each character is.

Three things differ from llama.cpp. Rules over tokens (`<think>`, `<[151667]>`) are refused: grammars
here are about text. A rule may begin with itself. And a line may begin with the bar of an alternative.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from edgespec.grammar import terminals
from edgespec.grammar.endless import ending
from edgespec.grammar.gbnf_text import WORD, Reader, place
from edgespec.grammar.problem import GrammarProblem

ROOT = "root"
MAX_RULES = 5000
"""Groups and repetitions count, too. llguidance descends from rule to rule on the stack."""
MAX_DEPTH = 100
"""Parentheses within each other."""
_LAST_CODE = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_ANY = r"/[^\x{0}]/"
"""A text holds no zero: llama.cpp ends there."""


def to_lark(text: str) -> str:
    """A GBNF grammar in llguidance's notation. Raises GrammarProblem with line and column."""
    return _Parser(text).parse()


class _Parser:
    """Recursive descent, as in llama.cpp. Items are Lark, but that rules are `@` and a number."""

    def __init__(self, text: str) -> None:
        self._reader = Reader(text)
        self._rules: list[list[str] | None] = []
        """By number, the alternates."""
        self._numbers: dict[str, int] = {}
        self._named: dict[str, int] = {}
        """Where each rule that is there begins."""
        self._first_use: dict[str, int] = {}
        self._size = 0

    def parse(self) -> str:
        reader = self._reader
        reader.skip(newlines=True)
        while reader.next:
            self._rule()
        for name, at in self._first_use.items():
            if name not in self._named:
                raise reader.problem(f"there is no rule {name!r}", at)
        if ROOT not in self._named:
            raise GrammarProblem(f"there is no rule {ROOT!r}, with which a text begins")
        rules = [[way.split(" ") for way in ways or ()] for ways in self._rules]
        ends = ending(dict(enumerate(rules)), _ends)
        for name, at in self._named.items():
            if self._numbers[name] not in ends:
                raise reader.problem(f"{name!r} never comes to an end", at)
        lark = terminals.to_lark(rules, self._numbers[ROOT])
        return f'%llguidance {{"no_forcing": true}}\n{lark}'

    def _rule(self) -> None:
        reader = self._reader
        begun = reader.at
        name = reader.name()
        if name in self._named:
            there = place(reader.text, self._named[name])
            raise reader.problem(f"the rule {name!r} is there already, at {there}", begun)
        self._named[name] = begun
        reader.skip(newlines=False)
        reader.expect("::=")
        reader.skip(newlines=True)
        number = self._number(name)
        self._rules[number] = self._alternates(depth=0)
        if reader.next and reader.next not in "\r\n":
            raise reader.problem(f"{reader.next!r} cannot stand here")
        reader.skip(newlines=True)

    def _alternates(self, depth: int) -> list[str]:
        reader = self._reader
        found = [self._sequence(depth)]
        while True:
            if depth == 0:  # no rule begins with a bar, so it may be on a line of its own
                before = reader.at
                reader.skip(newlines=True)
                reader.at = reader.at if reader.next == "|" else before
            if not reader.take("|"):
                return found
            reader.skip(newlines=True)
            found.append(self._sequence(depth))

    def _sequence(self, depth: int) -> str:
        reader = self._reader
        items: list[str] = []
        last = 0  # where the item begins that a repetition is about
        while reader.next and reader.next not in "|)\r\n":
            if reader.next in "*+?{":
                item = items[last:]
                if not item:
                    raise reader.problem(f"there is nothing that {reader.next!r} could repeat")
                items[last:] = self._repeated(item)
            else:
                last = len(items)
                items.extend(self._item(depth))
            reader.skip(newlines=depth > 0)
        return " ".join(items) or '""'

    def _item(self, depth: int) -> Sequence[str]:
        reader = self._reader
        begun, mark = reader.at, reader.next
        if mark in WORD:
            name = reader.name()
            self._first_use.setdefault(name, begun)
            return [f"@{self._number(name)}"]
        reader.at += 1
        match mark:
            case '"':
                return self._literal()
            case "[":
                return [self._set()]
            case ".":
                return [_ANY]
            case "(":
                return [self._group(depth + 1)]
            case "<" | "!":
                raise reader.problem("rules about tokens are not known, only about text", begun)
        raise reader.problem(f"{mark!r} cannot stand here", begun)

    def _group(self, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise self._reader.problem(f"more than {MAX_DEPTH} parentheses within each other")
        self._reader.skip(newlines=True)
        alternates = self._alternates(depth)
        self._reader.expect(")")
        return self._new(alternates)

    def _literal(self) -> list[str]:
        reader = self._reader
        written: list[str] = []
        while not reader.take('"'):
            begun = reader.at
            code = reader.character()
            if not _ranges(code, code):
                raise reader.problem("this is no character that a text can hold", begun)
            written.append(f"/[{_ranges(code, code)}]/")
        return written

    def _set(self) -> str:
        reader = self._reader
        begun = reader.at - 1
        others = reader.take("^")
        ranges = r"\x{0}" if others else ""
        found: list[tuple[int, int]] = []
        while not reader.take("]"):
            at = reader.at
            first = last = reader.character()
            if reader.next == "-" and reader.text[reader.at + 1 : reader.at + 2] != "]":
                reader.at += 1
                last = reader.character()
            if last < first:
                raise reader.problem("this range ends before it begins", at)
            ranges += _ranges(first, last)
            found.append((first, last))
        if not ranges or (others and _are_all(found)):
            raise reader.problem("no character is in this set", begun)
        return f"/[^{ranges}]/" if others else f"/[{ranges}]/"

    def _repeated(self, item: list[str]) -> list[str]:
        """The item with the repetition that stands here."""
        reader = self._reader
        begun, mark = reader.at, reader.next
        self._grow()
        reader.at += 1
        if mark == "{":
            least = most = reader.number()
            bounds = f"{least},{most}"
            if reader.take(","):
                reader.skip(newlines=False)
                most = -1 if reader.next == "}" else reader.number()
                bounds = f"{least}," + (f"{most}" if most >= 0 else "")
            reader.expect("}")
            if 0 <= most < least:
                raise reader.problem(f"{most} times at most is less than {least} at least", begun)
            if most == 0:
                return []
            mark = f"{{{bounds}}}"
        alone = len(item) == 1 and re.fullmatch(r"@\d+|/.*/", item[0])
        return [(item[0] if alone else self._new([" ".join(item)])) + mark]

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self._add(None)
        return self._numbers[name]

    def _new(self, alternates: list[str]) -> str:
        return f"@{self._add(alternates)}"

    def _add(self, alternates: list[str] | None) -> int:
        self._grow()
        self._rules.append(alternates)
        return len(self._rules) - 1

    def _grow(self) -> None:
        self._size += 1
        if self._size > MAX_RULES:
            raise self._reader.problem("the grammar becomes too large here")


def _ranges(first: int, last: int) -> str:
    """The characters from one code point to another, as in a set of Rust's regular expressions."""
    first, last = max(first, 1), min(last, _LAST_CODE)
    if first in _SURROGATES:
        first = _SURROGATES.stop
    if last in _SURROGATES:
        last = _SURROGATES.start - 1
    return rf"\x{{{first:x}}}-\x{{{last:x}}}" if first <= last else ""


def _are_all(ranges: list[tuple[int, int]]) -> bool:
    """Whether no character is left that a text can hold."""
    missing = 1
    for first, last in sorted(ranges):
        if first > missing:
            return False
        missing = max(missing, last + 1)
        if missing in _SURROGATES:
            missing = _SURROGATES.stop
    return missing > _LAST_CODE


def _ends(ways: list[list[str]], others: Collection[int]) -> bool:
    """Whether a text of a rule can end, if those of `others` can."""
    return any(
        all(
            item[0] != "@" or item[-1] in "*?" or "{0," in item or _rule_in(item) in others
            for item in items
        )
        for items in ways
    )


def _rule_in(item: str) -> int:
    return int(re.split(r"\D", item[1:], maxsplit=1)[0])
