"""The instruments: speed, drafts, acceptance, context and memory of the running answer.

It knows no session: it is told `Stats`, `Memory` and words, and draws nothing else. One widget without
children, drawn line by line, because it runs while a model decodes on the same cores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from edgespec.stats import Stats
from tui.widgets.gauges import Heading, plain_ascii
from tui.widgets.instruments_compact import COMPACT_HEIGHT, compact
from tui.widgets.instruments_side import side
from tui.widgets.readings import Readings
from tui.widgets.turn import printable

if TYPE_CHECKING:
    from edgespec.memory import Memory

REDRAW_SECONDS = 0.25
"""Least time between two redraws."""
SIDE_WIDTH = 38
"""Columns that the side layout is made for."""
SIDE_HEIGHT = 12
"""Least lines of the side layout; with fewer the compact one is shown."""

BOLD = Style(bold=True)


class InstrumentsPanel(Widget):
    """A column where it is high, a few lines where it is low."""

    ALLOW_SELECT: ClassVar[bool] = False
    DEFAULT_CSS = """
    InstrumentsPanel {
        padding: 0 1;
        background: $panel;
        color: $foreground;
    }
    """

    def __init__(self, *, ascii: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ascii = ascii
        self._readings = Readings()
        self._redraw_due = False
        self._drawn: list[str] = []
        self._drawn_for = Size(0, 0)

    @property
    def compact(self) -> bool:
        """Whether the layout of few lines is shown."""
        return self.content_size.height < SIDE_HEIGHT

    @property
    def text(self) -> str:
        """What is drawn, or will be in a moment."""
        return "\n".join(self.lines(*self.content_size))

    def begin(self) -> None:
        """Another answer begins: its numbers are not known yet."""
        self._change(replace(self._readings, stats=Stats(), trace=self._readings.trace.begin()))

    def show(self, stats: Stats) -> None:
        """The numbers after one more round, or after several."""
        self._change(replace(self._readings, stats=stats, trace=self._readings.trace.after(stats)))

    def show_memory(self, memory: Memory | None) -> None:
        """What the models take now."""
        self._change(replace(self._readings, memory=memory))

    def show_context(self, used: int | None, size: int | None) -> None:
        """Tokens in the cache, and how many it can hold."""
        self._change(replace(self._readings, context_used=used, context_size=size))

    def show_why(self, text: str | None) -> None:
        """Why it is drafted as it is, in a sentence; None where nothing chooses."""
        self._change(replace(self._readings, why=printable(text) if text else None))

    def forget(self) -> None:
        """Another pair of models: nothing of what was measured holds for it."""
        self._change(Readings())

    def lines(self, width: int, height: int) -> list[str]:
        """What there is to draw in so much room."""
        layout = compact if height < SIDE_HEIGHT else side
        lines = layout(self._readings, width, height)
        if self._ascii:
            lines = [type(line)(plain_ascii(line)) for line in lines]
        return lines

    def render_line(self, y: int) -> Strip:
        """One line of what was drawn last; drawn anew only where the size is another."""
        if self._drawn_for != self.content_size:
            self._draw()
        line = self._drawn[y] if y < len(self._drawn) else ""
        style = self.visual_style + BOLD if isinstance(line, Heading) else self.visual_style
        strip = Strip([Segment(line, style.rich_style)])
        return strip.adjust_cell_length(self.content_size.width, self.visual_style.rich_style)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Where the style sheet leaves it open."""
        return SIDE_WIDTH - self.gutter.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Where the style sheet leaves it open."""
        return COMPACT_HEIGHT

    def on_show(self) -> None:
        """Catch up with what came while nobody looked."""
        self._redraw()

    def _change(self, readings: Readings) -> None:
        self._readings = readings
        if self.is_mounted and self.display and not self._redraw_due:
            self._redraw_due = True
            self.set_timer(REDRAW_SECONDS, self._redraw)

    def _redraw(self) -> None:
        self._redraw_due = False
        before = self._drawn
        self._draw()
        width = self.content_size.width
        changed = [
            Region(0, y, width, 1)
            for y in range(max(len(before), len(self._drawn)))
            if before[y : y + 1] != self._drawn[y : y + 1]
        ]
        if changed:
            self.refresh(*changed)

    def _draw(self) -> None:
        self._drawn_for = self.content_size
        self._drawn = self.lines(*self.content_size)
