from __future__ import annotations

import pytest

from tui.widgets.pace import LEAST_SECONDS, MOST_SECONDS, SHARE, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def paced(cost: float, *, waited: float = 0.0) -> tuple[Pace, Clock]:
    """After one drawing that took the processor for `cost` seconds, and the clock longer."""
    clock, processor = Clock(), Clock()
    pace = Pace(clock, processor)
    assert pace.wait == 0
    pace.begin()
    processor.now += cost
    clock.now += cost + waited
    pace.end()
    return pace, clock


def test_cheap_drawing_is_as_frequent_as_eyes_can_see() -> None:
    pace, clock = paced(0.001)
    assert pace.wait == pytest.approx(LEAST_SECONDS - 0.001)
    clock.now += LEAST_SECONDS
    assert pace.wait == 0


def test_dear_drawing_takes_no_more_than_its_share() -> None:
    pace, _ = paced(0.03)
    assert pace.wait == pytest.approx(0.03 / SHARE - 0.03)


def test_only_the_processor_counts() -> None:
    pace, _ = paced(0.001, waited=0.05)
    assert pace.wait == pytest.approx(LEAST_SECONDS - 0.051)


def test_the_text_never_stands_still_for_long() -> None:
    pace, _ = paced(5.0)
    assert pace.wait == pytest.approx(0.0)
    pace, _ = paced(0.5)
    assert pace.wait == pytest.approx(MOST_SECONDS - 0.5)
