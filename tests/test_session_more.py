"""Going on with a cut answer, with another conversation, with other settings; what text was drafted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from edgespec.conversation import Message
from edgespec.errors import ContextFullError, UsageError
from edgespec.events import FirstToken, Reason, Round
from edgespec.reply import StatsChanged, TextDelta
from edgespec.settings import Load
from tests.test_session import TOKENIZER, Bench, end_of, text_of


@pytest.mark.parametrize("draft", [None, 400])
def test_a_cut_answer_goes_on_where_it_stopped(draft: int | None) -> None:
    bench = Bench(draft=draft, max_tokens=6)
    bench.says("one two three")
    used = bench.session.context_used
    events = list(bench.session.continue_answer())
    assert events[0] == TextDelta("one tw"), (
        "what there is comes first, so that a reader sees it all"
    )
    assert text_of(events) == end_of(events).text == "one two thre"
    assert end_of(events).stats.tokens == 6, "the budget and the numbers are those of the new part"
    assert end_of(events).stats.reused_tokens == used
    assert bench.contents == ["tell", "one two thre"]
    assert end_of(list(bench.session.continue_answer())).text == "one two three"
    assert bench.session.messages[-1].complete
    with pytest.raises(UsageError):
        bench.session.continue_answer()
    assert end_of(bench.says("more text")).text == "more t", "the conversation goes on after it"


def test_there_is_nothing_to_go_on_with() -> None:
    bench = Bench()
    for _ in range(2):
        with pytest.raises(UsageError):
            bench.session.continue_answer()
        bench.says("whole")


def test_a_restored_answer_goes_on_by_its_text() -> None:
    bench = Bench()
    bench.session.restore(
        [Message("user", "tell"), Message("assistant", "one tw", (1, 2, 3), complete=False)]
    )
    bench.script = "one two"
    assert end_of(list(bench.session.continue_answer())).text == "one two"
    assert bench.contents == ["tell", "one two"]


def test_going_on_stopped_at_once_keeps_what_there_was() -> None:
    bench = Bench(max_tokens=6)
    bench.says("one two three")
    events = bench.session.continue_answer()
    bench.session.cancel()
    assert end_of(list(events)).reason is Reason.CANCELLED
    assert bench.contents == ["tell", "one tw"]
    assert not bench.session.messages[-1].complete


def test_an_answer_as_large_as_the_context_cannot_go_on() -> None:
    bench = Bench(capacity=100)
    bench.says("y" * 200)
    before = bench.session.messages
    with pytest.raises(ContextFullError):
        list(bench.session.continue_answer())
    assert bench.session.messages == before


def test_older_turns_leave_for_an_answer_that_goes_on() -> None:
    bench = Bench(capacity=200)
    bench.session.restore(
        [
            Message("user", "a" * 60),
            Message("assistant", "b" * 20),
            Message("user", "tell"),
            Message("assistant", "y" * 40, (), complete=False),
        ]
    )
    bench.script = "y" * 50
    events = list(bench.session.continue_answer())
    assert end_of(events).text == "y" * 50
    assert len(bench.session.messages) == 4


def test_another_conversation_takes_the_place_of_this_one() -> None:
    bench = Bench(system="Be kind.")
    bench.says("Hi")
    bench.session.restore([Message("user", "a"), Message("assistant", "b", tokens=(5, 6))])
    assert bench.contents == ["Be kind.", "a", "b"]
    assert bench.session.messages[2].tokens == (), "they may be another vocabulary's"
    bench.session.restore([Message("system", "Be brief."), Message("user", "a")])
    assert bench.contents == ["Be brief.", "a"]
    bench.session.restore([])
    assert bench.contents == ["Be kind."]
    assert end_of(bench.says("fine")).text == "fine"


def test_other_settings_hold_from_the_next_answer_on() -> None:
    bench = Bench()
    bench.says("Hi")
    bench.session.configure(replace(bench.session.settings, system="Be kind.", max_tokens=2))
    assert bench.contents == ["Be kind.", "tell", "Hi"]
    assert end_of(bench.says("longer")).text == "lo"
    bench.session.configure(replace(bench.session.settings, system="Be brief."))
    assert bench.contents[0] == "Be brief."
    bench.session.configure(replace(bench.session.settings, system=None))
    assert bench.contents == ["tell", "Hi", "tell", "lo"]


def test_other_models_are_another_session() -> None:
    bench = Bench()
    with pytest.raises(UsageError):
        bench.session.configure(replace(bench.session.settings, load=Load(model="other")))


def test_a_text_is_counted_as_characters_not_as_commands() -> None:
    bench = Bench()
    assert bench.session.count("abc") == 3
    assert bench.session.count("<|im_end|>") == 10
    assert bench.session.count("") == 0


@pytest.mark.parametrize("draft", [None, 400])
def test_what_came_from_the_draft_is_told_by_its_characters(draft: int | None) -> None:
    bench = Bench(draft=draft)
    events = bench.says("Hello you")
    drafted = [event.drafted for event in events if isinstance(event, TextDelta)]
    # The prompt's pass gives H; a round of four drafted characters and one of the target's follows.
    assert drafted == ([0, 4, 3] if draft else [0] * 9)


def test_a_character_counts_for_the_token_that_made_it_whole() -> None:
    from edgespec.answer import Answer

    answer = Answer(TOKENIZER, ())
    e_acute = TOKENIZER.tokenize("é", special=False)
    list(answer.take(FirstToken(e_acute[0], 0.1)))

    def one_round(*tokens: int, accepted: int) -> Round:
        return Round(tokens, accepted, accepted, accepted, 0.1, 0.1, 0.2)

    told = list(answer.take(one_round(e_acute[1], ord("x"), accepted=1)))
    assert told[0] == TextDelta("éx", drafted=1)


def test_plain_seconds_become_a_speed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    monkeypatch.setattr(bench.pair, "remember", lambda load: None)
    bench.pair.auto = SimpleNamespace(plain_seconds=0.5)  # type: ignore[assignment]
    bench.pair.method = "auto"
    bench.pair.drafters = {**bench.pair.drafters, "auto": bench.pair.drafters["plain"]}
    stats = [event.stats for event in bench.says("Hello") if isinstance(event, StatsChanged)]
    assert stats[0].speed_up is None, "no round is done"
    assert stats[-1].plain_seconds == 0.5
    assert stats[-1].speed_up == 1.0, "a plain round is never faster than a plain round"
