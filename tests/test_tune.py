"""What is measured, kept and gone by when a pair that is loaded is tuned, whoever shows it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgespec import tune as tuner
from edgespec.calibrate import finish
from edgespec.errors import Cancelled, DecodeError, EdgeSpecError, UsageError
from edgespec.measuring import Measured, Outcome, Stopped, TuneEvent
from edgespec.reply import Notice
from edgespec.settings import Load
from profiles.tuned import Key, Tuned, TunedStore
from tests.profiles.tuned_results import KEY, tuned
from tests.timed_fakes import Clock, TimedModel

ONE = Measured(1, 2, "verify, 1 at 64", 0.1)
LATER = "2026-02-02T03:04:05+00:00"


class FakePair:
    """As much of a pair as is asked for."""

    def __init__(self) -> None:
        self.target = self._loaded("big")
        self.draft = self._loaded("small")
        self.models = [self.target, self.draft]
        self.drafters: dict[str, object] = {}
        self.adopted: list[Tuned] = []
        self.told: str | None = None

    def _loaded(self, name: str) -> SimpleNamespace:
        weights = SimpleNamespace(name=name, rolls_back=True)
        return SimpleNamespace(
            weights=weights, model=TimedModel(Clock(), lambda tokens, depth, threads: 0.01)
        )

    def adopt(self, load: Load, found: Tuned, store: TunedStore) -> str | None:
        assert store.load(found.key) == found, "what is gone by is stored"
        self.adopted.append(found)
        return self.told


@dataclass
class Measurement:
    """In the place of `tune`: disturbs what measuring disturbs, and ends as it is told."""

    end: Tuned | BaseException
    asked: list[bool] = field(default_factory=list)

    def __call__(
        self, pair: FakePair, load: Load, key: Key, store: TunedStore, *, quick: bool
    ) -> Generator[Measured, None, Tuned]:
        assert pair.target.model.row_limit is None
        self.asked.append(quick)
        for loaded in pair.models:
            loaded.model.extend([1, 2, 3], rows=1)
            loaded.model.set_threads(5, 6)
        yield ONE
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


@pytest.fixture
def store(tmp_path: Path) -> TunedStore:
    return TunedStore(tmp_path / "tuned")


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> FakePair:
    monkeypatch.setattr(tuner, "key_of", lambda pair, load: KEY)
    return FakePair()


def measuring(monkeypatch: pytest.MonkeyPatch, end: Tuned | BaseException) -> Measurement:
    made = Measurement(end)
    monkeypatch.setattr(tuner, "tune", made)
    return made


def events(
    pair: FakePair,
    store: TunedStore,
    *,
    quick: bool = False,
    force: bool = False,
    load: Load | None = None,
) -> list[TuneEvent]:
    made = tuner.tune_events(
        pair,  # type: ignore[arg-type]
        load or Load(),
        quick=quick,
        force=force,
        store=store,
    )
    return list(made)


def test_what_is_new_is_stored_and_gone_by(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tuned()
    made = measuring(monkeypatch, found)
    pair.told = "Strict: so and so."
    assert events(pair, store) == [ONE, Notice("Strict: so and so."), Outcome(found, found, True)]
    assert store.load(KEY) == found
    assert pair.adopted == [found]
    assert made.asked == [False]


@pytest.mark.parametrize(
    ("known", "quick", "force", "again"),
    [
        ({}, False, False, False),
        ({}, True, False, False),
        ({"quick": True}, True, False, False),
        ({"quick": True}, False, False, True),
        ({"busy": "Others."}, True, False, True),
        ({}, False, True, True),
    ],
)
def test_what_is_known_well_enough_is_not_measured(
    pair: FakePair,
    store: TunedStore,
    monkeypatch: pytest.MonkeyPatch,
    known: dict[str, object],
    *,
    quick: bool,
    force: bool,
    again: bool,
) -> None:
    before, found = tuned(KEY, **known), tuned(measured_at=LATER)
    store.save(before)
    made = measuring(monkeypatch, found)
    told = events(pair, store, quick=quick, force=force)
    if again:
        assert told == [ONE, Outcome(found, found, True)]
        assert store.load(KEY) == found
    else:
        assert told == [Outcome(before, before, False)]
        assert made.asked == []
        assert pair.adopted == []


def test_figures_of_a_busy_machine_do_not_replace_better_ones(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, found = tuned(), tuned(measured_at=LATER, busy="Others.")
    store.save(before)
    measuring(monkeypatch, found)
    assert events(pair, store, force=True)[-1] == Outcome(found, before, True)
    assert store.load(KEY) == before
    assert pair.adopted == [before]
    store.save(tuned(busy="Yet others."))
    assert events(pair, store)[-1] == Outcome(found, found, True)
    assert store.load(KEY) == found


def test_why_older_figures_no_longer_hold(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(tuned(KEY.model_copy(update={"build": "other"})))
    measuring(monkeypatch, tuned())
    first = events(pair, store)[0]
    assert isinstance(first, Notice)
    assert "llama.cpp was rebuilt" in first.text


@pytest.mark.parametrize("end", [tuned(), Cancelled(), DecodeError("It failed.")])
def test_the_pair_is_left_as_it_was(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch, end: Tuned | BaseException
) -> None:
    def limit(depth: int) -> int:
        return 3

    pair.target.model.row_limit = limit
    pair.target.model.set_threads(2, 4)
    measuring(monkeypatch, end)
    with suppress(DecodeError):
        events(pair, store)
    assert pair.target.model.row_limit is limit
    models = [loaded.model for loaded in pair.models]
    assert [(one.threads, one.batch_threads) for one in models] == [(2, 4), (1, 1)]
    assert [len(one.tokens) for one in models] == [0, 0]
    assert bool(pair.adopted) is isinstance(end, Tuned)


@pytest.mark.parametrize("quick", [True, False])
def test_cancelled(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch, *, quick: bool
) -> None:
    measuring(monkeypatch, Cancelled())
    assert events(pair, store, quick=quick) == [ONE, Stopped(goes_on=not quick)]
    assert store.all() == []


def test_a_disk_that_is_full_is_told(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, tuned())
    store.folder.write_text("")
    with pytest.raises(EdgeSpecError, match=r"The results in .*tuned cannot be used"):
        events(pair, store)


def test_what_cannot_be_tuned_is_told(pair: FakePair, store: TunedStore) -> None:
    with pytest.raises(UsageError, match="--draft-length 4"):
        events(pair, store, load=Load(draft_length=4))
    pair.target.weights.rolls_back = False
    with pytest.raises(UsageError, match="big cannot take back"):
        events(pair, store)


def test_the_quick_form_leaves_alone_what_a_thorough_one_left(
    pair: FakePair, store: TunedStore
) -> None:
    samples = {"verify 64 1": [1.0], "exact 200 16 1/1": [4.0]}
    store.save_partial(KEY, samples)
    store.save(tuned(threads=1, batch_threads=1))
    steps = tuner.tune(pair, Load(), KEY, store, quick=True)  # type: ignore[arg-type]
    first = next(steps)
    assert first.done == 1
    assert first.total > 1, "what is left can be shown"
    found = finish(steps)
    assert found.quick
    assert store.load_partial(KEY) == samples
    before = tuned()
    assert (found.exact_rows, found.acceptance) == (before.exact_rows, before.acceptance)
