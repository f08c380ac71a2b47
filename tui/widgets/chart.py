"""A plot in characters, drawn anew for the room that it has."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.widget import Widget

Draw = Callable[[int, int], list[str]]
"""Lines for a width and a height in cells."""


class Chart(Widget):
    """A title and below it the plot."""

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(id=id)
        self._title = title
        self._draw: Draw | None = None

    def show(self, draw: Draw) -> None:
        """Draw this from now on."""
        self._draw = draw
        self.refresh()

    def render(self) -> Content:
        """Title and plot; it is no markup."""
        width, height = self.content_size
        lines = self._draw(width, height - 1) if self._draw and height > 1 else []
        return Content("\n".join([self._title[:width], *lines]))
