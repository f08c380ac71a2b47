"""Tuning the models of a session that goes on afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from edgespec import quick
from edgespec.errors import UsageError
from edgespec.measuring import Measured, Outcome, Stopped
from edgespec.pair import Pair
from edgespec.prospect import look_ahead
from edgespec.session import Session
from edgespec.settings import Load, Settings
from edgespec.tune import known_ahead
from edgespec.tuned_keys import key_ahead, key_of
from edgespec.tuning import costs_of
from profiles.tuned import TunedStore
from tests.conftest import ModelFiles
from tests.profiles.tuned_results import tuned
from tests.real import rig

COUNT = "Count from 1 to 30, separated by commas."


@pytest.fixture(autouse=True)
def _little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of the test's own, and few samples of few sizes: what they say is not looked at."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(quick, "_ROUNDS", 2)
    monkeypatch.setattr(quick, "_ROWS", (4, 2))


@pytest.fixture
def session() -> Iterator[Session]:
    load = Load(threads=1, context=512)
    made = Session.open(Settings(load=load, sampling=rig.GREEDY, max_tokens=12))
    yield made
    made.close()


def test_it_answers_as_before_and_goes_by_the_new_figures(session: Session) -> None:
    auto = session.pair.auto
    assert auto is not None
    before = rig.listen(session.reply(COUNT))
    learned = auto.learned()
    first = session.tuned()
    assert first is not None
    steps = list(session.tune(quick=True, force=True))
    outcome = steps[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.measured
    assert outcome.found.measured_at >= first.measured_at
    counts = [step.done for step in steps if isinstance(step, Measured)]
    assert len(counts) == len(steps) - 1
    assert counts == sorted(counts)
    assert session.tuned() == outcome.holds
    assert auto.costs == costs_of(outcome.holds)
    assert auto.learned() == learned
    assert session.context_used == 0
    again = rig.listen(session.regenerate())
    assert again.text == before.text
    assert again.end.stats.reused_tokens == 0
    assert rig.listen(session.reply("And backwards?")).text
    assert (
        list(session.tune(quick=True, force=False))
        == [Outcome(outcome.holds, outcome.holds, False)]
        or outcome.holds.busy
    )


def test_cancelled_it_keeps_what_it_has_and_answers(session: Session) -> None:
    models = [loaded.model for loaded in session.pair.models]
    threads = [(model.threads, model.batch_threads) for model in models]
    rig.listen(session.reply(COUNT))
    steps = session.tune(quick=False, force=True)
    assert isinstance(next(steps), Measured)
    assert isinstance(next(steps), Measured)
    session.cancel()
    assert list(steps) == [Stopped(goes_on=True)]
    kept = TunedStore.default().load_partial(key_of(session.pair, session.settings.load))
    assert sum(len(row) for name, row in kept.items() if name.startswith("verify")) == 2
    assert [(model.threads, model.batch_threads) for model in models] == threads
    assert rig.listen(session.regenerate()).end.stats.tokens == 12
    steps = session.tune(quick=True, force=True)
    next(steps)
    session.cancel()
    assert list(steps) == [Stopped(goes_on=False)]
    first = next(session.tune(quick=False, force=True))
    assert isinstance(first, Measured)
    assert first.done == 3, "it goes on"


def test_a_strict_session_stays_strict(models: ModelFiles) -> None:
    load = Load(str(models["rambler"]), threads=1, context=512, strict=True)
    with closing(Session.open(Settings(load=load, sampling=rig.GREEDY, max_tokens=8))) as session:
        target = session.pair.target.model
        assert target.row_limit is not None
        widths = [target.row_limit(depth) for depth in (10, 250, 400)]
        list(session.tune(quick=True, force=True))
        assert target.row_limit is not None
        assert [target.row_limit(depth) for depth in (10, 250, 400)] == widths
        assert rig.listen(session.reply("hello")).end.stats.tokens == 8


def test_a_fixed_length_is_refused(models: ModelFiles) -> None:
    load = Load(str(models["rambler"]), "lookup", draft_length=4, threads=1, context=512)
    with (
        closing(Session.open(Settings(load=load))) as session,
        pytest.raises(UsageError, match="--draft-length 4"),
    ):
        list(session.tune(quick=True, force=True))


@pytest.mark.parametrize("draft", ["bad", "lookup", "none", None])
def test_what_is_known_is_found_without_loading(models: ModelFiles, draft: str | None) -> None:
    store = TunedStore.default()
    named = str(models["bad"]) if draft == "bad" else draft
    load = Load(str(models["rambler"]), named, draft_length=31, threads=1, context=512)
    assert known_ahead(load, store, quick=True) is None
    ahead = look_ahead(load)
    path = ahead.draft.target if ahead.draft else None
    key = key_ahead(load, ahead.plan, ahead.target.target, path)
    with closing(Pair.open(load)) as pair:
        assert key == key_of(pair, load)
    alone = key_ahead(load, replace(ahead.plan, draft=None), ahead.target.target, path)
    assert alone.draft is None, "there may be no room for the draft"
    known = tuned(key, quick=True)
    store.save(known)
    assert known_ahead(load, store, quick=True) == known
    assert known_ahead(load, store, quick=False) is None
    store.save(tuned(key, busy="Others."))
    assert known_ahead(load, store, quick=True) is None
