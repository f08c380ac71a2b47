"""An app that is nothing but a prompt, and keeps what the prompt says."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from tests.tui.driving import eventually
from tui.prompt_history import PromptHistory
from tui.widgets.completing_area import Complete
from tui.widgets.prompt import Dropped, Prompt


class Host(App[None]):
    CSS = "#above { height: 1fr; } Prompt { height: auto; min-height: 3; max-height: 10; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "escape", "Escape")]

    def __init__(
        self,
        *,
        history: PromptHistory | None = None,
        complete: Complete | None = None,
        dropped: Dropped | None = None,
    ) -> None:
        super().__init__()
        self.prompt = Prompt(history=history, complete=complete, dropped=dropped)
        self.sent: list[tuple[str, str]] = []
        self.commands: list[tuple[str, str]] = []
        self.files: list[Path] = []
        self.escapes = 0

    def compose(self) -> ComposeResult:
        yield Static(id="above")
        yield self.prompt

    def on_mount(self) -> None:
        self.prompt.focus()

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        self.sent.append((event.text, event.shown))
        self.prompt.refusal = ""

    @on(Prompt.CommandGiven)
    def _command(self, event: Prompt.CommandGiven) -> None:
        self.commands.append((event.name, event.argument))

    @on(Prompt.FilesDropped)
    def _dropped(self, event: Prompt.FilesDropped) -> None:
        self.files += event.paths

    def action_escape(self) -> None:
        self.escapes += 1


async def paste(pilot: Pilot[None], text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


async def write(pilot: Pilot[None], text: str) -> None:
    """Type `text`, key by key."""
    await pilot.press(*text)


async def at_once(pilot: Pilot[None], *keys: str) -> None:
    """Let keys come faster than the app handles them."""
    for key in keys:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await pilot.pause()


async def send(pilot: Pilot[None], host: Host, text: str) -> None:
    """Send `text` and wait until it has arrived."""
    before = len(host.sent)
    host.prompt.load_text(text)
    await pilot.press("enter")
    await eventually(lambda: len(host.sent) > before)


async def threads_done(pilot: Pilot[None]) -> None:
    """Wait for what the prompt does in threads."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def drawn_rows(widget: Widget) -> list[str]:
    """The characters that a widget draws into its content, row by row."""
    return [widget.render_line(y).text for y in range(widget.size.height)]


def drawn(pilot: Pilot[None]) -> list[str]:
    """The characters on the screen, row by row."""
    return [strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips()]
