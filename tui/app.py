"""The app: opens at once, loads the model behind the picture, leaves when the model is at rest."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from tui.screens.chat import ChatScreen

if TYPE_CHECKING:
    from edgespec.settings import Settings
    from tui.session_like import Opener, SessionLike


def open_session(settings: Settings) -> SessionLike:
    """`Session.open`, imported only when it is called: the runtime takes a while to import."""
    from edgespec.session import Session  # noqa: PLC0415 - see above

    return Session.open(settings)


class EdgeSpecApp(App[None]):
    """A conversation with one pair of models."""

    TITLE = "EdgeSpec"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", priority=True, tooltip="Stop the answer and leave"),
    ]

    def __init__(self, settings: Settings, opener: Opener = open_session) -> None:
        super().__init__()
        self._chat = ChatScreen(settings, opener)

    @property
    def thread_at_work(self) -> bool:
        """Whether a thread is still inside the session after the app has ended."""
        return self._chat.thread_at_work

    def on_mount(self) -> None:
        """Show the conversation; it loads the model itself."""
        self.push_screen(self._chat)

    async def action_quit(self) -> None:
        """Leave once the session is closed; asked a second time, leave at once."""
        self._chat.leave()


def run_chat(settings: Settings) -> None:
    """Run the app in this terminal. Raises SystemExit(1) when the model could not be loaded."""
    app = EdgeSpecApp(settings)
    # A loop of our own: `asyncio.run` would wait at its end for a thread that still loads a model.
    with closing(asyncio.new_event_loop()) as loop:
        app.run(loop=loop)
    code = app.return_code or 0
    if app.thread_at_work:
        # A load cannot be interrupted, and to tear the runtime down beneath it would crash.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    if code:
        raise SystemExit(code)
