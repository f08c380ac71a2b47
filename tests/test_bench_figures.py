"""What becomes of the runs of a benchmark."""

from __future__ import annotations

import math

import pytest

from edgespec.bench.report import PLAIN, Key, Report, Row, Summary, Worst
from tests.bench_runs import AUTO, DRAFT_2, DRAFT_4, SERVER, report, run, turn, usual


def row(found: Report, category: str, arm: Key, temperature: float = 0.0) -> Row:
    (one,) = [
        row
        for row in found.rows
        if (row.category, row.method, row.draft_length, row.temperature)
        == (category, *arm, temperature)
    ]
    return one


def summary(found: Report, arm: Key, temperature: float = 0.0) -> Summary:
    (one,) = [
        summary
        for summary in found.summary
        if (summary.method, summary.draft_length, summary.temperature) == (*arm, temperature)
    ]
    return one


def test_a_speed_up_is_the_median_of_ratios_not_the_ratio_of_medians() -> None:
    # The machine slowed down threefold between the turns.
    runs = [*turn({PLAIN: 30, DRAFT_2: 60}, 0), *turn({PLAIN: 10, DRAFT_2: 20}, 0, repeat=1)]
    runs += turn({PLAIN: 10, DRAFT_2: 25}, 1)
    found = row(report(runs), "code", DRAFT_2)
    assert found.speedup == pytest.approx(2)
    assert found.tokens_per_second == pytest.approx(25)
    assert found.tokens_per_round == 2
    assert found.ttft_s == 0.5


def test_the_spread_is_that_of_the_middle_half() -> None:
    runs = [
        one
        for repeat, speed in enumerate((8, 10, 12, 14, 30))
        for one in turn({PLAIN: 10, AUTO: speed}, 0, repeat=repeat)
    ]
    found = row(report(runs), "code", AUTO)
    assert (found.speedup_low, found.speedup, found.speedup_high) == pytest.approx((1, 1.2, 1.4))
    alone = row(report(runs[:2]), "code", AUTO)
    assert (alone.speedup_low, alone.speedup_high) == pytest.approx((0.8, 0.8))


def test_the_worst_prompt_goes_by_its_median() -> None:
    # p0 has the worst single ratio, p1 the worst median.
    runs = [
        one
        for repeat, (first, second) in enumerate(((5, 9), (20, 9), (20, 9)))
        for number, speed in enumerate((first, second))
        for one in turn({PLAIN: 10, AUTO: speed}, number, repeat=repeat)
    ]
    assert row(report(runs), "code", AUTO).worst_prompt == Worst("p1", 0.9)


def test_what_a_round_costs_is_told_in_rounds_of_plain_decoding() -> None:
    # Five rounds of two tokens: 10 tokens a second are 0.2 s a round, 25 are 0.08 s.
    found = summary(report(turn({PLAIN: 10, DRAFT_4: 25, SERVER: 9}, 0)), DRAFT_4)
    assert found.draft_cost == pytest.approx((1 / 25 / 5) / 0.2)
    assert found.verify_cost == pytest.approx(0.08 / 0.2 - (1 / 25 / 5) / 0.2)
    plain = summary(usual(), PLAIN)
    assert (plain.draft_cost, plain.verify_cost) == pytest.approx((0, 1))
    other = summary(usual(), SERVER)
    assert (other.draft_cost, other.verify_cost, other.rows_per_round) == (None, None, None)


def test_tokens_over_costs_is_the_speed_up() -> None:
    runs = [*turn({PLAIN: 10, DRAFT_4: 25}, 0), *turn({PLAIN: 30, DRAFT_4: 60}, 0, repeat=1)]
    found = summary(report(runs), DRAFT_4)
    assert found.draft_cost is not None
    assert found.verify_cost is not None
    plain = summary(report(runs), PLAIN).tokens_per_round
    cost = found.draft_cost + found.verify_cost
    assert found.tokens_per_round / plain / cost == pytest.approx(2 / (1 / 2.5 + 1 / 2))


