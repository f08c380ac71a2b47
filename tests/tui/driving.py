"""Driving the app: a pilot that waits for what it expects, and what it looks at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual.pilot import Pilot
from textual.widgets import Static

from edgespec.history.store import History
from edgespec.settings import Load, Settings
from tests.tui.fake_session import FakeSession
from tui.app import EdgeSpecApp
from tui.phase import Phase
from tui.screens.chat import ChatScreen
from tui.services import Services
from tui.session_like import SessionLike
from tui.widgets.prompt import Prompt
from tui.widgets.status_line import StatusLine
from tui.widgets.transcript import Transcript
from tui.widgets.turn import AnswerTurn, NoticeLine, UserTurn

GENEROUS_SECONDS = 30


def make_app(
    session: FakeSession,
    *,
    model: str | None = "models/fake.gguf",
    open_history: Callable[[], History] | None = None,
) -> EdgeSpecApp:
    def opener(settings: Settings) -> SessionLike:
        session.settings = settings
        return session

    return EdgeSpecApp(
        Settings(load=Load(model=model)),
        Services(open_session=opener, open_history=open_history),
    )


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Let the app run until `condition` holds and what it led to is drawn."""
    await eventually(condition)
    await pilot.pause()


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds; the bound is for a test that fails."""
    end = time.monotonic() + GENEROUS_SECONDS
    while not condition():
        assert time.monotonic() < end, "the app never came to what the test waits for"
        await asyncio.sleep(0.01)


def screen(pilot: Pilot[None]) -> ChatScreen:
    found = pilot.app.screen
    assert isinstance(found, ChatScreen)
    return found


def prompt(pilot: Pilot[None]) -> Prompt:
    return screen(pilot).query_one(Prompt)


def transcript(pilot: Pilot[None]) -> Transcript:
    return screen(pilot).query_one(Transcript)


def status(pilot: Pilot[None]) -> str:
    return screen(pilot).query_one(StatusLine).text


def headline(pilot: Pilot[None]) -> str:
    return str(screen(pilot).query_one("#headline", Static).content)


def answers(pilot: Pilot[None]) -> list[AnswerTurn]:
    return [turn for turn in screen(pilot).query(AnswerTurn) if turn.display]


def questions(pilot: Pilot[None]) -> list[str]:
    return [turn.text for turn in screen(pilot).query(UserTurn)]


def notices(pilot: Pilot[None]) -> list[str]:
    return [str(line.content) for line in screen(pilot).query(NoticeLine)]


def errors(pilot: Pilot[None]) -> list[str]:
    return [str(line.content) for line in screen(pilot).query("NoticeLine.-error").results(Static)]


def drawn(pilot: Pilot[None]) -> str:
    """The characters on the screen."""
    strips = screen(pilot)._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def ready(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: screen(pilot).phase is Phase.READY)


async def send(pilot: Pilot[None], text: str) -> None:
    prompt(pilot).load_text(text)
    await pilot.press("enter")


async def settled(pilot: Pilot[None]) -> AnswerTurn:
    """The last answer, once the app is at rest and its final text is drawn."""
    await ready(pilot)
    await until(pilot, lambda: all(turn.settled for turn in answers(pilot)))
    return answers(pilot)[-1]
