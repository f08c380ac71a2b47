from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from edgespec.events import Finished, Reason
from edgespec.stats import Stats
from tests.tui.fake_readings import begun, history, mixed, round_of
from tui.trace import LIMIT, STEP_SECONDS, Column, Sample, Trace


def folded(*stats: Stats, trace: Trace | None = None) -> Trace:
    trace = trace or Trace()
    for one in stats:
        trace = trace.after(one)
    return trace


def last_answer(trace: Trace) -> list[Sample]:
    return [sample for sample in trace.samples if sample.answer == trace.samples[-1].answer]


def totals(samples: list[Sample]) -> tuple[object, ...]:
    rounds: dict[str, int] = {}
    for sample in samples:
        for source, count in sample.rounds_by:
            rounds[source] = rounds.get(source, 0) + count
    return (
        sum(sample.tokens for sample in samples),
        sum(sample.proposed for sample in samples),
        sum(sample.accepted for sample in samples),
        pytest.approx(sum(sample.seconds for sample in samples)),
        rounds,
    )


def counted(stats: Stats) -> tuple[object, ...]:
    return (
        stats.round_tokens,
        stats.proposed,
        stats.accepted,
        stats.decode_seconds,
        dict(stats.rounds_by),
    )


def test_nothing_happened_yet() -> None:
    assert Trace().columns(10) == []
    assert Trace().after(Stats()).after(begun()).samples == ()
    assert Trace().begin().columns(10) == []
    assert folded(*history([round_of()])).columns(0) == []


def test_rounds_are_put_together_until_they_took_a_while() -> None:
    trace = folded(*history([round_of(seconds=STEP_SECONDS / 2)] * 5))
    assert [sample.rounds_by for sample in trace.samples] == [
        (("plain", 2),),
        (("plain", 2),),
        (("plain", 1),),
    ]
    slow = folded(*history([round_of(seconds=3.0)] * 4))
    assert len(slow.samples) == 4


@pytest.mark.parametrize("seed", range(20))
def test_whatever_arrives_of_them_the_sums_are_those_of_the_last_stats(seed: int) -> None:
    dice = random.Random(seed)
    rounds = [
        round_of(
            proposed := dice.choice([0, 3, 8]),
            dice.randint(0, proposed),
            source=dice.choice(["lookup", "draft"]),
            seconds=dice.choice([0.01, 0.1, 0.7]),
        )
        for _ in range(700)
    ]
    trace, stats = Trace(), begun()
    for stats in history(rounds):
        if dice.random() < 0.6:
            trace = trace.after(stats)
            assert totals(last_answer(trace)) == counted(stats)
        assert len(trace.samples) <= LIMIT
    trace = trace.after(stats)
    assert totals(last_answer(trace)) == counted(stats)
    assert trace.after(stats) == trace


def test_an_end_that_was_decoded_is_taken_back() -> None:
    *_, stats = history([round_of(seconds=1.0), round_of(seconds=1.0)])
    ended = stats.after(Finished(Reason.END))
    trace = folded(stats, ended)
    assert totals(last_answer(trace)) == counted(ended)
    assert len(trace.samples) == 1


def test_a_new_answer_is_noticed_even_where_nobody_says_so() -> None:
    *_, first = history([round_of(8, 3, source="draft", seconds=1.0)] * 3)
    for after in (
        Stats(),
        begun(ttft=0.31),
        *history([round_of(seconds=1.0)] * 3, begun(ttft=0.31)),
        *history([round_of(seconds=0.9)] * 3),
    ):
        trace = folded(first, after)
        assert trace._answer == 1, after
        if after.rounds:
            assert totals(last_answer(trace)) == counted(after)


SOME = Stats(
    rounds=5,
    round_tokens=9,
    proposed=8,
    tested=7,
    accepted=4,
    ttft_seconds=0.25,
    decode_seconds=2.0,
    rounds_by=(("draft", 5),),
)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 4},
        {"decode_seconds": 1.9},
        {"proposed": 7},
        {"tested": 6},
        {"accepted": 3},
        {"ttft_seconds": 0.3},
        {"ttft_seconds": 0.0},
    ],
)
def test_any_sum_that_shrinks_is_of_another_answer(change: dict[str, Any]) -> None:
    assert Trace().after(SOME).after(replace(SOME, **change))._answer == 1
    assert Trace().after(replace(SOME, ttft_seconds=0.0)).after(SOME)._answer == 0


def test_an_answer_that_is_announced_is_new_even_where_its_numbers_are_the_same() -> None:
    *_, stats = history([round_of(seconds=1.0)])
    trace = Trace().after(stats).begin().after(stats)
    assert [sample.answer for sample in trace.samples] == [0, 1]
    assert trace.columns(9) == [Column(1.0, "plain", 0), None, Column(1.0, "plain", 0)]