def test_rows_and_memory_come_through() -> None:
    found = usual()
    assert row(found, "code", DRAFT_2).rows_per_round == 12 / 5
    assert row(found, "code", SERVER).rows_per_round is None
    assert [row(found, "prose", arm).memory_bytes for arm in (PLAIN, DRAFT_2, AUTO, SERVER)] == [
        0, 512_000_000, 1_230_000_000, None,
    ]  # fmt: skip
    assert summary(found, AUTO).memory_bytes == 1_230_000_000
    assert summary(found, AUTO).same_as_plain is True
    one = found.runs[1]
    assert one.rows_per_round == 2.4
    assert one.draft_s == pytest.approx(1 / 12)


def test_what_is_made_of_others_is_compared_with_the_better_one_in_each_category() -> None:
    by_lookup, by_draft = ("auto-lookup", 0), ("auto-draft", 0)
    runs = [
        *turn({PLAIN: 10, AUTO: 20, by_lookup: 16, by_draft: 10, DRAFT_4: 40}, 0),
        *turn({PLAIN: 10, AUTO: 15, by_lookup: 10, by_draft: 12, DRAFT_4: 40}, 2),
    ]
    found = report(runs)
    assert summary(found, AUTO).of_parts == pytest.approx({"code": 20 / 16, "prose": 15 / 12})
    assert summary(found, by_draft).of_parts is None
    assert summary(usual(), AUTO).of_parts is None
    cascade = ("cascade", 8)
    runs = turn({PLAIN: 10, cascade: 20, DRAFT_2: 16, DRAFT_4: 18, ("lookup", 4): 12, AUTO: 30}, 0)
    assert summary(report(runs), cascade).of_parts == pytest.approx({"code": 20 / 18})


def test_categories_keep_the_order_of_the_prompts_whoever_was_first() -> None:
    runs = [*turn({PLAIN: 10}, 2), *turn({PLAIN: 10}, 0)]
    assert [one.category for one in report(runs).rows] == ["code", "prose"]


def test_acceptance_counts_tested_positions_of_all_runs() -> None:
    runs = [run(PLAIN, 10), run(AUTO, 10, accepted=1, tested=2)]
    runs += [run(PLAIN, 10, number=1), run(AUTO, 10, number=1, accepted=7, tested=8)]
    found = report(runs)
    assert row(found, "code", AUTO).acceptance == pytest.approx(0.8)
    assert row(found, "code", PLAIN).acceptance is None


@pytest.mark.parametrize(("temperature", "same"), [(0.0, False), (0.8, None)])
def test_one_other_token_is_another_text(temperature: float, same: bool | None) -> None:
    runs = [run(arm, 10, temperature=temperature) for arm in (PLAIN, AUTO)]
    runs.append(run(PLAIN, 10, number=1, temperature=temperature))
    runs.append(run(AUTO, 10, number=1, temperature=temperature, tokens=(7, 8, 1)))
    found = report(runs)
    assert row(found, "code", AUTO, temperature).same_as_plain is same
    equal = None if same is None else True
    assert row(found, "code", PLAIN, temperature).same_as_plain is equal
    assert [one.same_as_plain for one in found.runs] == [equal, equal, equal, same]


def test_where_a_seed_alone_decides_sampled_texts_are_compared_too() -> None:
    runs = [run(PLAIN, 10, temperature=0.8), run(AUTO, 10, temperature=0.8, tokens=(7, 8, 1))]
    runs += [run(DRAFT_4, 10, temperature=0.8), run(SERVER, 10, temperature=0.8)]
    found = report(runs, repeatable=True)
    same = [row(found, "code", arm, 0.8).same_as_plain for arm in (AUTO, DRAFT_4, SERVER)]
    assert same == [False, True, None], "a server draws with numbers of its own"
    assert row(report(runs), "code", AUTO, 0.8).same_as_plain is None


def test_how_far_apart_is_the_farthest_and_unknown_if_one_is() -> None:
    other = (7, 8, 1)
    runs = [run(PLAIN, 10), run(AUTO, 10, tokens=other)]
    runs += [run(PLAIN, 10, number=1), run(AUTO, 10, number=1, tokens=other)]
    runs += [run(PLAIN, 10, number=2), run(AUTO, 10, number=2)]
    first, second = runs[1].turn, runs[3].turn
    found = report(runs, parted={(AUTO, first): 0.1, (AUTO, second): 0.3})
    assert row(found, "code", AUTO).parted_logits == 0.3
    assert row(found, "code", PLAIN).parted_logits is None
    assert row(found, "prose", AUTO).parted_logits is None
    assert summary(found, AUTO).parted_logits == 0.3
    assert [one.parted_logits for one in found.runs] == [None, 0.1, None, 0.3, None, None]
    half = report(runs, parted={(AUTO, first): 0.1})
    assert row(half, "code", AUTO).parted_logits is None


