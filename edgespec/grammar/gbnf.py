"""GBNF, llama.cpp's notation for grammars (grammars/README.md, src/llama-grammar.cpp), read into rules.

Three things differ. Rules over tokens (`<think>`, `<[151667]>`) are refused: grammars here are about
text. A repetition of more than 2000 is kept, which llama.cpp takes for one without an end. And a line
may begin with the bar of an alternative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.grammar.characters import ALL, Ranges, complement, encodings, intersection, union
from edgespec.grammar.gbnf_text import WORD, Reader, place
from edgespec.grammar.problem import GrammarProblem

ROOT = "root"
MAX_SYMBOLS = 200_000
"""A larger grammar is refused: repetitions make much of little."""
MAX_DEPTH = 100
"""Parentheses within each other."""

Symbol = int | frozenset[int]
"""A rule by its number, or the bytes of which one stands here."""
Symbols = tuple[Symbol, ...]

_BYTES = tuple(frozenset((byte,)) for byte in range(256))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; what a group, a repetition or a set of characters stands for is a rule, too."""

    name: str
    """Of the rule in the text that it is or belongs to."""
    at: int
    """Where in the text that begins."""
    alternates: tuple[Symbols, ...]


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a text must be made of."""

    rules: tuple[Rule, ...]
    root: int
    """The number of the rule for the whole text."""
    text: str

    def problem(self, rule: int, what: str) -> GrammarProblem:
        """Something that is wrong with a rule, as an error with its place."""
        return GrammarProblem(what, place(self.text, self.rules[rule].at))


def parse(text: str) -> Grammar:
    """Read a grammar. Raises GrammarProblem with line and column."""
    return _Parser(text).parse()


class _Parser:
    """Recursive descent, as in llama.cpp."""

    def __init__(self, text: str) -> None:
        self._reader = Reader(text)
        self._rules: list[Rule | None] = []
        self._names: dict[str, int] = {}
        self._first_use: dict[int, tuple[str, int]] = {}
        """The name of a rule, and where in the text it is named for the first time, by its number."""
        self._sets: dict[Ranges, Symbol] = {}
        self._size = 0
        self._owner = ("", 0)
        """Name and place of the rule that is being read."""

    def parse(self) -> Grammar:
        reader = self._reader
        reader.skip(newlines=True)
        while reader.next:
            self._rule()
        rules: list[Rule] = []
        for number, rule in enumerate(self._rules):
            if rule is None:
                name, at = self._first_use[number]
                raise reader.problem(f"there is no rule {name!r}", at)
            rules.append(rule)
        if ROOT not in self._names:
            raise GrammarProblem(f"there is no rule {ROOT!r}, with which a text begins")
        return Grammar(tuple(rules), self._names[ROOT], reader.text)

    def _rule(self) -> None:
        reader = self._reader
        begun = reader.at
        name = reader.name()
        self._owner = (name, begun)
        number = self._number(name, begun)
        known = self._rules[number]
        if known is not None:
            there = place(reader.text, known.at)
            raise reader.problem(f"the rule {name!r} is there already, at {there}", begun)
        reader.skip(newlines=False)
        reader.expect("::=")
        reader.skip(newlines=True)
        self._define(number, self._alternates(depth=0))
        if reader.next and reader.next not in "\r\n":
            raise reader.problem(f"{reader.next!r} cannot stand here")
        reader.skip(newlines=True)

    def _alternates(self, depth: int) -> list[Symbols]:
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

    def _sequence(self, depth: int) -> Symbols:
        reader = self._reader
        symbols: list[Symbol] = []
        last = 0  # where the item begins that a repetition is about
        while reader.next and reader.next not in "|)\r\n":
            if reader.next in "*+?{":
                item = symbols[last:]
                if not item:
                    raise reader.problem(f"there is nothing that {reader.next!r} could repeat")
                symbols[last:] = self._repeated(item, *self._times())
            else:
                last = len(symbols)
                symbols.extend(self._item(depth))
                self._grow(len(symbols) - last)
            reader.skip(newlines=depth > 0)
        return tuple(symbols)

    def _item(self, depth: int) -> Sequence[Symbol]:
        reader = self._reader
        begun, mark = reader.at, reader.next
        if mark in WORD:
            return [self._number(reader.name(), begun)]
        reader.at += 1
        match mark:
            case '"':
                return self._literal()
            case "[":
                return [self._set()]
            case ".":
                return [self._one_of(ALL)]
            case "(":
                return [self._group(depth + 1)]
            case "<" | "!":
                raise reader.problem("rules about tokens are not known, only about text", begun)
        raise reader.problem(f"{mark!r} cannot stand here", begun)

    def _group(self, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise self._reader.problem(f"more than {MAX_DEPTH} parentheses within each other")
        self._reader.skip(newlines=True)
        alternates = self._alternates(depth)
        self._reader.expect(")")
        return self._define(self._new(), alternates)

    def _literal(self) -> list[Symbol]:
        reader = self._reader
        written: list[Symbol] = []
        while not reader.take('"'):
            begun = reader.at
            code = reader.character()
            if not intersection(((code, code),), ALL):
                raise reader.problem("this is no character that a text can hold", begun)
            written.extend(_BYTES[byte] for byte in chr(code).encode())
        return written

    def _set(self) -> Symbol:
        reader = self._reader
        begun = reader.at - 1
        others = reader.take("^")
        ranges: list[tuple[int, int]] = []
        while not reader.take("]"):
            at = reader.at
            first = last = reader.character()
            if reader.next == "-" and reader.text[reader.at + 1 : reader.at + 2] != "]":
                reader.at += 1
                last = reader.character()
            if last < first:
                raise reader.problem("this range ends before it begins", at)
            ranges.append((first, last))
        wanted = complement(union(ranges)) if others else intersection(union(ranges), ALL)
        if not wanted:
            raise reader.problem("no character is in this set", begun)
        return self._one_of(wanted)

    def _one_of(self, ranges: Ranges) -> Symbol:
        if ranges not in self._sets:
            ways = encodings(ranges)
            alone = len(ways) == len(ways[0]) == 1
            self._sets[ranges] = ways[0][0] if alone else self._define(self._new(), ways)
        return self._sets[ranges]

    def _times(self) -> tuple[int, int | None]:
        """How often at least, and at most if there is a bound."""
        reader = self._reader
        begun, mark = reader.at, reader.next
        reader.at += 1
        if mark != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
        least = reader.number()
        most: int | None = least
        if reader.take(","):
            reader.skip(newlines=False)
            most = None if reader.next == "}" else reader.number()
        reader.expect("}")
        if most is not None and most < least:
            raise reader.problem(f"{most} times at most is less than {least} at least", begun)
        return least, most

    def _repeated(self, item: list[Symbol], least: int, most: int | None) -> list[Symbol]:
        """S{2,4} becomes S S A with A ::= S B | nothing, B ::= S | nothing; S* is A ::= S A | nothing."""
        self._grow(least + 3 * ((most or least) - least))
        one = item[0] if len(item) == 1 else self._define(self._new(), [tuple(item)])
        written: list[Symbol] = [one] * least
        if most is None:
            again = self._new()
            return [*written, self._define(again, [(one, again), ()])]
        rest: Symbols = ()
        for _ in range(most - least):
            rest = (self._define(self._new(), [(one, *rest), ()]),)
        return [*written, *rest]

    def _new(self) -> int:
        self._rules.append(None)
        return len(self._rules) - 1

    def _define(self, number: int, alternates: Sequence[Symbols]) -> int:
        self._rules[number] = Rule(*self._owner, tuple(alternates))
        return number

    def _number(self, name: str, at: int) -> int:
        if name not in self._names:
            self._names[name] = self._new()
            self._first_use[self._names[name]] = (name, at)
        return self._names[name]

    def _grow(self, symbols: int) -> None:
        self._size += symbols
        if self._size > MAX_SYMBOLS:
            raise self._reader.problem("the grammar becomes too large here")
