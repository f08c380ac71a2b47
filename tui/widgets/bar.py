"""A scroll bar that is drawn again only when its thumb has moved.

Textual's draws each of its rows anew whenever the text grows, which costs more than the new text.
"""

from __future__ import annotations

from typing import Self

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip


class ThriftyScrollBar(ScrollBar):
    """A vertical scroll bar."""

    def __init__(self, thickness: int) -> None:
        self._segments: list[Segment] = []
        self._strips: list[Strip] = []
        super().__init__(vertical=True, name="vertical", thickness=thickness)

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw again, unless that would give the same picture."""
        known = self.is_attached and bool(self._segments) and not layout and not recompose
        if known and self._now() == self._segments:
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows in `crop`."""
        segments = self._now()
        if segments != self._segments:
            self._segments = segments
            beneath = Style(bgcolor=self.background_colors[1].rich_color)
            self._strips = [Strip(Segment.apply_style([segment], beneath)) for segment in segments]
        strips = self._strips[crop.y : crop.bottom]
        background = self.background_colors[1]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips

    def _now(self) -> list[Segment]:
        """One segment for each row."""
        bar = self.render()
        assert isinstance(bar, ScrollBarRender)
        style = self.app.console.get_style(bar.style)
        assert style.color is not None
        assert style.bgcolor is not None
        return bar.render_bar(
            size=self.size.height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=self.size.width,
            back_color=style.bgcolor,
            bar_color=style.color,
        ).segments
