"""What was answered: Markdown that grows, with its thoughts folded away."""

from __future__ import annotations

import asyncio
from itertools import takewhile

from textual.content import Content
from textual.message import Message

from edgespec.events import Reason
from tui.markdown.lines import Line, estimate_rows
from tui.printing import Cleaner, printable
from tui.thinking import parts, without_thoughts
from tui.widgets.drawn import Turn
from tui.widgets.pace import LEAST_SECONDS, Pace
from tui.widgets.section import Section

CUT_NOTES = {
    Reason.END: "",
    Reason.STOP: "",
    Reason.LENGTH: "cut: token budget",
    Reason.CONTEXT: "cut: context full",
    Reason.CANCELLED: "stopped",
}
OWN_SHARE = 0.25
"""Part of a processor that drawing may take where text comes unpaced; the app's worker paces it."""
SPACE = Line(Content(""))


class AnswerTurn(Turn):
    """An answer, drawn as Markdown while it grows; thoughts are one row until they are asked for."""

    class Settled(Message):
        """The final text is on the screen."""

    def __init__(self, *, thinking: bool = False, message: int | None = None) -> None:
        """`thinking` says that the prompt ended inside a thought."""
        super().__init__(message=message)
        self.text = ""
        """The answer so far, as the model gave it."""
        self.settled = False
        """Whether the final text is on the screen."""
        self._begun_thinking = thinking
        self._cleaner = Cleaner()
        self._clean = ""
        self._drafted: list[tuple[int, int]] = []
        self._source = ""
        self._whole = False
        self._sections: list[Section] = []
        self._tint = False
        self._streamed = False
        self._thinking_open = False
        self._pace = Pace(share=OWN_SHARE, least=LEAST_SECONDS / 2)
        self._drawing = False
        """Whether the next picture is waited for or on its way."""
        self._due: asyncio.TimerHandle | None = None
        self._note = "…"

    @classmethod
    def restored(cls, text: str, *, complete: bool, message: int | None = None) -> AnswerTurn:
        """An answer of an earlier time."""
        turn = cls(message=message)
        turn.text = text
        turn._clean = turn._source = printable(text)
        turn._note = "" if complete else "not whole"
        turn._whole = turn.settled = True
        return turn

    @property
    def source(self) -> str:
        """The Markdown that is drawn, with thoughts."""
        return self._source

    @property
    def copied(self) -> str:
        """The answer without its thoughts."""
        return without_thoughts(self.text, opened=self._begun_thinking)

    @property
    def note(self) -> str:
        """The line below the text; empty for a whole answer."""
        return self._note

    @property
    def drafted(self) -> list[tuple[int, int]]:
        """Places in the printable text that come from accepted draft tokens."""
        return self._drafted

    @property
    def tint(self) -> bool:
        """Whether drafted characters are marked, in the answer's plain text.

        Of an answer of an earlier time it is not known which were drafted; it stays Markdown.
        """
        return self._tint

    @tint.setter
    def tint(self, tint: bool) -> None:
        if tint != self._tint:
            self._tint = tint
            self.redraw()

    @property
    def thinking_open(self) -> bool:
        """Whether thoughts are shown."""
        return self._thinking_open

    @thinking_open.setter
    def thinking_open(self, thinking_open: bool) -> None:
        if thinking_open != self._thinking_open:
            self._thinking_open = thinking_open
            self.redraw()

    def toggle(self) -> None:
        """Show the thoughts of this answer, or fold them."""
        self.thinking_open = not self.thinking_open

    def write(self, text: str, drafted: int = 0) -> None:
        """Let the answer grow by `text`; its first `drafted` characters are accepted drafts."""
        self.text += text
        self._streamed = True
        start = len(self._clean)
        self._clean += self._cleaner.feed(text[:drafted])
        self._add_drafted(start, len(self._clean))
        self._clean += self._cleaner.feed(text[drafted:])
        self._note = ""
        self._schedule()

    def draw(self) -> None:
        """Draw what was written now, if it is time for a picture: together with what else changes."""
        if self._due is not None and not self._pace.wait:
            self._due.cancel()
            self._catch_up()

    def go_on(self) -> None:
        """A cut answer will be continued."""
        self._whole = self.settled = False
        self._note = "…"
        self.redraw()

    def finish(self, text: str, reason: Reason) -> None:
        """Show the whole answer as `text`, with a line below it when it is only a part."""
        self.text = text
        self._settle(CUT_NOTES[reason])

    def break_off(self) -> None:
        """Show what there is as the part before an error."""
        self._settle("broken off")

    def make_rows(self, width: int) -> list[Line]:
        """The sections, apart from one another, and the footer."""
        rows: list[Line] = []
        for section in self._sections_now():
            drawn = self._section_rows(section, width)
            rows += [SPACE, *drawn] if rows and drawn else drawn
        return rows + self.footer() or [SPACE]

    def estimate(self, width: int) -> int:
        """As high as the answer's text, or a row for a thought."""
        answer = without_thoughts(self._source, opened=self._begun_thinking)
        return estimate_rows(answer, width) + (2 if len(answer) < len(self._source) else 0)

    def _section_rows(self, section: Section, width: int) -> list[Line]:
        if section.part.thought:
            shown, whole = self._thinking_open, self._whole
            return section.thought_rows(self._source, width, shown=shown, whole=whole)
        if self._tint and self._streamed:
            return section.tinted_rows(self._source, width, self._drafted)
        return section.markdown_rows(self._source, width, whole=self._whole)

    def _sections_now(self) -> list[Section]:
        """The sections of the text, those that only grew with all they know."""
        found = parts(self._source, opened=self._begun_thinking, growing=not self._whole)
        known, kept = self._sections, 0
        while kept < min(len(known), len(found)) and known[kept].becomes(found[kept]):
            kept += 1
        self._sections = [*known[:kept], *map(Section, found[kept:])]
        return self._sections

    def _add_drafted(self, start: int, end: int) -> None:
        if start == end:
            return
        if self._drafted and self._drafted[-1][1] == start:
            start = self._drafted.pop()[0]
        self._drafted.append((start, end))

    def _schedule(self) -> None:
        if not self._drawing:
            self._drawing = True
            # Not a timer of Textual: one that is late before it has begun is never heard of again.
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(self._pace.wait, self._catch_up)

    def _catch_up(self) -> None:
        self._due = None
        self._pace.begin()
        self._source = self._clean
        self.redraw()
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        self._pace.end()
        self._drawing = False
        if not self._whole and len(self._source) < len(self._clean):
            self._schedule()

    def _settle(self, note: str) -> None:
        clean = printable(self.text)
        if not clean.startswith(self._source):
            self._sections = []
        if clean != self._clean:
            same = _common_length(clean, self._clean)
            self._drafted = [
                (start, min(end, same)) for start, end in self._drafted if start < same
            ]
        self._clean = self._source = clean
        self._cleaner = Cleaner()
        self._note = note
        self._whole = True
        self.redraw()
        self.call_after_refresh(self._show_settled)

    def _show_settled(self) -> None:
        self.settled = True
        self.post_message(self.Settled())


def _common_length(one: str, other: str) -> int:
    """How many characters the texts have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
