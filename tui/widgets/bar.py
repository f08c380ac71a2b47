"""A scroll bar that is drawn again only when its thumb has moved.

Textual's draws each of its rows anew whenever the text grows, which costs more than the new text.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip


class ThriftyScrollBar(ScrollBar):
    """A vertical scroll bar."""

    def __init__(self, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._segments: list[Segment] = []
        self._strips: list[Strip] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows in `crop`."""
        bar = self.render()
        if not isinstance(bar, ScrollBarRender):
            return super().render_lines(crop)
        style = self.app.console.get_style(bar.style)
        if style.color is None or style.bgcolor is None:
            return super().render_lines(crop)
        segments = bar.render_bar(
            size=self.size.height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=self.size.width,
            back_color=style.bgcolor,
            bar_color=style.color,
        ).segments
        if segments != self._segments:
            self._segments = segments
            self._strips = [Strip([segment]) for segment in segments]
        strips = self._strips[crop.y : crop.bottom]
        background = self.background_colors[1]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips
