"""Why a method lost, in a benchmark's words."""

from __future__ import annotations

from collections.abc import Mapping

from edgespec.bench.report import PLAIN, Key
from edgespec.bench.verdicts import verdicts
from tests.bench_runs import AUTO, DRAFT_2, DRAFT_4, SERVER, report, turn

TREE: Key = ("tree", 4)
CASCADE: Key = ("cascade", 8)


def of(speeds: Mapping[Key, float]) -> list[str]:
    return verdicts(report(turn(speeds, 0)).summary)


def test_who_wins_is_not_explained() -> None:
    assert of({PLAIN: 10, DRAFT_2: 12, DRAFT_4: 13, TREE: 14}) == []


def test_a_loss_to_plain_decoding_is_what_a_round_brought_and_cost() -> None:
    (said,) = of({PLAIN: 10, DRAFT_4: 8})
    # Tokens and rows are those of all made-up runs; drafting takes a tenth of them.
    assert said == (
        "draft 4 lost to plain decoding, 0.80x: a round brought 2.00 tokens and cost 1.25 plain ones, "
        "0.12 to draft and 1.12 for the pass of 2.4 rows"
    )


def test_a_hair_s_breadth_is_no_loss() -> None:
    assert of({PLAIN: 10, DRAFT_4: 9.8}) == []


def test_the_best_length_speaks_for_its_method() -> None:
    assert of({PLAIN: 10, DRAFT_4: 8, DRAFT_2: 11}) == []
    (said,) = of({PLAIN: 10, DRAFT_4: 8, DRAFT_2: 9})
    assert said.startswith("draft 2 lost")


def test_an_elaboration_is_to_beat_what_it_elaborates() -> None:
    (said,) = of({PLAIN: 10, DRAFT_2: 13, DRAFT_4: 16, TREE: 12})
    assert said.startswith("tree 4 lost to draft 4, 1.20x to 1.60x: a round brought 2.00 tokens")
    assert said.endswith("draft 4's 2.00 tokens (+0%) cost 0.62")
    assert of({PLAIN: 10, ("lookup", 4): 16, TREE: 12}) == [], "lookup is no part of a tree"


def test_a_server_and_auto_are_compared_elsewhere() -> None:
    assert of({PLAIN: 10, SERVER: 8}) == []
    (said,) = of({PLAIN: 10, AUTO: 9, DRAFT_4: 12})
    assert said.startswith("auto lost to plain decoding")


def test_what_is_made_of_others_tells_its_gain() -> None:
    said = of({PLAIN: 10, DRAFT_4: 16, ("lookup", 4): 12, CASCADE: 20})
    assert said == [
        "cascade 8, compared with the better one of its parts in each category: code 1.25"
    ]
