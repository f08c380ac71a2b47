"""A table as rows of text, in columns that fit the width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from textual.content import Content

from tui.markdown.leaves import CELL, ROW
from tui.markdown.lines import LEAD_STYLE, NARROWEST, wrap

BETWEEN = " │ "
CROSSING = "─┼─"


def table_rows(
    source: str, sides: str, content: Callable[[str], Content], width: int
) -> Iterator[Content]:
    """The rows of the table; cells that are too long for their column go on in the next row."""
    cells = [[content(cell) for cell in row.split(CELL)] for row in source.split(ROW)]
    wishes = [max(cell.cell_length for cell in column) for column in _columns(cells)]
    widths = fit(wishes, width - len(BETWEEN) * (len(wishes) - 1))
    for number, row in enumerate(cells):
        if number == 1:
            yield Content.styled(CROSSING.join("─" * size for size in widths), LEAD_STYLE)
        yield from _row(row, widths, sides, "bold" if number == 0 else "")


def _columns(cells: Sequence[Sequence[Content]]) -> list[list[Content]]:
    count = len(cells[0])
    return [[row[number] for row in cells if number < len(row)] for number in range(count)]


def fit(wishes: Sequence[int], width: int) -> list[int]:
    """A width for each column: narrow columns get what they wish, the others an equal share."""
    sizes = [0] * len(wishes)
    left = width
    order = sorted(range(len(wishes)), key=wishes.__getitem__)
    for done, column in enumerate(order):
        share = max(left // (len(order) - done), NARROWEST)
        sizes[column] = max(min(wishes[column], share), 1)
        left -= sizes[column]
    return sizes


def _row(
    cells: Sequence[Content], widths: Sequence[int], sides: str, style: str
) -> Iterator[Content]:
    columns = [
        [piece for _, piece in wrap(cell, size)] for cell, size in zip(cells, widths, strict=False)
    ]
    for number in range(max(len(column) for column in columns)):
        parts: list[Content] = []
        for column, size, side in zip(columns, widths, sides, strict=False):
            piece = column[number] if number < len(column) else Content("")
            parts.append(_aligned(piece, size, side))
        yield Content(BETWEEN).join(parts).rstrip().stylize_before(style)


def _aligned(piece: Content, size: int, side: str) -> Content:
    free = max(size - piece.cell_length, 0)
    left = {"l": 0, "c": free // 2, "r": free}[side]
    return piece.pad(left, free - left)
