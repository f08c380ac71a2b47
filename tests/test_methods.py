"""The ways to draft by name: which one is used, and why another cannot be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import get_args

import numpy as np
import pytest

from edgespec import methods
from edgespec.costs import Costs, CostTable
from edgespec.drafters.base import Drafter, Policy
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.lookup import LookupDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import UsageError
from edgespec.events import FirstToken, Round
from edgespec.loaded import LoadedModel
from edgespec.making import Parts
from edgespec.methods import WAYS, Drafters, Means, Way, chosen
from edgespec.pair import Pair
from edgespec.sampling import Sampling
from edgespec.session import Session
from edgespec.settings import MAX_DRAFT, Load, Method, Settings
from tests.conftest import ModelFiles
from tests.eagle_fakes import FakeHead
from tests.fakes import FakeModel, chaotic, noisy
from tests.head_fakes import FakeHeads

COSTS = Costs((CostTable(0, {1: 1.0, 32: 4.0}, {1: 0.1}),))
ALL = Means(draft=True, heads=True, eagle3=True, mtp=True, trees=True)


def model() -> FakeModel:
    return FakeModel(chaotic(8, 1), 8)


def test_every_name_has_a_way_and_sensible_lengths() -> None:
    assert tuple(WAYS) == get_args(Method)
    for name, way in WAYS.items():
        assert way.about
        assert way.length == 0 if name == "plain" else 1 <= way.length <= MAX_DRAFT
        assert all(1 <= length <= MAX_DRAFT for length in way.compared)


@pytest.mark.parametrize("name", get_args(Method))
def test_each_is_made_of_its_parts_and_drafts(name: Method) -> None:
    head = FeatureModel(FakeHead(chaotic(8, 1), 8))
    heads = FakeHeads(chaotic(8, 1), 8)
    parts = Parts(model(), model(), Load(), COSTS, heads=heads, reader=head)
    drafter = WAYS[name].make(parts)
    drafter.begin([1, 2, 1, 2])
    drafter.accept([1])
    drafter.close()


@pytest.mark.parametrize(
    ("missing", "field", "needed", "hint"),
    [
        ("draft", "model", "a draft model", "--draft"),
        ("heads", "heads", "Medusa heads", "edgespec train medusa"),
        ("eagle3", "eagle3", "an EAGLE-3 head", "edgespec train eagle3"),
        ("mtp", "mtp", "a target that is loaded with its own MTP layer", "--method mtp"),
    ],
)
def test_a_method_says_what_it_needs(missing: str, field: str, needed: str, hint: str) -> None:
    means = replace(ALL, **{missing: False})  # type: ignore[arg-type]
    for name, way in WAYS.items():
        lack = means.lack(name)
        assert (lack is not None) is getattr(way, field)
        if lack:
            assert name in lack.message
            assert f"needs {needed}" in lack.message
            assert hint in lack.hint
        assert ALL.lack(name) is None


@pytest.mark.parametrize(
    ("means", "method", "instead"),
    [
        (Means(trees=True), "draft", "and none is given"),
        (Means(heads=True, trees=True), "draft", "what is given is Medusa heads"),
        (Means(eagle3=True, trees=True), "medusa", "what is given is an EAGLE-3 head"),
        (Means(draft=True, trees=True), "eagle3", "what is given is a model"),
    ],
)
def test_it_says_what_there_is_instead(means: Means, method: Method, instead: str) -> None:
    lack = means.lack(method)
    assert lack
    assert instead in lack.message


def test_where_nothing_is_drafted_only_plain_is_left() -> None:
    means = Means(draft=True, trees=True, refusal="x cannot take back tokens")
    for name in WAYS:
        lack = means.lack(name)
        assert (lack is None) is (name == "plain")
        assert lack is None or "x cannot take back tokens" in lack.message


def test_trees_need_a_target_that_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    way = Way("", lambda parts: LookupDrafter(), trees=True)
    monkeypatch.setattr(methods, "WAYS", {**WAYS, "lookup": way})
    lack = Means().lack("lookup")
    assert lack
    assert "--strict" in lack.message
    assert Means(trees=True).lack("lookup") is None


def test_lookahead_says_why_it_is_off_where_rows_are_dear() -> None:
    dear, free = (Costs((CostTable(0, {1: 1.0, 32: last}),)) for last in (32.0, 1.0))
    assert WAYS["lookahead"].doubt(dear).startswith("lookahead is off by default here: a pass over")
    assert WAYS["lookahead"].doubt(free) == ""
    doubtful = {name for name, way in WAYS.items() if way.doubt(dear)}
    assert doubtful == {"lookahead", "medusa"}
    for costs in (dear, free):
        WAYS["lookahead"].make(Parts(model(), costs=costs)).begin([1, 2, 3])


def test_medusa_drafts_nothing_where_a_row_costs_a_token_and_says_so() -> None:
    dear, cheap = (Costs((CostTable(0, {1: 1.0, 32: last}),)) for last in (33.0, 4.0))
    assert (
        WAYS["medusa"].doubt(dear).startswith("medusa drafts nothing here: one more row costs 1.0")
    )
    assert WAYS["medusa"].doubt(cheap) == ""
    for costs, drafts in ((dear, False), (cheap, True)):
        heads = FakeHeads(lambda text: np.array([9, 0, 0, 0], np.float32), 4)
        parts = Parts(model(), load=Load(method="medusa"), costs=costs, heads=heads)
        drafter = WAYS["medusa"].make(parts)
        drafter.begin([1, 2])
        drafter.read_states(1, np.array([[1, -1, 1]], np.float32))  # type: ignore[attr-defined]
        policy = Policy(Sampling(temperature=0), lambda: 0.0, draw=False)
        assert bool(drafter.propose(4, policy).tokens) is drafts


@pytest.mark.parametrize(
    ("load", "means", "method"),
    [
        (Load(), Means(), "auto"),
        (Load(), ALL, "auto"),
        (Load(), Means(refusal="x"), "plain"),
        (Load(draft_length=4), Means(draft=True, trees=True), "draft"),
        (Load(draft_length=4), ALL, "medusa"),
        (Load(draft_length=4), Means(heads=True), "medusa"),
        (Load(), Means(heads=True), "auto"),
        (Load(method="medusa"), Means(heads=True), "medusa"),
        (Load(draft_length=4), Means(), "plain"),
        (Load(draft_length=4), Means(eagle3=True), "eagle3"),
        (Load(), Means(eagle3=True), "auto"),
        (Load(method="eagle3-tree"), ALL, "eagle3-tree"),
        (Load(draft="lookup", draft_length=4), Means(), "lookup"),
        (Load(method="lookup"), ALL, "lookup"),
        (Load(method="lookup", draft_length=4), ALL, "lookup"),
        (Load(method="draft"), ALL, "draft"),
        (Load(method="plain"), Means(refusal="x"), "plain"),
    ],
)
def test_what_answers_are_decoded_with(load: Load, means: Means, method: Method) -> None:
    assert chosen(load, means) == method


def test_a_method_that_is_named_is_never_exchanged_for_another() -> None:
    for means in (Means(), Means(draft=True, refusal="x")):
        with pytest.raises(UsageError, match="draft"):
            chosen(Load(method="draft"), means)


def answer(parts: Parts, drafter: Drafter, prompt: list[int], *, tokens: int = 30) -> list[int]:
    """A greedy answer, as far as it comes."""
    options = DecodeOptions(sampling=Sampling(temperature=0), max_tokens=tokens)
    text: list[int] = []
    for event in decode(parts.target, drafter, prompt, options):
        match event:
            case FirstToken(token=token):
                text.append(token)
            case Round():
                text.extend(event.tokens)
            case _:
                pass
    return text


@pytest.mark.parametrize("cancelled_at", [None, 40, 45, 50])
def test_drafters_that_share_a_draft_model_take_turns(cancelled_at: int | None) -> None:
    """Each finds in its cache what another left there, also in the midst of a round that was cancelled."""
    likely = cache(chaotic(8, 3))
    target = FakeModel(lambda text: likely(text[-3:]), 8)
    guess = cache(noisy(likely, 7, 0.5))
    draft = FakeModel(lambda text: guess(text[-3:]), 8)
    head = FeatureModel(FakeHead(lambda text: guess(text[-3:]), 8))
    parts = Parts(target, draft, Load(), COSTS, heads=FakeHeads(likely, 8), reader=head)
    drafters = {name: WAYS[name].make(parts) for name in WAYS}
    prompts = [[1, 2, 3, 1, 2], [1, 2, 3, 4], [5]]
    expected = [answer(parts, drafters["plain"], prompt) for prompt in prompts]
    for first in drafters.values():
        for name, second in drafters.items():
            for prompt, text in zip(prompts, expected, strict=True):
                if cancelled_at is not None:
                    target.fail_at = target.fed + cancelled_at
                    answer(parts, first, prompts[0], tokens=99)
                    target.fail_at = None
                assert answer(parts, second, prompt) == text, name


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was made."""
    made: list[str] = []

    def maker(name: Method) -> Way:
        def make(parts: Parts) -> LookupDrafter:
            made.append(name)
            return LookupDrafter()

        return Way("", make)

    monkeypatch.setattr(methods, "WAYS", {name: maker(name) for name in WAYS})
    return made


