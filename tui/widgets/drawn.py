"""A text drawn row by row: one widget, however long it is.

Textual lays out every widget of a screen each time one of them changes its size, and paints every row
of a widget whose size changed. A turn that is a tree of a widget for each paragraph costs more the
longer the conversation is; this one costs what its new rows cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.segment import Segment
from textual.content import Content
from textual.filter import LineFilter
from textual.geometry import Offset, Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.markdown.lines import LEAD_STYLE, MUTED_STYLE, Line

MARGIN_LEFT = 2
"""Cells for the mark at the edge of a turn and the space behind it."""
MARGIN_RIGHT = 1
SELECTED_STYLE = "bold $text-accent"
NOTHING = Line(Content(""))
"""What is below the last row while the layout has not caught up."""


class _Row(NamedTuple):
    line: Line
    strip: Strip


class Drawn(Widget):
    """Draws the rows that `make_rows` gives. It takes no padding and no border from CSS."""

    DEFAULT_CSS = """
    Drawn {
        width: 1fr;
        height: auto;
    }
    """
    EDGE = " "
    """What stands at the left of each row."""
    EDGE_STYLE = "$primary"
    FILL = ""
    """The style of all rows, beneath their own."""

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False
        self._rows: Sequence[Line] | None = None
        self._rows_width = 0
        self._drawn: dict[int, _Row] = {}
        self._drawn_for: tuple[int, Sequence[LineFilter]] = (0, [])
        """The width and the filters for which rows were drawn."""
        self._estimate: tuple[int, int] | None = None
        """A width, and about how high it is there."""
        self._selected = False

    def make_rows(self, width: int) -> Sequence[Line]:
        """All rows, the text in them at most `width` cells wide; unchanged rows the same objects."""
        raise NotImplementedError

    def estimate(self, width: int) -> int:
        """About how many rows there are, told without making them."""
        raise NotImplementedError

    @property
    def selected(self) -> bool:
        """Whether the user's keys act on it; marked at its left edge, in colour and without."""
        return self._selected

    @selected.setter
    def selected(self, selected: bool) -> None:
        if selected != self._selected:
            self._selected = selected
            self._drawn.clear()
            self.refresh()

    def rows(self, width: int) -> Sequence[Line]:
        """The rows for a widget of `width` cells."""
        if self._rows is None or width != self._rows_width:
            self._rows_width = width
            self._rows = self.make_rows(max(width - MARGIN_LEFT - MARGIN_RIGHT, 1))
        return self._rows

    def is_measured(self, width: int) -> bool:
        """Whether its height at this width is known without work."""
        return self._rows is not None and width == self._rows_width

    def likely_height(self, width: int) -> int:
        """Its height where that is known, and else a guess."""
        if self._rows is not None and width == self._rows_width:
            return len(self._rows)
        if self._estimate is None or self._estimate[0] != width:
            rows = self.estimate(max(width - MARGIN_LEFT - MARGIN_RIGHT, 1))
            self._estimate = width, rows
        return self._estimate[1]

    def redraw(self) -> None:
        """The text changed: paint what is different, and lay out only when the height is."""
        old, self._rows, self._estimate = self._rows, None, None
        if old is None or not self.is_attached:
            return
        new = self.rows(self._rows_width)
        if len(new) != len(old):
            self.refresh(layout=True)
            return
        changed = [
            y for y, (row, before) in enumerate(zip(new, old, strict=True)) if row is not before
        ]
        if changed:
            first, last = changed[0], changed[-1]
            self.refresh(Region(0, first, self._rows_width, last - first + 1))

    # What Textual asks of a widget

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # Textual lays out once more for each new size, which is the one that it has just given.
        return super()._size_updated(size, virtual_size, container_size, layout=False)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as it can be."""
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As high as its rows."""
        return len(self.rows(width))

    def render_line(self, y: int) -> Strip:
        """One row, as Textual asks for it to tell what is under the mouse."""
        return self._strips(range(y, y + 1))[0]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Rows as they go to the terminal, past Textual's cache, which forgets all with each change."""
        strips = self._strips(crop.line_range)
        first, last = crop.column_span
        if (first, last) != (0, self.size.width):
            strips = [strip.crop(first, last) for strip in strips]
        return strips

    def _strips(self, numbers: range) -> list[Strip]:
        """The rows of these numbers; each is drawn once as long as it stays the same."""
        width, filters = self.size.width, self.get_line_filters()
        rows, drawn = self.rows(width), self._drawn
        if (width, filters) != self._drawn_for:
            self._drawn_for = width, filters
            drawn.clear()
        strips: list[Strip] = []
        for y in numbers:
            known = drawn.get(y)
            if known is None or y >= len(rows) or known.line is not rows[y]:
                row = rows[y] if 0 <= y < len(rows) else NOTHING
                known = drawn[y] = _Row(row, self._strip(row, y, width, filters))
            strips.append(known.strip)
        return strips

    def notify_style_update(self) -> None:
        """Colours have changed."""
        self._drawn.clear()
        super().notify_style_update()

    def selection_updated(self, selection: Selection | None) -> None:
        """The mouse marks other text."""
        self._drawn.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The marked text, with its paragraphs whole again."""
        rows = self.rows(self.size.width)
        start = selection.start or Offset(0, 0)
        end = selection.end or Offset(len(rows[-1].text) if rows else 0, len(rows) - 1)
        text = ""
        for y in range(start.y, min(end.y + 1, len(rows))):
            row = rows[y]
            first = start.x if y == start.y else 0
            last = end.x if y == end.y else len(row.text)
            piece = row.text.plain[first:last]
            if first == 0 and row.joint == "\n":
                piece = row.source[: len(row.lead) + last]
            text += (row.joint if y > start.y else "") + piece
        return text, "\n"

    def action_link(self, target: str) -> None:
        """Somebody clicked a link. The parser lets no target through that would run something."""
        self.app.open_url(target)

    def _strip(self, row: Line, y: int, width: int, filters: Sequence[LineFilter]) -> Strip:
        base = self.visual_style + self._style(self.FILL) + self._style(row.fill)
        edge_style = SELECTED_STYLE if self._selected else self.EDGE_STYLE
        edge = ("▶" if y == 0 else "┃") if self._selected else self.EDGE
        segments = [Segment(f"{edge} ", (base + self._style(edge_style)).rich_style)]
        if row.lead:
            segments.append(Segment(row.lead, (base + self._style(LEAD_STYLE)).rich_style))
        x = 0
        for text, style in self._marked(row.text, y).render(base, "", self._style):
            # The place in the text, for Textual to tell what the mouse marks.
            if text:
                segments.append(Segment(text, style.rich_style_with_offset(x, y)))
                x += len(text)
        if not x:
            segments.append(Segment(" ", base.rich_style_with_offset(0, y)))
        strip = Strip(segments).adjust_cell_length(width, base.rich_style)
        for line_filter in filters:
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return strip

    def _marked(self, text: Content, y: int) -> Content:
        """The text with what the mouse has marked of it."""
        selection = self.text_selection
        span = None if selection is None else selection.get_span(y)
        if span is None:
            return text
        start, end = span
        marked = Style.from_styles(self.screen.get_component_styles("screen--selection"))
        return text.stylize(marked, start, len(text) if end == -1 else end)

    def _style(self, style: Style | str) -> Style:
        # Textual's own lookup: a theme that lacks a variable costs a colour, not the app.
        return self._get_style(style) if style else Style.null()


class Turn(Drawn):
    """An entry of the conversation that keys can act on."""

    def __init__(self, *, message: int | None = None) -> None:
        super().__init__()
        self.message = message
        """Its id in the history; None while it has none."""
        self._branch: tuple[int, int] | None = None
        self._note = ""

    @property
    def copied(self) -> str:
        """What copying it gives."""
        raise NotImplementedError

    @property
    def branch(self) -> tuple[int, int] | None:
        """Which of how many at this place it is, counted from 1; None where it is the only one."""
        return self._branch

    @branch.setter
    def branch(self, branch: tuple[int, int] | None) -> None:
        self._branch = branch
        self.redraw()

    def toggle(self) -> None:
        """Show more of it or less, where it is folded."""
        raise NotImplementedError

    def footer(self) -> list[Line]:
        """The row below the text: which branch it is, and what is the matter with it."""
        words = [f"{self._branch[0]}/{self._branch[1]}"] if self._branch else []
        words += [self._note] if self._note else []
        return [muted("  ".join(words))] if words else []


def muted(text: str) -> Line:
    """A row about the text rather than of it."""
    return Line(Content.styled(text, f"italic {MUTED_STYLE}"))
