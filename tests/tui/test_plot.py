"""Plots of characters: what is drawn where, and that it always fits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tui.plot import ASCII, BLOCKS, Curve, Glyphs, bars, curves, glyphs_for

STEPS = [1.0 + 0.1 * n + (n // 8) for n in range(32)]


def test_bars_end_where_the_axis_says() -> None:
    assert bars([1.0, 2.0, 4.0], 10, 6, ASCII) == [
        "4|    ##",
        " |    ##",
        "2|  ####",
        " |######",
        "0+------",
        "   1 2 3",
    ]


def test_parts_of_a_cell() -> None:
    drawn = bars([8.0, 4.0, 1.0, 0.2], 6, 3, BLOCKS)
    assert drawn[0] == " │█▄▁"
    assert bars([1.5, 4.0], 4, 6, ASCII)[2:4] == ["2|.#", " |##"]


def test_curves_and_what_they_are_compared_with() -> None:
    assert curves([Curve("c", [2.0, 4.0, 3.0], 1)], 2.0, 10, 6, ASCII) == [
        "4|   C c",
        "2|.c....",
        " |",
        "0|",
        " +------",
        "   0 1 2",
    ]


def test_where_curves_meet_the_best_places_are_seen() -> None:
    same = [Curve("a", [1.0, 2.0, 1.0], 1), Curve("b", [1.0, 2.0, 3.0], 2)]
    drawn = "\n".join(curves(same, 1.0, 12, 8, ASCII))
    assert drawn.count("a") == 2
    assert "A" in drawn
    assert "B" in drawn
    assert "b" not in drawn


@pytest.mark.parametrize("glyphs", [ASCII, BLOCKS])
@pytest.mark.parametrize("size", [(80, 24), (37, 9), (20, 5), (9, 3), (2, 2)])
def test_it_fits(glyphs: Glyphs, size: tuple[int, int]) -> None:
    width, height = size
    drawn = curves([Curve("a", STEPS, 31), Curve("b", STEPS[:20], 0)], 1.0, width, height, glyphs)
    for lines in (bars(STEPS, width, height, glyphs), drawn):
        assert len(lines) == max(height, 3)
        if width >= 9:
            assert max(map(len, lines)) <= width
    if glyphs is ASCII:
        assert "".join(bars(STEPS, width, height, glyphs) + drawn).isascii()


@pytest.mark.parametrize("scale", [1e-3, 0.7, 1.0, 37.0, 12345.0])
def test_the_axis_has_round_numbers_up_to_the_top(scale: float) -> None:
    lines = bars([scale * one for one in STEPS], 60, 12, BLOCKS)
    labels = [line[: line.index("│")].strip() for line in lines[:10]]
    values = [float(label) for label in labels if label]
    assert len(values) >= 2
    assert values == sorted(values, reverse=True)
    steps = {round((a - b) / scale, 6) for a, b in pairwise(values)}
    assert len(steps) == 1
    assert values[0] <= scale * max(STEPS) < values[0] + steps.pop() * scale * 1.001


def test_places_are_numbered() -> None:
    assert bars(STEPS, 37, 9, BLOCKS)[-1].split() == ["1", "8", "16", "24", "32"]
    place = bars(STEPS, 37, 9, BLOCKS)[-1].index("24")
    assert bars(STEPS, 37, 9, BLOCKS)[0].index("│") + 24 == place


@pytest.mark.parametrize(
    ("environment", "encoding", "glyphs"),
    [
        ({"TERM": "xterm"}, "utf-8", BLOCKS),
        ({}, "UTF-8", BLOCKS),
        ({"TERM": "linux"}, "utf-8", ASCII),
        ({"TERM": "xterm"}, "latin-1", ASCII),
        ({"TERM": "xterm"}, None, ASCII),
    ],
)
def test_what_a_terminal_can_show(
    environment: dict[str, str], encoding: str | None, glyphs: Glyphs
) -> None:
    assert glyphs_for(environment, encoding) is glyphs


def test_nothing_to_draw_is_no_error() -> None:
    assert len(bars([], 20, 5, ASCII)) == 5
    assert len(curves([], 1.0, 20, 5, ASCII)) == 5
