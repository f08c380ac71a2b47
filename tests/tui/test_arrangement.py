from __future__ import annotations

from textual.widget import Widget

from tui.widgets.arrangement import Places

TURNS = [Widget() for _ in range(5)]


def places(*heights: int) -> Places:
    by_turn = dict(zip(TURNS, heights, strict=False))
    return Places.of(TURNS[: len(heights)], by_turn.__getitem__)


def test_turns_are_one_below_the_other_with_a_gap() -> None:
    found = places(3, 1, 10)
    assert [found.span(turn) for turn in TURNS[:4]] == [(0, 3), (4, 5), (6, 16), None]
    assert found.height == 17


def test_nothing_has_no_height() -> None:
    found = places()
    assert found.height == 0
    assert list(found.between(0, 10)) == []
    assert found.hold(0) is None


def test_what_is_between_two_rows() -> None:
    found = places(3, 1, 10)
    for first, last, expected in (
        (0, 1, [0]), (0, 4, [0]), (0, 5, [0, 1]), (3, 4, [0]), (4, 6, [1]), (5, 7, [1, 2]),
        (-20, 100, [0, 1, 2]), (16, 17, [2]), (17, 30, []), (-9, 0, []), (-9, 1, [0]),
    ):  # fmt: skip
        assert list(found.between(first, last)) == [TURNS[number] for number in expected]


def test_a_held_row_moves_with_its_turn() -> None:
    held = places(3, 1, 10).hold(9)
    assert held is not None
    assert places(8, 1, 10).find(held, stretched=False) == 14
    assert places(8, 1, 30).find(held, stretched=False) == 14
    assert places(8, 1, 2).find(held, stretched=False) == 13
    assert places(3, 1).find(held, stretched=False) is None


def test_a_held_row_keeps_its_part_of_a_turn_that_another_width_stretches() -> None:
    held = places(3, 1, 10).hold(11)
    assert held is not None
    assert places(3, 1, 20).find(held, stretched=True) == 6 + 5 * 21 // 11


def test_the_first_row_of_a_turn_stays_the_first() -> None:
    held = places(3, 1, 10).hold(6)
    assert held is not None
    assert places(9, 2, 25).find(held, stretched=True) == 13
