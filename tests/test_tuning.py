"""Costs for a pair, whatever state the store is in: nothing here may keep anybody from chatting."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgespec import tuned_keys, tuning
from edgespec.calibrate import Bench
from edgespec.costs import Costs
from edgespec.errors import DecodeError
from edgespec.heads.file import About, HeadFile
from edgespec.settings import Load
from edgespec.tuned_keys import key_of
from edgespec.tuning import costs_for, costs_of, keep_exact, recall, remember
from profiles.tuned import Table, Tuned, TunedStore
from tests.conftest import ModelFiles
from tests.profiles.tuned_results import tuned
from tests.timed_fakes import Clock, TimedModel

LOAD = Load()


class FakePair:
    """As much of a pair as is asked for."""

    def __init__(self, models: ModelFiles, *, draft: bool = True) -> None:
        self.clock = Clock()
        self.target = self._loaded(models["rambler"], "big", 0.01)
        self.draft = self._loaded(models["bad"], "small", 0.002) if draft else None
        self.head_file: HeadFile | None = None

    def _loaded(self, path: Path, name: str, row: float) -> SimpleNamespace:
        weights = SimpleNamespace(path=path, name=name, rolls_back=True, placed="CPU")
        model = TimedModel(self.clock, lambda tokens, depth, threads: row * (1 + tokens))
        return SimpleNamespace(weights=weights, model=model)

    @property
    def models(self) -> list[SimpleNamespace]:
        return [self.target, *([self.draft] if self.draft else [])]


@pytest.fixture
def store(tmp_path: Path) -> TunedStore:
    return TunedStore(tmp_path / "tuned")


@pytest.fixture
def pair(models: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> FakePair:
    made = FakePair(models)

    def bench(*parts: object) -> Bench:
        return replace(Bench(*parts), clock=made.clock, others=lambda: 0.0)  # type: ignore[arg-type]

    monkeypatch.setattr(tuning, "Bench", bench)
    return made


def ask(pair: FakePair, store: TunedStore, load: Load = LOAD) -> tuple[Costs, str | None]:
    return costs_for(pair, load, store=store)  # type: ignore[arg-type]


def strict(pair: FakePair, store: TunedStore, load: Load = LOAD) -> str | None:
    return keep_exact(pair, load, store=store)  # type: ignore[arg-type]


def stored_for(pair: FakePair, store: TunedStore, load: Load = LOAD, **changes: object) -> Tuned:
    key = key_of(pair, load)  # type: ignore[arg-type]
    made = tuned(key, **changes)
    store.save(made)
    return made


def passes(pair: FakePair) -> int:
    return sum(len(one.model.passes) for one in pair.models)


def test_the_first_use_measures_and_says_so(pair: FakePair, store: TunedStore) -> None:
    costs, notice = ask(pair, store)
    assert notice is not None
    assert "edgespec tune" in notice
    table = costs.tables[0]
    assert table.verify[1] == pytest.approx(0.02)
    assert table.verify[8] == pytest.approx(0.09)
    assert table.draft[1] == pytest.approx(0.004)
    (kept,) = store.all()
    assert kept.quick
    assert (kept.target_name, kept.draft_name) == ("big", "small")
    count = passes(pair)
    assert ask(pair, store) == (costs, None), "the second use measures nothing and says nothing"
    assert passes(pair) == count


def test_stored_costs_come_with_their_threads(pair: FakePair, store: TunedStore) -> None:
    kept = stored_for(pair, store)
    costs, notice = ask(pair, store)
    assert (costs, notice) == (costs_of(kept), None)
    assert costs.at(64).draft == {1: 0.01}
    for one in pair.models:
        assert (one.model.threads, one.model.batch_threads) == (2, 4)
    assert passes(pair) == 0


def test_threads_that_were_asked_for_stay(pair: FakePair, store: TunedStore) -> None:
    load = Load(threads=1)
    stored_for(pair, store, load)
    ask(pair, store, load)
    assert (pair.target.model.threads, pair.target.model.batch_threads) == (1, 1)


def test_what_no_longer_holds_is_measured_again_and_the_reason_told(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(pair, store)
    monkeypatch.setattr(tuned_keys, "build_name", lambda: "new")
    _, notice = ask(pair, store)
    assert notice is not None
    assert "llama.cpp was rebuilt" in notice
    assert len(store.all()) == 2


@pytest.mark.parametrize(
    ("seconds", "quiet", "rows", "again"),
    [(50, True, 2, False), (70, True, 2, True), (70, False, 2, False), (70, False, 1, True)],
)
def test_doubted_figures_are_measured_again_soon_on_a_quiet_machine(
    pair: FakePair,
    store: TunedStore,
    monkeypatch: pytest.MonkeyPatch,
    seconds: int,
    quiet: bool,
    rows: int,
    again: bool,
) -> None:
    monkeypatch.setattr(tuning, "quiet_now", lambda: quiet)
    then = datetime.now(UTC) - timedelta(seconds=seconds)
    few = Table(depth=64, verify={1: 0.1, 4: 0.2} if rows > 1 else {1: 0.1}, draft={1: 0.01})
    stored_for(pair, store, busy="Others.", measured_at=then.isoformat(), tables=(few,))
    ask(pair, store)
    assert bool(passes(pair)) is again


@pytest.mark.parametrize("threads", [(2, 4), (1, 1)])
def test_busy_figures_are_used_for_a_day(
    pair: FakePair, store: TunedStore, threads: tuple[int, int]
) -> None:
    kept = stored_for(pair, store, busy="Others.", measured_at=datetime.now(UTC).isoformat())
    assert ask(pair, store)[0] == costs_of(kept)
    stored_for(pair, store, busy="Others.", measured_at="2026-01-02T03:04:05+00:00")
    pair.target.model.set_threads(*threads)
    costs, notice = ask(pair, store)
    assert costs != costs_of(kept)
    assert notice
    assert notice.startswith("What was measured before was rough. Measured")
    (now,) = store.all()
    assert now.quick
    assert now.acceptance == kept.acceptance
    # Which rows are exact depends on the threads they were found with.
    assert now.exact_rows == (kept.exact_rows if threads == (2, 4) else None)


def test_a_damaged_result_is_told_and_measured_anew(pair: FakePair, store: TunedStore) -> None:
    stored_for(pair, store)
    next(store.folder.glob("*.json")).write_text("{")
    costs, notice = ask(pair, store)
    assert notice is not None
    assert "damaged" in notice
    assert costs.tables[0].verify[1] == pytest.approx(0.02)
    assert ask(pair, store) == (costs, None)


@pytest.mark.parametrize("problem", [DecodeError("It failed."), OSError("No disk.")])
def test_a_failure_is_a_notice_and_a_guess(
    pair: FakePair, store: TunedStore, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(pair.target.model, "extend", fail)
    costs, notice = ask(pair, store)
    assert notice is not None
    assert str(problem) in notice
    assert costs.at(500).verify[1] > 0
    assert costs.at(500).draft[1] > 0
    assert strict(pair, store)
    assert pair.target.model.row_limit(5) == 1


def test_a_folder_that_cannot_be_written_to(pair: FakePair, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    costs, notice = ask(pair, TunedStore(tmp_path / "file" / "tuned"))
    assert costs
    assert notice


def test_a_model_file_that_has_gone(pair: FakePair, store: TunedStore) -> None:
    pair.target.weights.path = Path("gone.gguf")
    costs, notice = ask(pair, store)
    assert costs
    assert notice is not None
    assert "gone.gguf" in notice


def test_cancelled_keeps_nothing_and_says_nothing(pair: FakePair, store: TunedStore) -> None:
    pair.target.model.cancel_at = 6
    costs, notice = ask(pair, store)
    assert costs
    assert notice is None
    assert store.all() == []


def test_a_model_that_cannot_go_back_is_not_measured(pair: FakePair, store: TunedStore) -> None:
    pair.target.weights.rolls_back = False
    assert ask(pair, store)[1] is None
    assert passes(pair) == 0


def test_strict_limits_rows_by_depth(pair: FakePair, store: TunedStore) -> None:
    stored_for(pair, store)
    notice = strict(pair, store)
    assert notice is not None
    assert "up to 15 tokens" in notice
    assert "200" in notice
    assert [pair.target.model.row_limit(depth) for depth in (0, 200, 250, 900)] == [16, 16, 1, 1]
    assert passes(pair) == 0


def test_strict_measures_what_is_not_known_once(pair: FakePair, store: TunedStore) -> None:
    pair.target.model.rounds_alike = lambda depth: 3
    notice = strict(pair, store)
    assert notice is not None
    assert "up to 2 tokens are drafted in a round." in notice
    assert pair.target.model.row_limit(700) == 3
    count = passes(pair)
    assert count > 0
    assert strict(pair, store) == notice
    assert passes(pair) == count
    pair.target.model.row_limit = None
    ask(pair, store)
    assert strict(pair, store) == notice


def test_what_is_exact_is_known_for_the_threads_it_was_found_with(
    pair: FakePair, store: TunedStore
) -> None:
    stored_for(pair, store)
    strict(pair, store)
    assert (pair.target.model.threads, pair.target.model.batch_threads) == (2, 4)
    stored_for(pair, store, exact_rows=None)
    pair.target.model.rounds_alike = lambda depth: 3
    strict(pair, store)
    kept = store.load_partial(key_of(pair, LOAD))  # type: ignore[arg-type]
    assert set(kept) == {f"exact {depth} 16 2/4" for depth in (200, 300, 1000)}


@pytest.mark.parametrize(
    ("place", "value"), [("placed", "20 layers on CUDA0"), ("kv_type", "q8_0")]
)
def test_where_things_are_is_a_part_of_the_key(
    pair: FakePair, store: TunedStore, place: str, value: str
) -> None:
    kept = stored_for(pair, store)
    setattr(pair.target.weights if place == "placed" else pair.target.model, place, value)
    assert ask(pair, store)[0] != costs_of(kept)
    assert key_of(pair, Load(rpc=("host:1",))) != key_of(pair, LOAD)  # type: ignore[arg-type]


def test_strict_with_no_exact_width_says_so(pair: FakePair, store: TunedStore) -> None:
    stored_for(pair, store, exact_rows={200: 1})
    notice = strict(pair, store)
    assert notice is not None
    assert "nothing is drafted" in notice


def test_costs_are_measured_beyond_a_limit_that_stays(pair: FakePair, store: TunedStore) -> None:
    def limit(depth: int) -> int:
        return 1

    pair.target.model.row_limit = limit
    costs, _ = ask(pair, store)
    assert 16 in costs.tables[0].verify
    assert pair.target.model.row_limit is limit


def test_cancelled_while_strict_is_found_out(pair: FakePair, store: TunedStore) -> None:
    pair.target.model.cancel_at = 3
    assert strict(pair, store)
    assert pair.target.model.row_limit(10) == 1


def test_what_use_taught_of_one_head_is_not_held_of_another(
    pair: FakePair, store: TunedStore
) -> None:
    def learned() -> object:
        return recall(pair, LOAD, store=store)  # type: ignore[arg-type]

    def head(loss: float) -> HeadFile:
        about = About(
            kind="medusa", targets=(), hidden_size=8, vocab_size=9, training={"loss": loss}
        )
        return HeadFile(Path("head.safetensors"), about, heads=4, tokens=9)

    for taught, file in enumerate((None, head(1.0), head(2.0))):
        pair.head_file = file
        assert learned() is None
        remember(pair, LOAD, {"taught": taught}, store=store)  # type: ignore[arg-type]
    pair.head_file = head(1.0)
    assert learned() == {"taught": 1}
