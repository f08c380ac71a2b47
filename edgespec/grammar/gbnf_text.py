"""The text of a GBNF file, read character by character: names, numbers, escapes, spaces and places."""

from __future__ import annotations

import string

from edgespec.grammar.problem import GrammarProblem

WORD = frozenset(string.ascii_letters + string.digits + "-")
"""What the name of a rule is made of."""
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def place(text: str, at: int) -> str:
    """Line and column, both from 1."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


class Reader:
    """A place in a text that moves on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def problem(self, what: str, at: int | None = None) -> GrammarProblem:
        """Something that is wrong here, or elsewhere."""
        return GrammarProblem(what, place(self.text, self.at if at is None else at))

    def take(self, mark: str) -> bool:
        """Whether `mark` comes next; if so it is passed."""
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) * found
        return found

    def expect(self, mark: str) -> None:
        """Pass `mark`. Raises GrammarProblem where something else stands."""
        if not self.take(mark):
            raise self.problem(f"{mark!r} was expected")

    def skip(self, *, newlines: bool) -> None:
        """Pass spaces and comments, and the ends of lines if asked to."""
        blank = " \t\r\n" if newlines else " \t"
        while (mark := self.next) and (mark in blank or mark == "#"):
            self.at += 1
            if mark == "#":
                while self.next and self.next not in "\r\n":
                    self.at += 1

    def name(self) -> str:
        """The name of a rule. Raises GrammarProblem where there is none."""
        begun = self.at
        while self.next in WORD:
            self.at += 1
        if self.at == begun:
            raise self.problem(f"the name of a rule was expected, not {self.next!r}")
        return self.text[begun : self.at]

    def number(self) -> int:
        """A whole number of at most nine digits, and the spaces around it. Raises GrammarProblem."""
        self.skip(newlines=False)
        begun = self.at
        while self.next and self.next in string.digits:
            self.at += 1
        if not 0 < self.at - begun <= 9:
            raise self.problem("a whole number was expected", begun)
        number = int(self.text[begun : self.at])
        self.skip(newlines=False)
        return number

    def character(self) -> int:
        """A code point, perhaps written as an escape. Raises GrammarProblem."""
        begun, mark = self.at, self.next
        if not mark:
            raise self.problem("the text ends too early")
        self.at += 1
        if mark != "\\":
            return ord(mark)
        kind = self.next
        self.at += 1
        if kind in _ESCAPES:
            return ord(_ESCAPES[kind])
        count = _HEX_DIGITS.get(kind, 0)
        digits = self.text[self.at : self.at + count]
        if not count or len(digits) < count or not set(digits) <= set(string.hexdigits):
            raise self.problem(f"'\\{kind}' is no escape that is known, or not a whole one", begun)
        self.at += count
        return int(digits, 16)
