"""Pictures of the screen as text, kept in `pictures/`: what a change does to a screen is a diff.

A picture has the characters of every row, then, for rows that have any, which cells are bold,
reversed and so on: what is left of the styles where there are no colours. Colours are looked at by
`faint_text`. With UPDATE_SNAPSHOTS=1 in the environment pictures are written instead of compared.

A test that takes a picture must show the same on every machine and day: no clock, version or path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App
from textual.color import Color
from textual.pilot import Pilot
from textual.strip import Strip

FOLDER = Path(__file__).parent / "pictures"
SWITCH = "UPDATE_SNAPSHOTS"
MARKS = ("bold", "dim", "italic", "underline", "reverse", "strike")
CONTRAST = 3.0
"""Least ratio of luminances at which text counts as readable (WCAG asks 4.5 of small print on paper
white, and 3 of large letters and of graphics)."""


async def assert_picture(pilot: Pilot[Any], name: str) -> None:
    """Compare the screen with `pictures/NAME-WIDTHxHEIGHT.txt`, once all is drawn."""
    app = pilot.app
    await pilot.pause()
    compare(picture(app), FOLDER / f"{name}-{app.size.width}x{app.size.height}.txt")


def compare(text: str, file: Path) -> None:
    """Fail with the difference, unless the environment asks to write what there is."""
    if os.environ.get(SWITCH):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        return
    assert file.is_file(), f"there is no {file.name} yet: {SWITCH}=1 writes it"
    before = file.read_text(encoding="utf-8")
    if text != before:
        lines = unified_diff(before.splitlines(), text.splitlines(), file.name, "now", lineterm="")
        raise AssertionError(f"the screen has changed ({SWITCH}=1 keeps it):\n" + "\n".join(lines))


def picture(app: App[Any]) -> str:
    """Characters, then what marks them beside colour."""
    return f"{screen_text(app)}\n{'=' * app.size.width}\n{screen_styles(app)}\n"


def screen_text(app: App[Any]) -> str:
    """The characters on the screen, one line a row."""
    return "\n".join(strip.text.rstrip() for strip in _strips(app))


def screen_styles(app: App[Any]) -> str:
    """Rows with marked cells: `ROW  FIRST-LAST MARKS, ...`."""
    rows = []
    for y, strip in enumerate(_strips(app)):
        runs = [f"{start}-{end - 1} {marks}" for start, end, marks in _runs(strip) if marks]
        if runs:
            rows.append(f"{y:3}  {', '.join(runs)}")
    return "\n".join(rows)


def faint_text(app: App[Any], least: float = CONTRAST) -> list[str]:
    """What on the screen has too little contrast to be read, with its ratio."""
    found = []
    for strip in _strips(app):
        for text, style, _ in _segments(strip):
            if text.strip() and style.color and style.bgcolor:
                ink, paper = map(Color.from_rich_color, (style.color, style.bgcolor))
                ratio = contrast(ink, paper)
                if ratio < least:
                    found.append(f"{text.strip()} ({ratio:.1f})")
    return found


def contrast(one: Color, other: Color) -> float:
    """Ratio of two luminances, 1 to 21 (WCAG 2)."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.normalized
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _strips(app: App[Any]) -> list[Strip]:
    # What shines through a translucent screen is drawn from this stack.
    token = visible_screen_stack.set(app._background_screens)
    try:
        return app.screen._compositor.render_strips()
    finally:
        visible_screen_stack.reset(token)


def _segments(strip: Strip) -> Iterator[tuple[str, Style, int]]:
    """Text, style and width of each piece."""
    for segment in strip:
        if not segment.control:
            yield segment.text, segment.style or Style.null(), segment.cell_length


def _runs(strip: Strip) -> Iterator[tuple[int, int, str]]:
    """First cell, cell after the last, and marks of stretches that look alike."""
    start = end = 0
    marks = ""
    for _, style, width in _segments(strip):
        these = "+".join(mark for mark in MARKS if getattr(style, mark))
        if these != marks:
            yield start, end, marks
            start, marks = end, these
        end += width
    yield start, end, marks
