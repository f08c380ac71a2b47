"""Long pastes folded away: the prompt shows a few words for them, the whole text is sent (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_LINES = 8
MOST_CHARACTERS = 1500
"""A paste beyond one of these is folded."""

# Unicode keeps these for a program's own use. `clean` takes them out of whatever comes from outside,
# so that a text which only looks like a fold is never taken for one. None of them is a blank, so
# that a fold is never broken over two lines.
_OPEN, _CLOSE, _BLANK = "\ufdd0", "\ufdd1", "\ufdd2"
FOLD = re.compile(f"{_OPEN}[^{_OPEN}{_CLOSE}]*#(\\d+){_CLOSE}")
DRAWN = str.maketrans({_OPEN: "[", _CLOSE: "]", _BLANK: " "})
"""What is drawn for a fold: character for character, so that columns stay where they are."""
_NO_MARKS = dict.fromkeys(map(ord, (_OPEN, _CLOSE, _BLANK)))

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-~])?"
)
_UNCLEAN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdd2]")
_OUTSIDE: dict[int, str | None] = dict.fromkeys(
    (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDD3))
)
_OUTSIDE |= dict.fromkeys(map(ord, "\n\v\f\x85\u2028\u2029"), "\n") | {ord("\t"): "\t"}


def is_clean(text: str) -> bool:
    """Whether `clean` would leave `text` as it is."""
    return _UNCLEAN.search(text) is None


def clean(text: str) -> str:
    """`text` with one kind of line end, and without escape sequences and control characters."""
    if is_clean(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _ESCAPE.sub("", text).translate(_OUTSIDE)


def unmarked(text: str) -> str:
    """`text` without the characters that mark a fold; all else, even control characters, stays."""
    return text.translate(_NO_MARKS)


def is_long(text: str) -> bool:
    """Whether a paste of `text` would fill the prompt and hide what was written around it."""
    return len(text) > MOST_CHARACTERS or len(text.splitlines()) > MOST_LINES


@dataclass(frozen=True)
class Written:
    """A text as it is sent, and which parts of it the prompt shows folded."""

    text: str
    folds: tuple[tuple[int, int], ...] = ()
    """Start and end of each folded part, first to last."""


class Folds:
    """What the folds of one document hold. A folded text is kept until the document is another."""

    def __init__(self) -> None:
        self._held: list[str] = []

    def fold(self, text: str) -> str:
        """What stands for `text` in the document; the same for the same text."""
        if text not in self._held:
            self._held.append(text)
        lines = len(text.splitlines())
        many = lines > MOST_LINES
        size = f"{lines:,} lines" if many else f"{len(text):,} characters"
        number = self._held.index(text) + 1
        return f"{_OPEN}pasted {size} #{number}{_CLOSE}".replace(" ", _BLANK)

    def open(self, document: str) -> Written:
        """The document's text with every fold opened."""
        parts: list[str] = []
        folds: list[tuple[int, int]] = []
        length = end = 0
        for match in FOLD.finditer(document):
            before, held = document[end : match.start()], self._held[int(match[1]) - 1]
            parts += [before, held]
            folds.append((length + len(before), length + len(before) + len(held)))
            length, end = folds[-1][1], match.end()
        return Written("".join([*parts, document[end:]]), tuple(folds))

    def close(self, written: Written) -> str:
        """The document that shows `written` with its folds folded, and nothing else as a fold."""
        parts: list[str] = []
        end = 0
        for start, stop in written.folds:
            parts += [unmarked(written.text[end:start]), self.fold(written.text[start:stop])]
            end = stop
        return "".join([*parts, unmarked(written.text[end:])])
