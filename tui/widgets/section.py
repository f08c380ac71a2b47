"""A part of an answer, thought or not, in the ways it can be drawn."""

from __future__ import annotations

from tui.markdown.document import Document
from tui.markdown.lines import MUTED_STYLE, Line, PlainText, Spans, estimate_rows
from tui.thinking import Part
from tui.widgets.drawn import muted

THOUGHT_LEAD = "┆ "
DRAFTED_STYLE = "underline $text-success"


class Section:
    """One part. All methods take the whole answer, which only grows."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._document = Document()
        self._read = part.start
        """Up to where the document has the text."""
        self._thought = PlainText(lead=THOUGHT_LEAD, style=MUTED_STYLE)
        self._tinted = PlainText(mark=DRAFTED_STYLE)

    def becomes(self, part: Part) -> bool:
        """Take the part as this one, grown at its end; False when it is another."""
        same = (part.start, part.thought) == (self.part.start, self.part.thought)
        if not same or part.end < self._read:
            return False
        self.part = part
        return True

    def markdown_rows(self, text: str, width: int, *, whole: bool) -> list[Line]:
        """The part as Markdown."""
        part = self.part
        if self._read < part.end:
            self._document.append(text[self._read : part.end])
            self._read = part.end
        if whole:
            self._document.finish()
        return self._document.lines(width)

    def tinted_rows(self, text: str, width: int, drafted: Spans) -> list[Line]:
        """The part as it is, with what was drafted marked."""
        start, end = self.part.start, self.part.end
        spans = [
            (max(first, start) - start, last - start) for first, last in drafted if last > start
        ]
        return self._tinted.lines(text[start:end], width, spans)

    def thought_rows(self, text: str, width: int, *, shown: bool, whole: bool) -> list[Line]:
        """How long the thought is, and the thought when it is to be shown; nothing for an empty one."""
        part = self.part
        thought = text[part.start : part.end].rstrip()
        if not thought and part.closed:
            return []
        count = estimate_rows(thought, width) if thought else 0
        lines = f"{count} {'line' if count == 1 else 'lines'}"
        words = f"thought for {lines}"
        if not part.closed:
            words = f"{words}, not to the end" if whole else f"thinking: {lines} so far"
        head = muted(f"{words} (Ctrl+T {'hides' if shown else 'shows'})")
        return [head, *self._thought.lines(thought, width)] if shown and thought else [head]
