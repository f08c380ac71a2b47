"""An app around one screen, so that it is driven without a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from tests.tui.driving import eventually

R = TypeVar("R")


class ScreenApp(App[None], Generic[R]):
    """Pushes a screen, and keeps what it is dismissed with."""

    def __init__(self, screen: Screen[R]) -> None:
        super().__init__()
        self.first = screen
        self.results: list[R | None] = []

    def on_mount(self) -> None:
        self.push_screen(self.first, self.results.append)


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Let the app run until `condition` holds and what it led to is drawn."""
    await eventually(condition)
    await pilot.pause()


def drawn(pilot: Pilot[Any]) -> str:
    """The characters on the screen; of one over others, only its own."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)
