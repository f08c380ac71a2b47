"""One row of a drawn text, and the wrapping of text into rows.

Styles are texts for Textual's `Style.parse`: theme variables and attributes, resolved when a row is
drawn, so that rows outlive a change of theme.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.content import Content, Span

NARROWEST = 4
"""Text is never wrapped to less; what is wider than the terminal is cut off at its edge."""

BAR = "▌"
LEAD_STYLE = "$text-primary"
MUTED_STYLE = "$text-muted"
TAB = 4

Spans = Sequence[tuple[int, int]]
"""Places in a text, first and last character (exclusive), in order and apart from one another."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One row. Rows are compared by identity: the same row need not be drawn again."""

    text: Content
    lead: str = ""
    """What stands before the text: bullets, bars, the indent."""
    joint: str = "\n"
    """What lies between this row and the one before in the text they come from."""
    fill: str = ""
    """The style of the whole row, beneath the text's own."""

    @property
    def source(self) -> str:
        """The row as a person would write it."""
        return self.lead.replace(BAR, ">") + self.text.plain


def wrap(text: Content, width: int) -> Iterator[tuple[str, Content]]:
    """Rows of at most `width` cells, each with what lies between it and the row before."""
    for row in text.split(allow_blank=True):
        plain, position = row.plain, 0
        for number, piece in enumerate(row.wrap(max(width, NARROWEST))):
            start = plain.find(piece.plain, position)
            yield ("\n" if number == 0 else " " if start > position else ""), piece
            position = max(start, position) + len(piece.plain)


def fold(row: Content, width: int) -> Iterator[tuple[str, Content]]:
    """`wrap` for a row of code, whose spaces must all stay: cut at the edge, not between words."""
    joint = "\n"
    for piece in row.fold(max(width, NARROWEST)):
        yield joint, piece
        joint = ""


class PlainText:
    """Text as it is, wrapped at the edge. It may grow at its end, and only its end is wrapped anew."""

    def __init__(self, *, lead: str = "", style: str = "", mark: str = "") -> None:
        self._lead = lead
        self._style = style
        self._mark = mark
        """The style of the spans."""
        self._width = 0
        self._lines: list[Line] = []
        self._length = 0
        """Characters in the whole lines, which are wrapped already."""
        self._passed = 0
        """Spans that end before the line that is not wrapped yet."""

    def lines(self, text: str, width: int, spans: Spans = ()) -> list[Line]:
        """All rows of `text`, which is the text of the last call or begins with it."""
        if width != self._width:
            self._width, self._lines, self._length, self._passed = width, [], 0, 0
        end = text.rfind("\n") + 1
        while self._length < end:
            after = text.index("\n", self._length) + 1
            self._lines += self._wrapped(text, self._length, after - 1, spans)
            self._length = after
        return self._lines + self._wrapped(text, end, len(text), spans)

    def _wrapped(self, text: str, start: int, end: int, spans: Spans) -> list[Line]:
        while self._passed < len(spans) and spans[self._passed][1] <= start:
            self._passed += 1
        marks = [Span(0, end - start, self._style)] if self._style else []
        for number in range(self._passed, len(spans)):
            first, last = spans[number]
            if first >= end:
                break
            marks.append(Span(max(first, start) - start, min(last, end) - start, self._mark))
        row = Content(text[start:end], marks).expand_tabs(TAB)
        width = self._width - len(self._lead)
        return [Line(piece, self._lead, joint) for joint, piece in wrap(row, width)]


def estimate_rows(text: str, width: int) -> int:
    """About how many rows `text` takes, told without wrapping it."""
    width = max(width, NARROWEST)
    return sum(-(-len(row) // width) or 1 for row in text.split("\n"))