def test_a_drafter_is_made_when_it_is_first_asked_for_and_once(count: list[str]) -> None:
    own = LookupDrafter()
    drafters = Drafters(Parts(model()), ["plain", "draft"], {"auto": own})
    assert list(drafters) == ["plain", "draft", "auto"]
    assert len(drafters) == 3
    assert "draft" in drafters
    assert "lookup" not in drafters
    assert count == []
    assert drafters.made == [own]
    assert drafters["auto"] is own
    assert drafters["draft"] is drafters["draft"]
    assert count == ["draft"]
    assert drafters.made == [drafters["draft"], own]
    with pytest.raises(KeyError):
        drafters["lookup"]


@pytest.fixture
def load(models: ModelFiles) -> Load:
    tiny = str(models["rambler"])
    return Load(tiny, tiny, context=64, threads=1)


@pytest.mark.parametrize("name", ["plain", "lookup", "draft"])
def test_a_pair_is_opened_for_the_method_that_is_named(load: Load, name: Method) -> None:
    """Without a draft model that it does not need, and without measuring what does not matter to it."""
    pair = Pair.open(replace(load, method=name))
    session = Session(pair, Settings(replace(load, method=name)))
    try:
        assert pair.method == name
        assert (pair.draft is not None) is WAYS[name].model
        assert pair.auto is None
        assert session.draft_length == (0 if name == "plain" else 8)
        assert not any("Measured" in text for text in pair.notices)
    finally:
        session.close()


def test_the_length_is_that_which_is_asked_for(load: Load) -> None:
    load = replace(load, method="lookup", draft_length=3)
    session = Session.open(Settings(load))
    assert (session.method, session.draft_length) == ("lookup", 3)
    session.close()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"draft": "lookup"}, "needs a draft model"),
        ({"draft": "none"}, "--draft none"),
        ({"draft_length": 0}, "--draft-length 0"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_loaded(
    load: Load, changes: dict[str, object], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoadedModel, "open", lambda *_: pytest.fail("it was loaded"))
    with pytest.raises(UsageError, match=part):
        Pair.open(replace(load, method="draft", **changes))  # type: ignore[arg-type]
