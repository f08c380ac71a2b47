"""What passes cost now: other programs make them longer, never shorter."""

from __future__ import annotations

import pytest

from edgespec.controller.timing import Timing
from edgespec.costs import Costs, CostTable

COSTS = Costs((CostTable(0, {1: 1.0, 4: 2.0, 16: 4.0}, {1: 0.2}),))


def test_a_single_pass_that_was_interrupted_moves_little() -> None:
    timing = Timing(COSTS, 16)
    timing.saw_verify(1, 5.0)
    assert 1.0 < timing.token < 1.1


def test_a_pass_that_was_much_quicker_is_believed_at_once() -> None:
    timing = Timing(COSTS, 16)
    for _ in range(6):
        timing.saw_verify(1, 2.4)
    assert timing.token > 2
    timing.saw_verify(1, 1.0)
    assert timing.token < 1.25
    timing.saw_draft(1, 0.05)
    assert timing.draft(1) < 0.08


def test_two_passes_that_agree_are_no_accident() -> None:
    timing = Timing(COSTS, 16)
    timing.saw_verify(4, 3.0)
    timing.saw_verify(4, 3.0)
    assert timing.verify(4) == pytest.approx(2.5, rel=0.1)


def test_other_widths_follow_unless_they_were_just_seen() -> None:
    unseen, seen = Timing(COSTS, 16), Timing(COSTS, 16)
    seen.saw_verify(1, 1.0)
    for timing in (unseen, seen):
        for _ in range(3):
            timing.saw_verify(16, 8.0)
    assert unseen.verify(16) == pytest.approx(seen.verify(16))
    assert unseen.token > 1.2
    assert 1 < seen.token < 1 + 0.7 * (unseen.token - 1)
