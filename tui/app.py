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

from tui.palette import CommandProvider
from tui.screens.chat import ChatScreen
from tui.services import Services, own_services
from tui.signals import SignalAwareApp

if TYPE_CHECKING:
    from edgespec.settings import Settings


class EdgeSpecApp(SignalAwareApp):
    """A conversation with one pair of models."""

    TITLE = "EdgeSpec"
    COMMANDS = App.COMMANDS | {CommandProvider}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", priority=True, tooltip="Stop the answer and leave"),
    ]

    def __init__(self, settings: Settings, services: Services | None = None) -> None:
        super().__init__()
        self._chat = ChatScreen(settings, services or Services())

    @property
    def thread_at_work(self) -> bool:
        """Whether a thread is still inside the session after the app has ended."""
        return self._chat.thread_at_work

    def close(self) -> str:
        """End what goes on in the background, after the app itself; what to say of it, mostly nothing."""
        return self._chat.close()

    def on_mount(self) -> None:
        """Show the conversation, which loads the model itself; greet who is here for the first time."""
        self.push_screen(self._chat)
        self.run_worker(self._greet(), exit_on_error=False)

    async def _greet(self) -> None:
        due = self._chat.services.first_run
        if due is None or not await asyncio.to_thread(due, self._chat.settings.load.model):
            return
        from tui.screens.first_run import FirstRunScreen  # noqa: PLC0415 - shown once

        choice = await self.push_screen_wait(FirstRunScreen())
        if choice is not None:
            await self._chat.begin_with(choice)

    async def action_quit(self) -> None:
        """Leave once the session is closed; asked a second time, leave at once."""
        self._chat.leave()


def run_chat(settings: Settings, services: Services | None = None) -> None:
    """Run the app in this terminal. Raises SystemExit(1) when the model could not be loaded."""
    app = EdgeSpecApp(settings, services or own_services())
    # A loop of our own: `asyncio.run` would wait at its end for a thread that still loads a model.
    with closing(asyncio.new_event_loop()) as loop:
        app.run(loop=loop)
    if farewell := app.close():
        print(farewell, file=sys.stderr)
    code = app.return_code or 0
    if app.thread_at_work:
        # A load cannot be interrupted, and to tear the runtime down beneath it would crash.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    if code:
        raise SystemExit(code)