def test_what_a_column_says() -> None:
    rounds = [
        round_of(4, 1, source="lookup", seconds=0.1),
        round_of(8, 8, source="draft", seconds=0.1),
        round_of(5, 0, source="draft", seconds=0.1),
    ]
    (column,) = folded(*history(rounds)).columns(5)
    assert column is not None
    assert column.source == "draft"
    assert column.length == 6, "17 tokens in 3 drafts"
    assert column.speed == pytest.approx(12 / 0.3)


def test_plain_rounds_do_not_shorten_the_drafts_between_them() -> None:
    rounds = [round_of(seconds=0.01)] * 3 + [round_of(8, 2, source="draft", seconds=0.01)] * 2
    (column,) = folded(*history(rounds)).columns(5)
    assert column is not None
    assert (column.source, column.length) == ("plain", 8)


def test_of_two_ways_that_drafted_alike_the_later_one_is_named() -> None:
    rounds = [round_of(2, 1, source=name, seconds=0.1) for name in ("lookup", "draft")]
    (column,) = folded(*history(rounds)).columns(5)
    assert column is not None
    assert column.source == "draft"


def test_a_speed_is_that_of_the_last_second() -> None:
    rounds = [round_of(3, 3, seconds=0.25)] * 8 + [round_of(seconds=0.25)] * 8
    speeds = [column.speed for column in folded(*history(rounds)).columns(99) if column]
    assert speeds == pytest.approx([16] * 8 + [13, 10, 7] + [4] * 5)


def test_no_speed_reaches_back_into_another_answer() -> None:
    *_, first = history([round_of(9, 9, seconds=0.25)])
    trace = folded(first, trace=Trace())
    trace = folded(*history([round_of(seconds=0.25)], begun(ttft=0.4)), trace=trace)
    before, gap, after = trace.columns(9)
    assert gap is None
    assert before is not None
    assert before.speed == pytest.approx(40)
    assert after is not None
    assert after.speed == pytest.approx(4)


def test_time_that_did_not_pass_is_no_speed() -> None:
    (column,) = folded(*history([round_of(seconds=0.0)])).columns(3)
    assert column == Column(None, "plain", 0)


def test_a_long_answer_is_shown_from_its_beginning() -> None:
    rounds = [round_of(seconds=1.0)] * 10 + [round_of(2, 1, source="draft", seconds=1.0)] * 10
    trace = folded(*history([round_of(4, 0, source="lookup", seconds=1.0)]))
    trace = folded(*history(rounds, begun(ttft=1.5)), trace=trace)
    assert [column and column.source for column in trace.columns(25)] == (
        ["lookup", None] + ["plain"] * 10 + ["draft"] * 10
    )
    assert [column and column.source for column in trace.columns(21)] == (
        [None] + ["plain"] * 10 + ["draft"] * 10
    )
    for count in (19, 10, 7, 3, 1):
        columns = trace.columns(count)
        assert len(columns) <= count
        assert None not in columns
        assert columns[0] is not None
        assert columns[0].source == ("plain" if count > 1 else "draft")


def test_old_answers_leave_and_a_long_one_is_kept_more_coarsely() -> None:
    trace = folded(*history([round_of(seconds=1.0)] * (LIMIT - 10)))
    *all_stats, stats = history([round_of(seconds=1.0)] * 50, begun(ttft=9.0))
    trace = folded(*all_stats, stats, trace=trace)
    assert len(trace.samples) == LIMIT
    assert totals(last_answer(trace)) == counted(stats)
    *all_stats, stats = history([round_of(seconds=1.0)] * (3 * LIMIT), begun(ttft=8.0))
    trace = folded(*all_stats, stats, trace=trace)
    assert len(trace.samples) <= LIMIT
    assert trace.samples[0].answer == trace.samples[-1].answer
    seconds = [sample.seconds for sample in trace.samples[:-1]]
    assert max(seconds) <= 2 * min(seconds)
    assert totals(last_answer(trace)) == counted(stats)


def test_a_new_answer_is_kept_finely_again() -> None:
    trace = folded(*history([round_of(seconds=0.25)] * (LIMIT + 1)))
    assert trace.samples[0].seconds == pytest.approx(0.5)
    trace = folded(*history([round_of(seconds=0.25)] * 4, begun(ttft=7.0)), trace=trace)
    assert [sample.seconds for sample in last_answer(trace)] == pytest.approx([0.25] * 4)


def test_what_plain_decoding_takes_is_remembered() -> None:
    *_, stats = history(mixed(12), plain=0.05)
    trace = folded(stats)
    assert trace.plain_seconds == 0.05
    assert trace.begin().after(Stats()).plain_seconds == 0.05
    assert trace.after(replace(stats, plain_seconds=0.04)).plain_seconds == 0.04


def test_traces_are_values() -> None:
    trace = folded(*history([round_of(seconds=1.0)] * 3))
    before = trace.samples
    trace.after(Stats())
    trace.begin()
    assert trace.samples is before
