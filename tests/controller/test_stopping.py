"""The stopping rule against the same question answered by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.controller.stopping import StoppingRule

ACCEPTANCE = np.array([0.2, 0.6, 0.9, 0.98])
KINDS = (1, 1, 2, 2)
FREQUENCY = np.array([[0.2, 0.2, 0.3, 0.3], [0.5, 0.3, 0.1, 0.1], [0.05, 0.1, 0.25, 0.6]])
LEVEL = [0.0, *(1.0 + 0.02 * n for n in range(32))]
LINEAR = [0.0, *(0.05 + 0.95 * n for n in range(1, 33))]
STEPPED = [0.0, 1.0, 2.1, 2.5, 2.0, 3.4, 3.5, 3.6, 3.7, *(4.0 for _ in range(24))]
"""A group of four rows costs less than three: repacked kernels."""


def brute(
    verify: list[float],
    step: float,
    rate: float,
    drafted: int,
    survival: float,
    kind: int,
    left: int,
) -> float:
    """The worth of going on after `drafted` tokens, by trying everything."""
    stop = -rate * verify[drafted + 1]
    if left == 0:
        return stop
    total = -rate * step
    for bin_, chance in enumerate(FREQUENCY[kind]):
        survives = survival * float(ACCEPTANCE[bin_])
        keep = survives + brute(verify, step, rate, drafted + 1, survives, KINDS[bin_], left - 1)
        total += float(chance) * max(keep, stop)
    return max(total, stop)


@pytest.mark.parametrize("verify", [LEVEL, LINEAR, STEPPED])
@pytest.mark.parametrize("step", [0.02, 0.13, 0.35])
@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_it_is_worth_what_brute_force_says(verify: list[float], step: float, rate: float) -> None:
    rule = StoppingRule(verify, step, rate, ACCEPTANCE, FREQUENCY, KINDS, 5)
    worth = brute(verify, step, rate, 0, 1.0, 0, 5)
    assert max(rule.value(), rule.plain()) == pytest.approx(1 + worth, abs=0.05)


def test_it_looks_across_a_kernel_step() -> None:
    """Two and three rows are dear, four are cheap: one token would not pay, three do."""
    rule = StoppingRule(STEPPED, 0.05, 1.0, ACCEPTANCE, FREQUENCY, KINDS, 3)
    assert rule.keep(0, 1.0, 3)
    assert not StoppingRule(STEPPED, 0.05, 1.0, ACCEPTANCE, FREQUENCY, KINDS, 1).keep(0, 1.0, 3)


def test_a_doubtful_token_ends_the_draft_where_rows_are_dear() -> None:
    dear = StoppingRule(LINEAR, 0.1, 1.0, ACCEPTANCE, FREQUENCY, KINDS, 8)
    cheap = StoppingRule(LEVEL, 0.1, 1.0, ACCEPTANCE, FREQUENCY, KINDS, 8)
    assert cheap.keep(0, 1.0, 1)
    assert not dear.keep(0, 1.0, 1)
    assert dear.value() < dear.plain()
    assert cheap.value() > cheap.plain()


def test_it_stops_when_all_is_likely_lost() -> None:
    rule = StoppingRule(LEVEL, 0.1, 1.0, ACCEPTANCE, FREQUENCY, KINDS, 8)
    assert rule.gain(2, 1.0, 2) > 0
    assert rule.gain(2, 0.02, 2) < 0
    assert rule.gain(8, 1.0, 2) == 0
