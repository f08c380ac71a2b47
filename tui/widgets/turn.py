"""One entry of the conversation: what was asked, what was answered, what must be known."""

from __future__ import annotations

import asyncio

from markdown_it import MarkdownIt
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Markdown, Static

from edgespec.events import Reason

REDRAW_SECONDS = 0.08
"""Least time between two redraws of a growing answer; more would only take time from the model."""

CUT_NOTES = {
    Reason.END: "",
    Reason.STOP: "",
    Reason.LENGTH: "cut: token budget",
    Reason.CONTEXT: "cut: context full",
    Reason.CANCELLED: "stopped",
}

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, 0x2028: 0x0A, 0x2029: 0x0A}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def printable(text: str) -> str:
    """`text` with control characters made visible, so that no text can command the terminal."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)


def _parser() -> MarkdownIt:
    # Textual has no widget for HTML and would leave it out; without the rule it is shown as text.
    return MarkdownIt("gfm-like", {"html": False})


class UserTurn(Static):
    """What the user wrote, character by character."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text), markup=False)
        self.text = text

    def mark(self, note: str) -> None:
        """Say below the turn what becomes of it; an empty note takes the line away."""
        self.border_subtitle = note
        self.set_class(bool(note), "-marked")


class AnswerTurn(Vertical):
    """An answer, drawn as Markdown while it grows."""

    class Settled(Message):
        """The final text is on the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        """The answer so far, as the model gave it."""
        self.settled = False
        """Whether the final text is on the screen."""
        self._pending = ""
        self._finished = False
        self._drawing = False
        self._markdown = Markdown(parser_factory=_parser)
        self._note = Static("…", markup=False, classes="note")

    def compose(self) -> ComposeResult:
        """The text and, below it, a line for what is the matter with it."""
        yield self._markdown
        yield self._note

    @property
    def source(self) -> str:
        """The Markdown that is drawn."""
        return self._markdown.source

    @property
    def note(self) -> str:
        """The line below the text; empty for a whole answer."""
        return str(self._note.content) if self._note.display else ""

    def write(self, text: str) -> None:
        """Let the answer grow by `text`."""
        self.text += text
        self._pending += text
        self._note.display = False
        self._redraw()

    def finish(self, text: str, reason: Reason) -> None:
        """Show the whole answer as `text`, with a line below it when it is only a part."""
        self.text = text
        self._settle(CUT_NOTES[reason])

    def break_off(self) -> None:
        """Show what there is as the part before an error."""
        self._settle("broken off")

    def _settle(self, note: str) -> None:
        self._finished = True
        self._note.update(note)
        self._note.display = bool(note)
        self._redraw()

    def rest(self) -> None:
        """Leave the text out of the layout and keep its place: nobody sees it now.

        A long answer has hundreds of widgets, and every layout of the screen visits each of them.
        """
        if self.settled and self._markdown.display and self.virtual_region.height:
            self.styles.height = self.virtual_region.height
            self._markdown.display = False

    def wake(self) -> None:
        """Put the text back where it was."""
        if self.settled and not self._markdown.display:
            self._markdown.display = True
            self.styles.height = None

    def _redraw(self) -> None:
        if not self._drawing:
            self._drawing = True
            self._draw()

    @work(exit_on_error=False)
    async def _draw(self) -> None:
        try:
            while self._pending and not self._finished:
                text, self._pending = self._pending, ""
                await self._markdown.append(printable(text))
                await asyncio.sleep(REDRAW_SECONDS)
        finally:
            self._drawing = False
        if self._finished:
            await self._draw_final()

    async def _draw_final(self) -> None:
        """Parse the whole once more: what came late can change what came early (link targets).

        The new text takes the old one's place in one step, so that the height never collapses and
        a reader who has scrolled away stays where they are.
        """
        final = Markdown(printable(self.text), parser_factory=_parser)
        final.display = False
        await self.mount(final, after=self._markdown)
        grown, self._markdown = self._markdown, final
        grown.display = False
        final.display = True
        await grown.remove()
        self.settled = True
        self.post_message(self.Settled())


class NoticeLine(Static):
    """A line that stays: something to know, or an error with what to do about it."""

    def __init__(self, text: str, *, error: bool = False) -> None:
        super().__init__(printable(text), markup=False, classes="-error" if error else "")
