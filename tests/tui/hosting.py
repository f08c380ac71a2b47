"""One screen by itself: an app that shows it and keeps what it ends with."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static


class Host(App[None]):
    """Pushes `shown` over an empty screen."""

    def __init__(self, shown: Screen[Any]) -> None:
        super().__init__()
        self.shown = shown
        self.results: list[Any] = []
        """What it ended with, once it did."""

    def on_mount(self) -> None:
        self.push_screen(self.shown, self.results.append)


def picture(pilot: Pilot[None]) -> str:
    """The characters on the screen."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


def words(pilot: Pilot[None], selector: str) -> str:
    """What a line says."""
    return str(pilot.app.screen.query_one(selector, Static).content)
