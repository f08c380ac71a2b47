from __future__ import annotations

import pytest

from tui.widgets.gauges import (
    CUT,
    HEIGHTS,
    LENGTHS,
    LINE,
    Heading,
    aside,
    bar,
    chart,
    fitting,
    grouped,
    height,
    listing,
    paragraph,
    plain_ascii,
    shaded,
)


def test_a_chart_stands_on_its_ground() -> None:
    rows, line = chart([0, 1, 2, 4, None, 8], 2, 8, None)
    assert rows == ["     █", " ▂▄█ █"]
    assert line is None


def test_the_smallest_value_can_be_seen_and_none_is_higher_than_the_top() -> None:
    rows, _ = chart([0.001, 99], 2, 10, None)
    assert rows == [" █", "▁█"]


@pytest.mark.parametrize(("line", "row"), [(0.1, 3), (2.4, 3), (2.6, 2), (9.9, 0), (10, 0)])
def test_the_line_is_at_its_height_behind_the_bars(line: float, row: int) -> None:
    rows, found = chart([10, None, 0], 4, 10, line)
    assert found == row
    assert [text[0] for text in rows] == ["█"] * 4
    assert [text[1:] == LINE * 2 for text in rows] == [at == row for at in range(4)]


def test_a_chart_of_nothing_is_empty() -> None:
    assert chart([None, None], 1, 0, None) == (["  "], None)
    assert chart([0], 1, 0, 3) == ([" "], None)
    assert chart([], 2, 0, None) == (["", ""], None)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, ""), (1e-9, "▏"), (0.5, "██"), (0.53, "██▏"), (1, "████"), (7, "████"), (-1, "")],
)
def test_a_bar_is_as_long_as_its_share(share: float, text: str) -> None:
    assert bar(share, 4) == text
    assert bar(share, 0) == ""


@pytest.mark.parametrize(
    ("share", "text"), [(0, " "), (1e-9, "▁"), (0.5, "▄"), (1, "█"), (3, "█"), (-1, " ")]
)
def test_a_height_is_one_character(share: float, text: str) -> None:
    assert height(share) == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("a", 0.25), ("b", 0.25), ("c", 0.5)], "aabbcccc"),
        ([("a", 0.0), ("b", 1.0)], "bbbbbbbb"),
        ([("a", 0.9), ("b", 0.9), ("c", 0.1)], "aaaaaaab"),
        ([("a", 0.5), ("b", -3.0), ("c", 0.1)], "aaaacccc"),
        ([("a", 0.06)] * 8 + [("b", 0.0)], "aaaabbbb"),
    ],
)
def test_shades_fill_the_bar_exactly(parts: list[tuple[str, float]], text: str) -> None:
    assert shaded(parts, 8) == text
    assert shaded(parts, 0) == ""


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (20, "speed 42.5 tok/s"),
        (16, "speed 42.5 tok/s"),
        (15, "speed 42.5"),
        (10, "speed 42.5"),
        (9, "speed…"),
        (6, "speed…"),
        (5, "…"),
        (1, "…"),
        (0, ""),
    ],
)
def test_what_is_cut_is_never_a_number(width: int, text: str) -> None:
    assert fitting(width, "speed 42.5 tok/s", "speed 42.5") == text


def test_a_cut_at_the_end_of_a_word_keeps_the_word() -> None:
    assert fitting(6, "12345 678") == f"12345{CUT}"
    assert fitting(7, "12345, 678") == f"12345{CUT}"


def test_an_aside_is_at_the_end_or_not_at_all() -> None:
    assert aside("ab", "cd", 6) == "ab  cd"
    assert aside("ab", "cd", 5) == "ab cd"
    assert aside("ab", "cd", 4) == "ab"


def test_a_paragraph_says_where_it_is_cut() -> None:
    assert paragraph("one two  three\nfour", 8, 3) == ["one two", "three", "four"]
    assert paragraph("one two three four", 8, 2) == ["one two", "three…"]
    assert paragraph("one", 8, 0) == paragraph("one", 0, 3) == []


def test_items_of_a_list_are_not_broken() -> None:
    assert listing(["aa", "bb", "cc"], 6) == ["aa  bb", "cc"]
    assert listing(["aaaaaaa", "b"], 6) == ["b"]


@pytest.mark.parametrize(
    ("groups", "rows"),
    [
        (9, [("0", 1), ("1", 2), ("2", 3), ("3", 4), ("4", 5), ("5", 6)]),
        (6, [("0", 1), ("1", 2), ("2", 3), ("3", 4), ("4", 5), ("5", 6)]),
        (5, [("0", 1), ("1-2", 5), ("3-4", 9), ("5", 6)]),
        (3, [("0", 1), ("1-3", 9), ("4-5", 11)]),
        (2, [("0", 1), ("1-5", 20)]),
        (1, [("0-5", 21)]),
        (0, [("0-5", 21)]),
    ],
)
def test_a_histogram_in_fewer_groups_counts_all(groups: int, rows: list[tuple[str, int]]) -> None:
    assert grouped([1, 2, 3, 4, 5, 6], groups) == rows


def test_a_short_histogram_needs_no_groups() -> None:
    assert grouped([7], 0) == [("0", 7)]
    assert grouped([], 3) == []


def test_every_character_has_an_ascii_stand_in_of_its_width() -> None:
    text = HEIGHTS + LENGTHS + "╌│┤┼—…·█▓▒░ abc"
    assert plain_ascii(text).isascii()
    assert len(plain_ascii(text)) == len(text)
    assert len(set(plain_ascii(HEIGHTS))) == len(HEIGHTS)
    assert len(set(plain_ascii("█▓▒░"))) == 4


def test_a_heading_is_a_line() -> None:
    assert Heading("x") == "x"
