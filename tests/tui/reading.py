"""An app that only shows a transcript, and what is looked at of it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from edgespec.events import Reason
from tests.tui.driving import until
from tui.markdown.lines import Line
from tui.printing import printable
from tui.widgets.transcript import Transcript
from tui.widgets.turn import AnswerTurn, Describe


class ReadingApp(App[None]):
    """A transcript above a line to write in, which has the keyboard."""

    CSS = "Transcript { height: 1fr; scrollbar-size-vertical: 1; }"

    def __init__(self, describe: Describe = str) -> None:
        super().__init__()
        self.transcript = Transcript(describe)
        self.opened: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.transcript
        yield Input()

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        self.opened.append(url)


@dataclass(frozen=True)
class Entry:
    """What the history gives of a message."""

    id: int
    role: str
    content: str
    complete: bool = True


def talk(count: int, *, lines: int = 5) -> list[Entry]:
    """A conversation of `count` messages; each answer holds `lines` paragraphs."""
    entries: list[Entry] = []
    for number in range(count):
        if number % 2 == 0:
            entries.append(Entry(number, "user", f"Question {number}."))
        else:
            text = "\n\n".join(f"Answer {number}, part {part}." for part in range(lines))
            entries.append(Entry(number, "assistant", text))
    return entries


def transcript_of(pilot: Pilot[None]) -> Transcript:
    app = pilot.app
    assert isinstance(app, ReadingApp)
    return app.transcript


def picture(pilot: Pilot[None]) -> list[str]:
    """The rows of the transcript as they are on the screen, without the scroll bar."""
    size = transcript_of(pilot).scrollable_content_region.size
    strips = pilot.app.screen._compositor.render_strips()[: size.height]
    return [strip.text[: size.width].rstrip() for strip in strips]


async def answered(pilot: Pilot[None], *pieces: str) -> AnswerTurn:
    """An answer that came in pieces and has ended."""
    transcript = transcript_of(pilot)
    await transcript.begin_answer(again=False)
    for piece in pieces:
        transcript.write(piece)
    await transcript.finish_answer("".join(pieces), Reason.END)
    turn = transcript.turns[-1]
    assert isinstance(turn, AnswerTurn)
    await until(pilot, lambda: turn.settled)
    return turn


async def come(pilot: Pilot[None], text: str, drafted: int = 0) -> None:
    """More of an answer, once it is drawn."""
    transcript_of(pilot).write(text, drafted)
    turn = transcript_of(pilot).turns[-1]
    assert isinstance(turn, AnswerTurn)
    # A carriage return at the end waits for what follows it.
    whole = len(printable(turn.text.removesuffix("\r")))
    await until(pilot, lambda: len(turn.source) >= whole)


def texts(lines: list[Line]) -> list[str]:
    """Rows with what stands before them."""
    return [(line.lead + line.text.plain).rstrip() for line in lines]
