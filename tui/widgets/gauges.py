"""Numbers drawn with characters. Pure; every character is one cell wide.

What is drawn can be read without colour, and `plain_ascii` has a stand-in for each character.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

HEIGHTS = " ▁▂▃▄▅▆▇█"
LENGTHS = " ▏▎▍▌▋▊▉█"
LINE = "╌"
AXIS = "│"
AXIS_MARK = "┤"
AXIS_LINE = "┼"
UNKNOWN = "—"
CUT = "…"
NOT_DRAFTED = "·"
OURS, DRAFTS, OTHERS, FREE = "█▓▒░"
"""Shades of a memory bar: what the target takes, the draft, anything else, nothing."""

_ASCII = str.maketrans(
    HEIGHTS[1:-1] + LENGTHS[1:-1] + LINE + AXIS + AXIS_MARK + AXIS_LINE + UNKNOWN + CUT + "·█▓▒░",
    ".:;=+*%" + "---====" + "-" + "|" + "+" + "+" + "-" + "~" + ".#=:.",
)


class Heading(str):
    """A line that begins a part; it is drawn bold."""

    __slots__ = ()


def plain_ascii(text: str) -> str:
    """`text` for a terminal that has no other characters, as wide as before."""
    return text.translate(_ASCII)


def fitting(width: int, *forms: str) -> str:
    """The first of `forms` that fits; else the last one, cut where a word ends, never in a number."""
    for form in forms:
        if len(form) <= width:
            return form
    text = forms[-1][: max(width - 1, 0)]
    # A word that ends right at the edge is whole.
    if not forms[-1][len(text) : len(text) + 1].isspace():
        text = text.rpartition(" ")[0]
    return (text.rstrip(" ,") + CUT)[: max(width, 0)]


def aside(left: str, right: str, width: int) -> str:
    """Both in one line, `right` at its end; `left` alone where there is no room for both."""
    gap = width - len(left) - len(right)
    return left + " " * gap + right if gap >= 1 else fitting(width, left)


def paragraph(text: str, width: int, most: int) -> list[str]:
    """`text` in at most `most` lines, with a sign where more of it is left."""
    if most < 1 or width < 1:
        return []
    return textwrap.wrap(text, width, max_lines=most, placeholder=CUT)


def listing(items: Iterable[str], width: int) -> list[str]:
    """`items` in lines, none broken; one that is too wide by itself is left out."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += f"  {item}"
        elif len(item) <= width:
            lines.append(item)
    return lines


def bar(share: float, width: int) -> str:
    """A horizontal bar, as wide as `share` of `width`; what is more than nothing can be seen."""
    steps = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0:
        steps = max(steps, 1)
    whole, part = divmod(steps, 8)
    return (LENGTHS[8] * whole + LENGTHS[part].strip())[: max(width, 0)]


def shaded(parts: Sequence[tuple[str, float]], width: int) -> str:
    """A bar of several kinds: characters, each with its share of the whole; exactly `width` wide."""
    text, end = "", 0.0
    for character, share in parts:
        end = min(end + max(share, 0.0), 1.0)
        text += character * (round(end * width) - len(text))
    return text + parts[-1][0] * (width - len(text))


def height(share: float) -> str:
    """One character for a share of one."""
    steps = round(min(max(share, 0.0), 1.0) * 8)
    return HEIGHTS[max(steps, 1) if share > 0 else 0]


def chart(
    values: Sequence[float | None], rows: int, top: float, line: float | None
) -> tuple[list[str], int | None]:
    """Vertical bars up to `top`, with a level line behind them; rows from above, and that of the line.

    None is a gap. Where a bar rises over the line it hides it: to be seen means to be above.
    """
    line_row = None if line is None or top <= 0 else min(int(line / top * rows), rows - 1)
    steps = [0 if value is None or top <= 0 else _steps(value / top, rows) for value in values]
    drawn = []
    for row in reversed(range(rows)):
        empty = LINE if row == line_row else " "
        cells = (min(max(step - 8 * row, 0), 8) for step in steps)
        drawn.append("".join(HEIGHTS[cell] if cell else empty for cell in cells))
    return drawn, None if line_row is None else rows - 1 - line_row


def _steps(share: float, rows: int) -> int:
    return max(round(share * rows * 8), 1) if share > 0 else 0


def grouped(counts: Sequence[int], groups: int) -> list[tuple[str, int]]:
    """A histogram in at most `groups` groups with their names: 0 by itself, the others evenly."""
    if len(counts) <= max(groups, 1):
        return [(str(value), count) for value, count in enumerate(counts)]
    if groups < 2:
        return [(f"0-{len(counts) - 1}", sum(counts))]
    size = -(-(len(counts) - 1) // (groups - 1))
    found = [("0", counts[0])]
    for first in range(1, len(counts), size):
        last = min(first + size, len(counts)) - 1
        name = str(first) if first == last else f"{first}-{last}"
        found.append((name, sum(counts[first : last + 1])))
    return found
