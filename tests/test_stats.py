"""The numbers, on rounds whose numbers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgespec.drafters.base import Draft, Policy
from edgespec.engine import DecodeOptions, decode
from edgespec.events import DecodeEvent, Finished, FirstToken, Prefilled, Reason, Round
from edgespec.model import ROOT, Token
from edgespec.sampling import Sampling
from edgespec.stats import Stats
from tests.fakes import FakeModel


def fold(*events: DecodeEvent) -> Stats:
    stats = Stats()
    for event in events:
        stats = stats.after(event)
    return stats


def made(tokens: int, proposed: int, tested: int, accepted: int) -> Round:
    return Round(tuple(range(tokens)), proposed, tested, accepted, 0.25, 0.5, 1.0)


def test_acceptance_counts_tested_positions_only() -> None:
    stats = fold(FirstToken(1, 0.5), made(3, 8, 3, 2), made(9, 8, 8, 8), made(1, 0, 0, 0))
    assert stats.acceptance == 10 / 11
    assert stats.proposed == 16


def test_rows_are_those_of_the_passes_and_unknown_where_nobody_counts() -> None:
    stats = fold(FirstToken(1, 0.5), replace(made(3, 8, 3, 2), rows=9), made(1, 0, 0, 0))
    assert (stats.rows, stats.rows_per_round) == (10, 5.0)
    assert Stats(rounds=3).rows_per_round is None


class Bush:
    """Proposes every token of the vocabulary for one place, the right one last."""

    def begin(self, prompt: Sequence[Token]) -> None: ...

    def propose(self, limit: int, policy: Policy) -> Draft:
        return Draft((0, 1, 2, 3), (None,) * 4, "bush", (ROOT,) * 4)

    def accept(self, tokens: Sequence[Token]) -> None: ...

    def close(self) -> None: ...


def test_guesses_for_one_place_are_one_test() -> None:
    """The acceptance of a tree tells how often it had the right guess, not how many it had."""
    always = FakeModel(lambda _: [0.0, 0.0, 0.0, 9.0], 4)
    options = DecodeOptions(sampling=Sampling(temperature=0), draft_length=4, max_tokens=7)
    stats = fold(*decode(always, Bush(), [1, 2], options))
    assert (stats.rounds, stats.proposed, stats.tested, stats.accepted) == (3, 12, 3, 3)
    assert (stats.acceptance, stats.rows_per_round) == (1.0, 5.0)


def test_the_first_token_has_its_own_time_and_is_no_round() -> None:
    stats = fold(
        Prefilled(4, 10, 4, 0.0), Prefilled(10, 10, 4, 0.2), FirstToken(1, 0.5), made(3, 8, 3, 2)
    )
    assert (stats.tokens, stats.rounds, stats.tokens_per_round) == (4, 1, 3.0)
    assert (stats.tokens_per_second, stats.ttft_seconds) == (3.0, 0.5)
    assert (stats.prompt_tokens, stats.reused_tokens, stats.prefill_seconds) == (10, 4, 0.2)


def test_nothing_measured_is_told_as_nothing() -> None:
    stats = Stats()
    assert (stats.acceptance, stats.tokens_per_second, stats.tokens_per_round) == (None,) * 3


def test_the_end_token_is_not_delivered() -> None:
    stats = fold(FirstToken(1, 0.5), made(3, 0, 0, 0), Finished(Reason.END))
    assert (stats.tokens, stats.round_tokens) == (3, 2)
    assert fold(FirstToken(1, 0.5), Finished(Reason.END)).tokens == 0
    assert fold(FirstToken(1, 0.5), made(3, 0, 0, 0), Finished(Reason.LENGTH)).tokens == 4


def test_the_histogram_counts_rounds_by_accepted_length() -> None:
    assert fold(made(3, 8, 3, 2), made(1, 8, 1, 0), made(3, 8, 3, 2)).accepted_lengths == (1, 0, 2)


def test_a_round_cut_by_a_stop_counts_as_if_it_had_ended_there() -> None:
    cut = made(9, 8, 8, 8).keep(3)
    assert (len(cut.tokens), cut.tested, cut.accepted) == (3, 3, 3)
    kept = made(3, 8, 3, 2).keep(3)
    assert kept == made(3, 8, 3, 2)


def test_an_answer_decoded_in_parts_waits_only_once() -> None:
    stats = fold(FirstToken(1, 0.5), made(2, 0, 0, 0), FirstToken(1, 0.1))
    assert (stats.ttft_seconds, stats.tokens) == (0.5, 4)


def test_rounds_are_counted_by_what_drafted_in_them() -> None:
    by_model = replace(made(3, 8, 3, 2), source="draft")
    asked_in_vain = replace(made(1, 0, 0, 0), source="draft")
    stats = fold(by_model, made(1, 0, 0, 0), by_model, asked_in_vain)
    assert stats.rounds_by == (("draft", 2), ("plain", 2))
    assert stats.last_draft == ("plain", 0)
    assert fold(by_model).last_draft == ("draft", 8)


def test_a_speed_up_is_no_more_than_the_tokens_of_a_round() -> None:
    stats = fold(FirstToken(1, 0.5), made(3, 4, 3, 2), made(1, 4, 1, 0))
    assert stats.speed_up is None, "nobody measured plain decoding"
    assert replace(stats, plain_seconds=0.75).speed_up == 1.5
    assert replace(stats, plain_seconds=0.25).speed_up == 0.5
    assert replace(stats, plain_seconds=9.0).speed_up == 2.0
    assert replace(Stats(), plain_seconds=1.0).speed_up is None
