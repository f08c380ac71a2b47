"""What a session remembers and tells, with a model that says what the test wrote down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from edgespec.drafters.base import Drafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.errors import Cancelled, ContextFullError, DecodeError, UsageError
from edgespec.events import Prefilled, Reason
from edgespec.model import Logits, Token
from edgespec.pair import Pair
from edgespec.reply import Notice, ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.sampling import Sampling
from edgespec.session import Session
from edgespec.settings import Load, Method, Settings
from tests.fakes import FakeModel
from tests.text_fakes import FakeTokenizer

TOKENIZER = FakeTokenizer(bos=None)
END = TOKENIZER.control("<|im_end|>")
START = TOKENIZER.control("<|im_start|>")
VOCAB = max(START, END) + 3
HEAD = len(TOKENIZER.tokenize("assistant\n", special=False))


class Switched(FakeModel):
    """With the switch that stops it, and a failure that can be ordered."""

    def __init__(self, script: Callable[[], str], capacity: int) -> None:
        super().__init__(self._logits, VOCAB, capacity=capacity)
        self._script = script
        self.failure: Exception | None = None
        self.abort = SimpleNamespace(on=self._on, off=self._off)
        self.buffers = SimpleNamespace(kv_cache=5)
        self._stopped = False

    def _on(self) -> None:
        self._stopped = True

    def _off(self) -> None:
        self._stopped = False

    def _logits(self, text: tuple[Token, ...]) -> Logits:
        begun = len(text) - 1 - text[::-1].index(START) + 1 + HEAD
        said = len(text) - begun
        script = self._script().encode()
        row = np.zeros(VOCAB, np.float32)
        row[script[said] if 0 <= said < len(script) else END] = 9
        return row

    def extend(self, tokens: object, rows: int) -> Logits:
        if self._stopped:
            raise Cancelled
        if self.failure is not None and rows:
            raise self.failure
        return super().extend(tokens, rows)  # type: ignore[arg-type]

    def close(self) -> None: ...


class Bench:
    """A session and the strings that its model pulls."""

    def __init__(
        self, *, capacity: int = 400, draft: int | None = None, **settings: object
    ) -> None:
        self.script = "Hi!"
        self.model = Switched(lambda: self.script, capacity)
        self.loaded = self._loaded(self.model)
        small = None if draft is None else self._loaded(Switched(lambda: self.script, draft))
        drafters: dict[Method, Drafter] = {"plain": NoDrafter()}
        if small:
            drafters["draft"] = DraftModelDrafter(small.model, VOCAB)
        self.pair = Pair(self.loaded, small, drafters, "draft" if small else "plain")  # type: ignore[arg-type]
        self.session = Session(
            self.pair,
            Settings(
                load=Load(draft_length=4),
                sampling=Sampling(temperature=0),
                **settings,  # type: ignore[arg-type]
            ),
        )

    @staticmethod
    def _loaded(model: Switched) -> SimpleNamespace:
        ends = frozenset(t for t in range(VOCAB) if TOKENIZER.is_end(t))
        tokenizer = FakeTokenizer(bos=None)
        tokenizer.end_tokens = ends  # type: ignore[attr-defined]
        weights = SimpleNamespace(
            tokenizer=tokenizer, chat_template=None, name="fake", file_bytes=7, close=lambda: None
        )
        return SimpleNamespace(
            name="fake", lent=False, weights=weights, model=model, shares=(), close=lambda: None
        )

    def says(self, script: str) -> list[ReplyEvent]:
        self.script = script
        return list(self.session.reply("tell"))

    @property
    def contents(self) -> list[str]:
        return [message.content for message in self.session.messages]


def text_of(events: list[ReplyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def end_of(events: list[ReplyEvent]) -> ReplyDone:
    assert isinstance(events[-1], ReplyDone)
    return events[-1]


def notices_of(events: list[ReplyEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def test_an_answer_is_told_and_kept() -> None:
    bench = Bench()
    events = bench.says("Hello you")
    assert isinstance(events[0], Prefilled)
    assert text_of(events) == end_of(events).text == "Hello you"
    assert end_of(events).reason is Reason.END
    assert end_of(events).stats.tokens == 9
    assert bench.contents == ["tell", "Hello you"]
    assert bench.session.messages[1].complete
    assert bench.session.messages[1].tokens == tuple(b"Hello you")


def test_each_pass_is_followed_by_its_numbers() -> None:
    events = Bench(draft=400).says("Hello you")
    counts = [event.stats.tokens for event in events if isinstance(event, StatsChanged)]
    assert counts == [1, 6, 10]
    assert end_of(events).stats.tokens == 9, "the end token is not delivered"


def test_the_system_text_comes_first_and_is_asked_for_nothing() -> None:
    bench = Bench(system="Be kind.")
    assert bench.contents == ["Be kind."]
    with pytest.raises(UsageError):
        bench.session.regenerate()
    bench.says("Yes")
    assert bench.contents == ["Be kind.", "tell", "Yes"]


def test_an_empty_answer_leaves_the_question() -> None:
    bench = Bench()
    assert end_of(bench.says("")).reason is Reason.END
    assert bench.contents == ["tell"]
    bench.says("now")
    assert bench.contents == ["tell", "tell", "now"]


def test_a_message_that_is_too_long_changes_nothing() -> None:
    bench = Bench()
    bench.says("Hi")
    before = bench.session.messages
    with pytest.raises(ContextFullError):
        list(bench.session.reply("x" * 400))
    with pytest.raises(ContextFullError):
        list(bench.session.edit(0, "x" * 400))
    assert bench.session.messages == before


def test_a_failure_in_the_midst_of_an_answer_changes_nothing() -> None:
    bench = Bench()
    bench.says("Hi")
    before = bench.session.messages
    bench.script = "a longer answer"
    starts: list[Callable[[], Iterator[ReplyEvent]]] = [
        lambda: bench.session.reply("more"),
        bench.session.regenerate,
        lambda: bench.session.edit(0, "other"),
    ]
    for start in starts:
        bench.model.failure = None
        events = start()
        while not isinstance(next(events), TextDelta):
            pass
        bench.model.failure = DecodeError("broken", "")
        with pytest.raises(DecodeError):
            list(events)
        assert bench.session.messages == before
    bench.model.failure = None
    assert end_of(bench.says("Hi again")).text == "Hi again"


def test_regenerate_replaces_the_last_answer() -> None:
    bench = Bench()
    bench.says("one")
    bench.says("two")
    bench.script = "three"
    assert end_of(list(bench.session.regenerate())).text == "three"
    assert bench.contents == ["tell", "one", "tell", "three"]


def test_edit_drops_what_came_after() -> None:
    bench = Bench()
    bench.says("one")
    bench.says("two")
    bench.script = "three"
    list(bench.session.edit(0, "ask"))
    assert bench.contents == ["ask", "three"]


@pytest.mark.parametrize("index", [-1, 1, 2])
def test_only_ones_own_messages_can_be_edited(index: int) -> None:
    bench = Bench()
    bench.says("one")
    with pytest.raises(UsageError):
        bench.session.edit(index, "x")
    assert bench.contents == ["tell", "one"]


def test_a_replacement_of_which_nothing_came_leaves_the_old_answer() -> None:
    bench = Bench()
    bench.says("one")
    for start in (bench.session.regenerate, lambda: bench.session.edit(0, "other")):
        events = start()
        bench.session.cancel()
        assert end_of(list(events)).reason is Reason.CANCELLED
        assert bench.contents == ["tell", "one"]


def test_cancel_keeps_what_was_said() -> None:
    bench = Bench()
    bench.script = "a longer answer"
    events = bench.session.reply("tell")
    told = [next(events) for _ in range(5)]
    bench.session.cancel()
    told += list(events)
    assert end_of(told).reason is Reason.CANCELLED
    assert bench.contents == ["tell", text_of(told)]
    assert text_of(told)
    assert not bench.session.messages[-1].complete


def test_a_cancel_before_the_question_stops_nothing() -> None:
    bench = Bench()
    bench.session.cancel()
    assert end_of(bench.says("fine")).text == "fine"


def test_an_answer_given_up_is_kept_as_far_as_it_came() -> None:
    bench = Bench()
    bench.script = "a longer answer"
    events = bench.session.reply("tell")
    told = [next(events) for _ in range(5)]
    events.close()  # type: ignore[attr-defined]
    assert bench.contents == ["tell", text_of(told)]
    events = bench.session.reply("more")
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert bench.contents == ["tell", text_of(told)], "nothing came, so nothing was asked"


@pytest.mark.parametrize("draft", [None, 400])
def test_a_stop_string_ends_the_answer_and_its_tokens_are_not_reused(draft: int | None) -> None:
    bench = Bench(draft=draft, stop=("STOP",))
    done = end_of(bench.says("one two STOP three"))
    assert (done.text, done.reason, done.stats.tokens) == ("one two ", Reason.STOP, 12)
    assert bench.session.messages[-1].tokens == ()
    assert bench.session.messages[-1].complete


@pytest.mark.parametrize("draft", [None, 400])
def test_the_budget(draft: int | None) -> None:
    bench = Bench(draft=draft, max_tokens=6)
    done = end_of(bench.says("one two three"))
    assert (done.text, done.reason, done.stats.tokens) == ("one tw", Reason.LENGTH, 6)
    assert not bench.session.messages[-1].complete


def test_the_beginning_of_a_stop_is_shown_once_it_can_be_none() -> None:
    bench = Bench(stop=("STOP",))
    assert end_of(bench.says("one STO")).text == "one STO"


def test_the_next_prompt_finds_all_of_the_answer_in_the_cache() -> None:
    bench = Bench()
    bench.says("one two")
    used = bench.session.context_used
    events = bench.says("three")
    first = events[0]
    assert isinstance(first, Prefilled)
    assert first.reused == used


@pytest.mark.parametrize("draft", [None, 400])
def test_older_turns_leave_and_the_answer_goes_on(draft: int | None) -> None:
    bench = Bench(capacity=160, draft=draft, max_tokens=80)
    bench.says("x" * 40)
    events = bench.says("y" * 200)
    (notice,) = notices_of(events)
    assert "goes on" in notice
    assert text_of(events) == "y" * 80
    assert end_of(events).reason is Reason.LENGTH
    assert end_of(events).stats.tokens == 80
    assert bench.contents == ["tell", "x" * 40, "tell", "y" * 80]


def test_without_older_turns_the_answer_ends_with_a_notice() -> None:
    bench = Bench(capacity=100)
    events = bench.says("y" * 200)
    (notice,) = notices_of(events)
    assert "100 tokens is full" in notice
    assert end_of(events).reason is Reason.CONTEXT
    assert not bench.session.messages[-1].complete
    assert end_of(bench.says("fine")).text == "fine"


def test_older_turns_leave_before_the_answer() -> None:
    bench = Bench(capacity=160, system="Be kind.")
    bench.says("x" * 60)
    events = list(bench.session.reply("z" * 40))
    (notice,) = notices_of(events)
    assert "the oldest turn left it" in notice
    assert len(bench.session.messages) == 5


def test_a_draft_whose_context_is_full_is_left_out_with_one_notice() -> None:
    bench = Bench(draft=60, max_tokens=80)
    events = bench.says("y" * 200)
    (notice,) = notices_of(events)
    assert "60 tokens is full" in notice
    assert text_of(events) == "y" * 80
    assert end_of(events).stats.proposed > 0


def test_the_fallback_for_a_missing_template_is_told_before_anything() -> None:
    (notice,) = Bench().session.notices
    assert "--chat-template" in notice


def test_what_it_says_of_itself() -> None:
    bench = Bench(draft=400)
    session = bench.session
    assert (session.target_name, session.draft_name) == ("fake", "fake")
    assert (session.method, session.draft_length) == ("draft", 4)
    assert (session.context_size, session.context_used) == (400, 0)
    assert (session.memory().weights, session.memory().kv_cache) == (14, 10)
    plain = Bench().session
    assert (plain.method, plain.draft_name, plain.draft_length) == ("plain", None, 0)


def test_what_the_settings_have_to_tell_is_told_first() -> None:
    bench = Bench(notices=("Fetch it.",))
    assert bench.session.notices[0] == "Fetch it."
    assert len(bench.session.notices) == 1 + len(Bench().session.notices)
