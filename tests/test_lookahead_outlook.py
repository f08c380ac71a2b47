"""Whether lookahead pays follows from the cost of rows, by the formula of its authors."""

from __future__ import annotations

from functools import partial

import pytest

from edgespec.costs import between
from edgespec.drafters.lookahead import rows_of
from edgespec.lookahead import Outlook, expected_tokens, outlook, parameters

FLAT = {1: 0.02, 32: 0.021, 128: 0.024}
"""A GPU that waits for its memory."""
BF16 = {1: 0.052, 2: 0.065, 3: 0.078, 4: 0.087, 8: 0.12, 12: 0.144, 16: 0.167}
Q4_K_M = {1: 0.025, 2: 0.0475, 3: 0.0575, 4: 0.07, 8: 0.1225, 16: 0.145}
"""Two slow cores."""


def promised(table: dict[int, float], most_rows: int) -> Outlook:
    found = outlook(partial(between, table), most_rows)
    assert found is not None
    return found


def test_the_rows_are_those_of_the_figure_in_llama_cpp() -> None:
    assert rows_of(5, 4, 2) == 1 + (5 - 1) + 5 * (4 - 2) + 2 * (4 - 1) == 21
    assert rows_of(15, 5, 15) == 1 + 14 + 15 * 3 + 15 * 4


def test_one_guess_is_the_closed_form() -> None:
    """With b = 1 the sum is (1 - a^(g+1)) / (1 - a) for one pass in f, and 1 for the others."""
    closed = (1 - 0.425**4) / (1 - 0.425)
    assert expected_tokens(4, 1) == pytest.approx((2.106 + closed) / 3.106)


def test_tokens_grow_slower_than_rows_and_never_beyond_a_guess() -> None:
    gains = [expected_tokens(5, 2 * width) - expected_tokens(5, width) for width in (1, 2, 4, 8)]
    assert all(0.1 < gain < 0.35 for gain in gains), "each doubling brings about as much"
    for ngram in (3, 5, 8):
        assert expected_tokens(ngram, 10_000) < (2.106 + ngram) / 3.106 + 1e-9


def test_where_rows_are_dear_it_is_off_with_the_figures() -> None:
    for table, cost in ((BF16, "1.67"), (Q4_K_M, "2.80")):
        assert parameters(partial(between, table), 32) is None
        why = promised(table, 32).why
        assert why == (
            f"Off: a pass over 4 rows takes {cost} times as long as one over a single row here, "
            "and lookahead gives about 1.19 tokens for it."
        )


def test_where_rows_are_free_the_window_is_as_large_as_it_may_be() -> None:
    for most_rows in (8, 32, 64, 120):
        found = promised(FLAT, most_rows)
        assert found.why.startswith("On: ")
        assert found.rows <= most_rows < 2 * found.rows
        assert parameters(partial(between, FLAT), most_rows) == (
            found.window,
            found.ngram,
            found.guesses,
        )


def test_it_is_the_best_of_all_windows() -> None:
    steps = {1: 1.0, 8: 1.1, 9: 2.0, 32: 2.1}
    found = promised(steps, 32)
    assert found.speedup == max(
        expected_tokens(ngram, width) / between(steps, rows_of(width, ngram, width))
        for ngram in range(3, 9)
        for width in range(1, 17)
        if rows_of(width, ngram, width) <= 32
    )
    assert found.rows == 8


def test_a_few_rows_are_too_few() -> None:
    assert outlook(partial(between, FLAT), 3) is None
    assert parameters(partial(between, FLAT), 3) is None
    assert promised(FLAT, 4).rows == 4


def test_noise_does_not_make_many_rows_cheaper_than_one() -> None:
    assert promised({1: 1.0, 4: 0.5}, 4).cost == 1.0
