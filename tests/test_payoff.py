"""Predictions are those of the formula, and recommendations follow from them."""

from __future__ import annotations

import pytest

from edgespec.costs import CostTable
from edgespec.payoff import best, expected_tokens, pays_from, recommend, speedup

BF16 = CostTable(
    64, {1: 0.052, 2: 0.065, 3: 0.078, 4: 0.087, 8: 0.12, 12: 0.144, 16: 0.167}, {1: 0.009}
)
Q4_K_M = CostTable(64, {1: 0.025, 2: 0.0475, 3: 0.0575, 4: 0.07, 8: 0.1225, 16: 0.145}, {1: 0.0083})
FREE = CostTable(64, {1: 0.05, 2: 0.06, 4: 0.07, 16: 0.2})


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_expected_tokens_are_the_closed_form(acceptance: float, length: int) -> None:
    closed = (1 - acceptance ** (length + 1)) / (1 - acceptance)
    assert expected_tokens(acceptance, length) == pytest.approx(closed)


def test_a_sure_draft_gives_one_more_than_its_length() -> None:
    assert expected_tokens(1.0, 4) == 5


def test_speedup_is_tokens_over_time() -> None:
    assert speedup(BF16, 0.5, 0) == 1
    assert speedup(BF16, 0.5, 1) == pytest.approx(1.5 * 0.052 / (0.065 + 0.009))
    between = (0.087 + 0.12) / 2
    assert speedup(BF16, 1.0, 5) == pytest.approx(6 * 0.052 / (between + 5 * 0.009))
    assert speedup(FREE, 1.0, 1) == pytest.approx(2 * 0.05 / 0.06)


def test_the_best_length_grows_with_acceptance() -> None:
    lengths = [best(BF16, a / 100).length for a in (0, 50, 70, 90, 99)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 0
    assert lengths[-1] == 15
    for acceptance in (0.5, 0.9):
        gain = best(BF16, acceptance)
        assert gain.speedup == max(speedup(BF16, acceptance, n) for n in range(16))


def test_no_draft_is_longer_than_the_widest_pass() -> None:
    assert best(FREE, 1.0).length == 15


def test_where_drafting_begins_to_pay() -> None:
    for table in (BF16, Q4_K_M):
        start = pays_from(table)
        assert start is not None
        assert best(table, start).speedup >= 1.03 > best(table, start - 0.01).speedup
    assert (pays_from(BF16) or 1) < 0.5 < (pays_from(Q4_K_M) or 0)
    dear = CostTable(0, {1: 1.0, 2: 2.0, 16: 16.0}, {1: 0.5})
    assert pays_from(dear) is None


def test_a_good_draft_is_recommended() -> None:
    found = recommend(BF16, {"code": 0.9, "prose": 0.6})
    assert found.method == "auto"
    assert "mostly off" not in found.why
    assert "90% in code" in found.why
    assert f"{found.pays_from:.0%}" in found.why
    assert found.gains[90] == best(BF16, 0.9)
    assert set(found.gains) == {50, 60, 70, 80, 90, 95}


def test_one_that_seldom_pays_is_mostly_off() -> None:
    found = recommend(Q4_K_M, {"code": 0.6, "edits": 0.97})
    assert found.method == "auto"
    assert "mostly off: it pays for edits" in found.why
    assert "costs 0.33 of a target token" in found.why


@pytest.mark.parametrize("table", [BF16, Q4_K_M])
def test_a_bad_draft_is_not(table: CostTable) -> None:
    found = recommend(table, {"code": 0.01, "prose": 0.0})
    assert found.method == "none"
    assert "leave this draft away" in found.why


def test_nor_is_one_that_never_can_pay() -> None:
    found = recommend(CostTable(0, {1: 1.0, 2: 2.0, 16: 16.0}, {1: 0.5}), {"code": 1.0})
    assert (found.method, found.pays_from) == ("none", None)


def test_without_a_draft_or_without_knowledge() -> None:
    assert "guesses are free" in recommend(FREE, {}).why
    found = recommend(BF16, {})
    assert found.method == "auto"
    assert "drafts where it pays" in found.why


def test_nothing_is_concluded_from_single_rows() -> None:
    found = recommend(CostTable(0, {1: 1.0}, {1: 0.1}), {})
    assert found.method == "auto"
    assert "not measured" in found.why


def test_the_cost_of_a_check_is_told_too() -> None:
    found = recommend(CostTable(0, {1: 1.0, 4: 4.0}, {1: 0.04}), {"code": 1.0})
    assert "costs 0.04 of a target token, and checking three 4.00: drafting cannot" in found.why
