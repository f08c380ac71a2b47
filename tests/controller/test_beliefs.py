"""What the controller learns: costs that move, acceptance that differs by answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from edgespec.controller.acceptance import Acceptance, Frequency
from edgespec.controller.account import Purse, Trial
from edgespec.controller.beliefs import Beliefs
from edgespec.controller.timing import Timing
from edgespec.costs import Costs, CostTable, between

TABLE = CostTable(0, {1: 0.05, 2: 0.06, 4: 0.09, 8: 0.12, 16: 0.2}, {1: 0.01, 8: 0.02})


def test_a_table_is_read_on_straight_lines() -> None:
    assert between({1: 1.0, 4: 2.5}, 2) == pytest.approx(1.5)
    assert between({1: 1.0, 4: 2.5}, 6) == pytest.approx(3.5)
    assert between({2: 1.0}, 4) == pytest.approx(2.0)
    assert between({1: 2.0, 2: 1.0}, 9) == 1.0  # never below what was measured
    noisy = {1: 0.04, 8: 0.12, 16: 0.11}  # the last step went down by chance
    assert between(noisy, 64) == pytest.approx(0.11 + 48 * 0.07 / 15)
    with pytest.raises(ValueError, match="empty"):
        between({}, 1)


def test_costs_between_two_depths_lie_between() -> None:
    deep = CostTable(1000, {1: 0.06, 2: 0.05}, {1: 0.02})
    costs = Costs((CostTable(0, {1: 0.05, 2: 0.06}, {1: 0.01}), deep))
    middle = costs.at(500)
    assert middle.verify[1] == pytest.approx(0.055)
    assert middle.verify[2] == pytest.approx(0.06)  # the deep one was measured on a faster minute
    assert costs.at(2000).draft[1] == pytest.approx(0.03)


def test_a_machine_that_slows_down_is_followed_within_sixteen_rounds() -> None:
    timing = Timing(Costs((TABLE,)), 16)
    for _ in range(16):
        timing.saw_verify(4, 0.09 * 1.33)
        timing.saw_draft(1, 0.01 * 1.33)
    assert timing.verify(4) == pytest.approx(0.09 * 1.33, rel=0.03)
    assert timing.draft(1) == pytest.approx(0.01 * 1.33, rel=0.03)
    assert timing.verify(5) == pytest.approx(between(TABLE.verify, 5) * 1.33, rel=0.05)
    assert 1.1 < timing.token / 0.05 < 1.33  # not seen: believed in part


def test_one_interrupted_pass_moves_little() -> None:
    timing = Timing(Costs((TABLE,)), 16)
    timing.saw_verify(4, 9.0)
    assert timing.verify(4) < 0.09 * 1.1


def test_a_width_that_costs_more_than_it_did_does_not_make_the_others_dear_for_good() -> None:
    timing = Timing(Costs((TABLE,)), 16)
    for _ in range(40):
        timing.saw_verify(8, 0.24)
        timing.saw_verify(1, 0.05)
    assert timing.verify(8) > 0.2
    assert timing.token < 0.06


def test_acceptance_rises_with_the_sign_and_follows_what_was_tested() -> None:
    acceptance = Acceptance((0.5,), (0.3, 0.9))
    assert acceptance.bin(0.2) == 0
    assert acceptance.bin(0.5) == 1
    for _ in range(200):
        acceptance.saw(1, True)
        acceptance.saw(0, False)
    low, high = acceptance.rates()
    assert low < 0.05
    assert high > 0.95
    for _ in range(200):
        acceptance.saw(0, True)
    assert np.all(np.diff(acceptance.rates()) >= 0)


def test_an_answer_that_differs_outweighs_those_before_it() -> None:
    acceptance = Acceptance((0.5,), (0.3, 0.9))
    for _ in range(500):
        acceptance.saw(1, True)
    acceptance.begin()
    for _ in range(20):
        acceptance.saw(1, False)
    assert acceptance.rates()[1] < 0.8
    acceptance.begin()
    assert acceptance.rates()[1] > 0.9


def test_what_an_answer_shows_in_one_bin_moves_the_others() -> None:
    acceptance = Acceptance((0.5,), (0.3, 0.9))
    before = acceptance.rates()
    for _ in range(12):
        acceptance.saw(0, True)
    assert acceptance.rates()[1] > before[1]


def test_frequencies_are_shares() -> None:
    frequency = Frequency(((1, 1), (1, 1), (2, 2)))
    frequency.saw(0, 1)
    assert frequency.rates().sum(axis=1) == pytest.approx(np.ones(3))
    assert frequency.rates()[0, 1] > frequency.rates()[1, 1]


def test_positions_after_a_rejection_are_not_counted() -> None:
    beliefs = Beliefs()
    before = list(beliefs.confidences.rates())
    beliefs.saw_draft([5, 6, 7], [1, 2, 3], [1, 9])
    after = beliefs.confidences.rates()
    alone = Beliefs()
    alone.saw_draft([5, 6], [1, 2], [1, 9])
    assert after == alone.confidences.rates()
    assert after != before


def test_an_answer_risks_its_gains_and_an_allowance() -> None:
    purse = Purse()
    assert purse.stake == pytest.approx(1 + Purse.ALLOWANCE)
    purse.book(3)
    assert purse.stake == pytest.approx(4 + Purse.ALLOWANCE)
    purse.begin()
    assert purse.stake == pytest.approx(1 + Purse.ALLOWANCE)
    purse.book(-Purse.ALLOWANCE - 0.1)
    assert purse.overdrawn
    assert purse.stake == pytest.approx(1 + Purse.LEAST_STAKE)
    purse.unused(200)
    assert not purse.overdrawn
    assert purse.stake <= 1 + Purse.ALLOWANCE


def test_counts_go_through_a_file_and_rubbish_does_not() -> None:
    beliefs = Beliefs()
    beliefs.saw_confidence(0, 0.9)
    beliefs.saw_draft([5, 6], [1, 2], [1, 9])
    again = Beliefs()
    again.restore(json.loads(json.dumps(beliefs.counts())))
    assert again.counts() == beliefs.counts()
    for rubbish in (
        {},
        {"confidences": 3},
        {**beliefs.counts(), "matches": {"kept": [1], "tested": []}},
    ):
        with pytest.raises(ValueError, match=r"no |not a table"):
            again.restore(rubbish)


def test_a_drafter_that_fails_is_tried_ever_more_rarely() -> None:
    trial = Trial()
    trial.begin()
    waits = []
    for _ in range(6):
        tokens = 0
        while not trial.due:
            trial.unused(1)
            tokens += 1
        waits.append(tokens)
        trial.used(-0.4, overdrawn=False, on_trial=True)
    assert waits == [0, 8, 16, 32, 64, 128]
    trial.used(1.0, overdrawn=False, on_trial=True)
    assert trial.due


def test_answers_without_success_are_followed_by_answers_without_trials() -> None:
    trial = Trial()
    tried = []
    for _ in range(12):
        trial.begin()
        tried.append(trial.due)
        trial.used(-0.4, overdrawn=False, on_trial=True)
    assert tried == [True, False, True, False, False, True, *[False] * 4, True, False]
