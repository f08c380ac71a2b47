"""Who is asked what in a benchmark, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from edgespec.bench.arms import (
    AUTO_PARTS,
    METHODS,
    Answer,
    Arm,
    Learner,
    Local,
    Order,
    arms_of,
    parse_methods,
)
from edgespec.bench.measure import Plan, Run, measure
from edgespec.bench.prompts import encode
from edgespec.drafters.base import Draft, Policy
from edgespec.drafters.lookup import LookupDrafter
from edgespec.errors import Cancelled, ContextFullError, DecodeError, UsageError
from edgespec.methods import WAYS, Means
from edgespec.pair import Pair
from edgespec.sampling import Sampling
from edgespec.settings import MAX_DRAFT, Load
from edgespec.stats import Stats
from tests.bench_runs import prompt
from tests.conftest import ModelFiles

HEADED = {"medusa", "eagle3", "eagle3-tree", "mtp"}
"""What a pair without heads cannot use."""


class Clerk:
    """Writes down what it is asked; shares its book with others."""

    def __init__(self, name: str, book: list[tuple[str, object]], *, fails_at: int = -1) -> None:
        self._name, self._book, self._fails_at = name, book, fails_at

    def answer(self, order: Order) -> Answer:
        if len(self._book) == self._fails_at:
            raise DecodeError("broken", "")
        self._book.append((self._name, order))
        return Answer((1,), Stats())

    def forget(self) -> bool:
        self._book.append((self._name, "forget"))
        return True


class Book:
    """Three arms with one book, and a plan for them."""

    def __init__(self, *, fails_at: int = -1) -> None:
        self.entries: list[tuple[str, object]] = []
        self.said: list[str] = []
        self.arms = [Arm(name, 0, Clerk(name, self.entries, fails_at=fails_at)) for name in "abc"]

    def measure(self, plan: Plan, seconds: Sequence[float] = (0.0,) * 99) -> Iterator[Run]:
        clock = iter(seconds)
        return measure(self.arms, plan, self.said.append, lambda: next(clock))

    @property
    def orders(self) -> list[tuple[str, Order]]:
        """What was asked after the warm-up."""
        return [(name, what) for name, what in self.entries[3:] if isinstance(what, Order)]


def plan(temperatures: Sequence[float] = (0.0,), *, repeats: int = 1, forget: bool = False) -> Plan:
    prompts = [prompt(n, "x") for n in range(2)]
    return Plan(
        prompts, [[1], [1, 2]], temperatures, Sampling(top_k=5), 96, repeats, 4, "rejection", forget
    )


def test_arms_take_turns_and_the_order_rotates() -> None:
    book = Book()
    runs = list(book.measure(plan(repeats=2)))
    assert "".join(name for name, _ in book.orders) == "abcbcabcacab"
    assert [run.method for run in runs] == list("abcbcabcacab")
    assert [(run.repeat, run.number) for run in runs[::3]] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_all_arms_of_a_turn_are_asked_the_same_and_turns_differ() -> None:
    book = Book()
    list(book.measure(plan((0.0, 0.8), repeats=2)))
    orders = [order for _, order in book.orders]
    for i in range(0, len(orders), 3):
        assert orders[i] == orders[i + 1] == orders[i + 2]
    turns = orders[::3]
    assert [order.sampling.temperature for order in turns] == [0.0] * 4 + [0.8] * 4
    assert {order.sampling.top_k for order in turns} == {5}
    assert [order.prompt for order in turns] == [[1], [1, 2]] * 4
    seeds = [order.seed for order in turns]
    assert seeds[:4] == seeds[4:]
    assert len(set(seeds)) == 4


def test_a_short_warm_up_that_does_not_count() -> None:
    book = Book()
    runs = list(book.measure(plan()))
    warm = book.entries[:3]
    assert [name for name, _ in warm] == ["a", "b", "c"]
    assert [order.max_tokens for _, order in warm if isinstance(order, Order)] == [8] * 3
    assert {order.max_tokens for _, order in book.orders} == {96}
    assert len(runs) == 6


@pytest.mark.parametrize("forget", [True, False])
def test_forgetting_comes_before_every_answer_or_never(forget: bool) -> None:
    book = Book()
    list(book.measure(plan(forget=forget)))
    entries = book.entries[3:]
    if forget:
        assert all(what == "forget" for _, what in entries[::2])
        assert [name for name, _ in entries[::2]] == [name for name, _ in entries[1::2]]
    assert len(entries) == (12 if forget else 6)


def test_what_was_finished_before_something_broke_is_there() -> None:
    book = Book(fails_at=3 + 4)
    runs = book.measure(plan())
    assert [next(runs).method for _ in range(4)] == ["a", "b", "c", "b"]
    with pytest.raises(DecodeError):
        next(runs)


def test_progress_says_where_and_how_long_from_the_second_turn_on() -> None:
    book = Book()
    list(book.measure(plan((0.0, 0.8), repeats=2), seconds=[100.0, *(110.0,) * 7]))
    assert len(book.said) == 8
    assert book.said[0] == "prompt 1 of 2, repetition 1 of 2, temperature 0"
    assert book.said[1] == "prompt 2 of 2, repetition 1 of 2, temperature 0, about 1:10 left"
    assert book.said[2].startswith("prompt 1 of 2, repetition 2 of 2, temperature 0, about 0:30")
    assert book.said[-1].startswith("prompt 2 of 2, repetition 2 of 2, temperature 0.8")
    book = Book()
    list(book.measure(plan()))
    assert book.said[0] == "prompt 1 of 2"


def test_methods_by_name() -> None:
    assert parse_methods("all") is None
    assert parse_methods("lookup, auto,lookup") == ["lookup", "auto"]
    for text, part in (("magic", "'magic'"), ("", "none"), (",", "none"), ("all,auto", "'all'")):
        with pytest.raises(UsageError, match=part):
            parse_methods(text)


class Recorder(LookupDrafter):
    """A learner that notes its limits and calls itself by turns."""

    def __init__(self) -> None:
        super().__init__(min_match=1)
        self.limits: list[int] = []
        self.forgot = 0

    def propose(self, limit: int, policy: Policy) -> Draft:
        self.limits.append(limit)
        draft = super().propose(limit, policy)
        return Draft(draft.tokens, draft.proposals, "odd" if len(self.limits) % 2 else "even")

    def forget(self) -> None:
        self.forgot += 1


@pytest.fixture
def opened(models: ModelFiles) -> Iterator[Pair]:
    load = Load(str(models["rambler"]), str(models["rambler"]), None, context=256, threads=1)
    with closing(Pair.open(load)) as pair:
        yield pair


@pytest.fixture
def pair(opened: Pair) -> Pair:
    drafters = {**opened.drafters, "auto": Recorder()}
    return Pair(opened.target, opened.draft, drafters, "auto", opened.means)


def test_fixed_methods_come_at_each_length_and_auto_once(pair: Pair) -> None:
    keys = [arm.key for arm in arms_of(pair, None, [2, 4])]
    assert keys[0] == ("plain", 0)
    assert {name for name, length in keys if not length} == {"plain", "auto", "lookahead"}
    for method in WAYS.keys() - HEADED:
        lengths = [length for name, length in keys if name == method]
        assert lengths in ([0], [2, 4]), method
    keys = [arm.key for arm in arms_of(pair, ["auto", "plain", "lookup"], [3])]
    assert keys == [("plain", 0), ("auto", 0), ("lookup", 3)]


def test_without_lengths_each_method_has_its_own(pair: Pair) -> None:
    keys = [arm.key for arm in arms_of(pair, None)]
    assert keys[0] == ("plain", 0)
    for method, way in WAYS.items():
        if method != "plain" and method not in HEADED:
            lengths = [length for name, length in keys if name == method]
            assert lengths == list(way.compared or (0,))


def test_memory_is_that_of_the_draft_model_for_who_uses_it(opened: Pair) -> None:
    assert opened.draft
    needed = opened.draft.weights.file_bytes // 2
    named = [name for name in METHODS if name not in HEADED]
    found = {arm.method: arm.memory_bytes for arm in arms_of(opened, named, [2])}
    assert found["plain"] == found["lookup"] == found["auto-lookup"] == 0
    assert found["draft"] == found["auto"] == found["auto-draft"]
    assert found["draft"]
    assert found["draft"] > needed


def test_parts_of_auto_draft_with_nothing_else(opened: Pair) -> None:
    assert [arm.key for arm in arms_of(opened, AUTO_PARTS)] == [
        ("plain", 0),
        ("auto-lookup", 0),
        ("auto-draft", 0),
    ]
    assert not {arm.method for arm in arms_of(opened, None)} & set(AUTO_PARTS)
    plain, *parts = (arm.answerer.answer(order(64)) for arm in arms_of(opened, AUTO_PARTS))
    by_lookup, by_draft = (set(answer.sources) for answer in parts)
    assert by_lookup <= {"", "lookup"}
    assert by_draft <= {"", "draft", "draft+tree"}
    assert by_lookup | by_draft > {""}
    assert {answer.tokens for answer in parts} == {plain.tokens}


def test_a_method_that_the_pair_lacks(pair: Pair) -> None:
    means = Means(refusal="--draft none is given")
    plain = Pair(pair.target, None, {"plain": pair.drafters["plain"]}, "plain", means)
    assert [arm.key for arm in arms_of(plain, None, [2])] == [("plain", 0)]
    for method in ("draft", "auto", "lookup"):
        with pytest.raises(UsageError, match=f"{method} cannot be used: --draft none is given"):
            arms_of(plain, parse_methods(method), [2])
    single = Pair(pair.target, None, {"plain": pair.drafters["plain"]}, "plain", Means())
    for method in ("draft", "auto-draft", "auto-lookup"):
        with pytest.raises(UsageError) as caught:
            arms_of(single, parse_methods(method), [2])
        named = {"draft": "--draft", "auto-draft": "--methods", "auto-lookup": "--methods"}
        assert named[method] in caught.value.hint


def order(length: int = 24) -> Order:
    return Order([5, 6, 7, 5, 6, 7, 5, 6], Sampling(temperature=0), length)


def test_auto_may_draft_as_much_as_there_is_room_for(pair: Pair) -> None:
    auto = arms_of(pair, ["auto"], [2])[1]
    answer = auto.answerer.answer(order(64))
    recorder = pair.drafters["auto"]
    assert isinstance(recorder, Recorder)
    assert recorder.limits[0] == MAX_DRAFT
    assert sum(answer.sources.values()) == answer.stats.rounds == len(recorder.limits)
    assert set(answer.sources) == {"odd", "even"}
    fixed = Local(pair, recorder, 3)
    recorder.limits.clear()
    fixed.answer(order())
    assert max(recorder.limits) == 3


def test_an_answer_starts_from_empty_caches_and_is_that_of_plain_decoding(pair: Pair) -> None:
    answers = [arm.answerer.answer(order()) for arm in arms_of(pair, None, [2]) for _ in range(2)]
    assert len({answer.tokens for answer in answers}) == 1
    assert {answer.stats.reused_tokens for answer in answers} == {0}
    assert {answer.stats.tokens for answer in answers} == {24}
    assert all(answer.outside and 0 < answer.outside < 1 for answer in answers)
    assert answers[0].sources == {"": 23}


def test_half_an_answer_is_none(pair: Pair) -> None:
    pair.interrupt(on=True)
    try:
        with pytest.raises(Cancelled):
            arms_of(pair, ["lookup"], [2])[1].answerer.answer(order())
    finally:
        pair.interrupt(on=False)


def test_only_learners_forget(pair: Pair) -> None:
    recorder = pair.drafters["auto"]
    assert isinstance(recorder, Learner)
    assert Local(pair, recorder, 2).forget()
    assert isinstance(recorder, Recorder)
    assert recorder.forgot == 1
    assert not Local(pair, pair.drafters["lookup"], 2).forget()


def test_a_prompt_must_fit_with_its_answer(pair: Pair) -> None:
    prompts = [prompt(0, "x")]
    (tokens,) = encode(pair, prompts, 1)
    assert pair.target.weights.tokenizer.tokenize("go", special=False)[0] in tokens
    room = pair.target.model.capacity - len(tokens)
    assert encode(pair, prompts, room) == [tokens]
    with pytest.raises(ContextFullError, match="'p0'"):
        encode(pair, prompts, room + 1)
