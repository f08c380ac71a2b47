"""What is on the screen of a chat: headline, transcript, instruments, prompt, numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Footer, Static

from edgespec.stats import Stats
from tui.phase import REFUSALS, Phase
from tui.widgets.instruments import InstrumentsPanel
from tui.widgets.prompt import Prompt
from tui.widgets.readable import ReadableTranscript
from tui.widgets.status_line import Status, StatusLine
from tui.widgets.turn import NoticeLine
from tui.worker import SessionScreen

if TYPE_CHECKING:
    from edgespec.settings import Settings
    from tui.services import Services

MEMORY_SECONDS = 1.0
REST_LOOKS = 10
"""At rest memory is looked at once in so many times: an app that does nothing should take nothing."""
PANEL_WIDTH = 120
"""Columns from which on the instruments are shown without being asked for."""


def model_title(model: str | None) -> str:
    """A short name for what will be loaded: a file's name, or the part after `package:`."""
    if model is None:
        return "the built-in model"
    if model.endswith(".gguf"):
        return PurePath(model).stem
    return model.rpartition(":")[2] or model


def describe(content: str) -> str:
    """A message as it is shown: the question, and the names of the files that went with it."""
    from edgespec.attachments import split  # noqa: PLC0415 - after the first picture

    question, names = split(content)
    return "\n".join([*(f"[file {name}]" for name in names), question]) if names else content


def title_of(content: str) -> str:
    """A title for a conversation that begins with files; empty for any other, which has a first line."""
    from edgespec.attachments import split  # noqa: PLC0415 - after the first picture
    from edgespec.history.records import title_of as made_of  # noqa: PLC0415 - see above

    question, names = split(content)
    return made_of(question) or names[0] if names else ""


class PictureScreen(SessionScreen):
    """Owns the widgets; a screen above it decides what they show."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012 - as Textual has it
        (0, "-narrow"),
        (100, "-wide"),
    ]

    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012 - as Textual has it
        (0, "-tiny"),
        (9, "-low"),
        (16, "-high"),
    ]

    def __init__(self, settings: Settings, services: Services) -> None:
        super().__init__(settings, services.open_session)
        self.services = services
        self.phase = Phase.LOADING
        self._looks = 0
        self.panel_wanted: bool | None = None
        """Whether the instruments are to be shown; None leaves it to the width."""
        self.headline = Static(id="headline", markup=False)
        self.transcript = ReadableTranscript(describe)
        self.panel = InstrumentsPanel()
        self.attached_line = Static(id="attached", markup=False)
        self.prompt = Prompt(
            history=services.prompts, complete=self.complete, dropped=services.dropped
        )
        self.status_line = StatusLine()
        self.loading_line: NoticeLine | None = None

    def compose(self) -> ComposeResult:
        """Headline, transcript with the instruments, prompt, numbers, keys."""
        yield self.headline
        yield Container(self.transcript, self.panel, id="body")
        yield self.attached_line
        yield self.prompt
        yield self.status_line
        yield Footer()

    async def on_mount(self) -> None:
        """Nothing is attached yet, nothing was sent, and memory is looked at now and then."""
        self.status = replace(self.status, offline=True)
        self.attached_line.display = False
        self.prompt.focus()
        self.prompt.cursor_blink = False  # each blink paints
        self.set_interval(MEMORY_SECONDS, self._look)

    def on_resize(self, event: events.Resize) -> None:
        """Where there is room, the instruments are there until they are sent away."""
        wanted = self.panel_wanted
        self.panel.display = event.size.width >= PANEL_WIDTH if wanted is None else wanted

    def complete(self, command: str, begun: str) -> list[str]:
        """What a command's argument can become. Called in a thread."""
        raise NotImplementedError

    @property
    def status(self) -> Status:
        """What the status line shows."""
        return self.status_line.status

    @status.setter
    def status(self, status: Status) -> None:
        self.status_line.status = status

    async def say(self, text: str, *, error: bool = False) -> None:
        """Add a line that stays to the transcript."""
        await self.transcript.add_notice(text, error=error)

    def name_models(self) -> None:
        """Put into the headline who answers."""
        session = self.session
        if session is None:
            return
        pair = f" with {session.draft_name}" if session.draft_name else ""
        persona = f"  as {self.settings.persona}" if self.settings.persona else ""
        self.headline.update(f"EdgeSpec  {session.target_name}{pair}{persona}")

    def set_phase(self, phase: Phase) -> None:
        """Say what happens now, and so what may be done."""
        self.phase = phase
        self.prompt.hint = ""
        self.prompt.refusal = REFUSALS[phase]
        self.refresh_bindings()

    async def show_loading(self, name: str) -> None:
        """Say what is being loaded."""
        self.headline.update(f"EdgeSpec  loading {name}…")
        which = "next" if self.transcript.turns else "first"
        self.loading_line = await self.transcript.add_notice(
            f"loading {name}… You can write your {which} message already."
        )
        self.status = replace(self.status, activity="loading")

    def show_numbers(self, stats: Stats, context_used: int) -> None:
        """What the running answer has come to."""
        self.status = replace(self.status, activity="", stats=stats, context_used=context_used)
        self.panel.show(stats)
        self.panel.show_context(context_used, self.status.context_size)

    def reset_numbers(self) -> None:
        """Another conversation: what was said of the last answer does not hold for it."""
        self.status = replace(self.status, stats=Stats(), context_used=None)
        self.panel.begin()
        self.panel.show_context(None, self.status.context_size)

    def _look(self) -> None:
        self._looks += 1
        if self.phase is Phase.ANSWERING or self._looks % REST_LOOKS == 0:
            self.poll_memory()

    def poll_memory(self) -> None:
        """What the models take now."""
        session = self.session
        if session is not None and self.phase is not Phase.LEAVING:
            memory = session.memory()
            self.status = replace(self.status, memory=memory)
            self.panel.show_memory(memory)