def test_over_categories_the_mean_is_geometric() -> None:
    found = usual()
    assert row(found, "code", DRAFT_4).speedup == pytest.approx(2.2)
    assert row(found, "prose", DRAFT_4).speedup == pytest.approx(0.5)
    assert summary(found, DRAFT_4).speedup == pytest.approx(math.sqrt(2.2 * 0.5))
    assert summary(found, DRAFT_4).worst_prompt == Worst("p2", 0.5)
    assert summary(found, PLAIN).speedup == 1


def test_auto_is_compared_with_the_best_single_length_and_with_each_category_s_own() -> None:
    found = usual()
    best = math.sqrt(1.3 * 1.2)  # draft 2; draft 4 is best at code only
    assert summary(found, AUTO).of_best_fixed == pytest.approx(math.sqrt(2.1 * 1.1) / best)
    own = summary(found, AUTO).of_own_best
    assert own == pytest.approx({"code": 2.1 / 2.2, "prose": 1.1 / 1.2})
    assert summary(found, DRAFT_2).of_best_fixed is None
    without = report([*turn({PLAIN: 10, AUTO: 12, SERVER: 9}, 0)])
    assert summary(without, AUTO).of_best_fixed is None


def test_the_server_is_what_others_are_divided_by() -> None:
    found = usual()
    assert summary(found, PLAIN).of_server == pytest.approx(math.sqrt((10 / 8 + 1) / 2))
    assert summary(found, AUTO).of_server == pytest.approx(math.sqrt((22 / 8 + 2) / 2 * 1.1))
    assert row(found, "code", SERVER).speedup == pytest.approx(0.9)
    assert summary(report(turn({PLAIN: 10, AUTO: 12}, 0)), AUTO).of_server is None


def test_temperatures_stay_apart() -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), *turn({PLAIN: 10, AUTO: 5}, 0, temperature=0.8)]
    found = report(runs)
    assert row(found, "code", AUTO, 0.8).speedup == 0.5
    assert summary(found, AUTO).speedup == 2
    assert summary(found, AUTO, 0.8).speedup == 0.5


def test_a_turn_that_was_not_finished_by_all_does_not_count() -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), run(AUTO, 90, number=1)]
    found = report(runs, complete=False)
    assert row(found, "code", AUTO).speedup == 2
    assert not found.complete
    assert [one.speedup for one in found.runs] == [1, 2, None]
    nothing = report([run(PLAIN, 10), run(AUTO, 10, number=1)], complete=False)
    assert (nothing.rows, nothing.summary) == ([], [])


def test_an_answer_of_one_token_has_no_speed() -> None:
    runs = [
        *turn({PLAIN: 10, AUTO: 20}, 0),
        *turn({PLAIN: 0, AUTO: 0}, 1),
        *turn({PLAIN: 10, AUTO: 0}, 2),
    ]
    found = report(runs)
    assert {one.category for one in found.rows} == {"code"}
    assert row(found, "code", AUTO).speedup == 2
    assert found.left_out == 2
    assert [one.speedup for one in found.runs] == [1, 2, None, None, 1, None]
    assert found.runs[2].tokens_per_second is None


def test_runs_are_listed_by_turn_and_arm_whatever_the_order_they_came_in() -> None:
    runs = [run(PLAIN, 10), run(AUTO, 20), run(AUTO, 30, number=1), run(PLAIN, 10, number=1)]
    listed = [(one.id, one.method, one.speedup, one.repeat) for one in report(runs).runs]
    assert listed == [
        ("p0", "plain", 1, 1), ("p0", "auto", 2, 1), ("p1", "plain", 1, 1), ("p1", "auto", 3, 1),
    ]  # fmt: skip


def test_time_outside_is_the_median_by_arm_and_unknown_of_a_server() -> None:
    runs = [run(PLAIN, 10, outside=share, number=n) for n, share in enumerate((0.1, 0.2, 0.6))]
    runs += [run(DRAFT_4, 10, outside=0.3), run(SERVER, 10, outside=None)]
    assert report(runs).outside_llama_cpp == {"plain": 0.2, "draft 4": 0.3}
