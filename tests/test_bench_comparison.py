"""The methods of this machine beside what was published."""

from __future__ import annotations

from dataclasses import replace

from edgespec.bench.comparison import PUBLISHED, as_comparison
from edgespec.bench.report import Report
from edgespec.methods import WAYS
from tests.bench_runs import usual


def lines(found: Report) -> list[list[str]]:
    rows = [line for line in as_comparison(found).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_each_method_once_at_its_best_length_beside_what_was_published() -> None:
    head, _, *rows = lines(usual())
    assert head[:6] == ["method", "speed-up here", "accepted", "tok/round", "memory", "exact"]
    assert [row[:2] for row in rows] == [
        ["plain", "1.00x"],
        ["auto", "1.52x"],
        ["draft 2", "1.25x"],
    ]
    draft = rows[2]
    assert draft[4:6] == ["512 MB", "yes"]
    assert draft[6:] == ["2.5x, 58 % (70B + 7B)", "1.83x, 2.29", "1.49x, 2.28"]
    assert rows[1][6:] == ["", "", ""]


def test_what_is_published_is_of_methods_that_there_are() -> None:
    assert set(PUBLISHED) <= set(WAYS)


def test_it_says_what_was_measured_and_that_it_is_no_fair_comparison() -> None:
    report = replace(
        usual(), setup={"target": "big", "draft": "small", "prompts": 3}, complete=False
    )
    page = as_comparison(report)
    assert page.startswith("# Ways to draft, compared: big with small")
    assert "Prompts: 3." in page
    assert "Stopped early" in page
    assert "other models on other machines" in page
