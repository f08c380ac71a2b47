"""What was measured is found again, for exactly what it was measured with, and nothing breaks on it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from profiles.tuned import Key, Table, TunedStore, stale_reasons
from tests.profiles.tuned_results import KEY, tuned

OTHERS = {
    "hardware": "another processor or other devices",
    "build": "llama.cpp was rebuilt",
    "target": "the target's file changed",
    "draft": "the draft's file changed",
    "setup": "threads, devices or the cache's type are others",
}


@pytest.fixture
def store(tmp_path: Path) -> TunedStore:
    return TunedStore(tmp_path / "tuned")


def file_of(store: TunedStore, key: Key = KEY) -> Path:
    return store.folder / f"{key.name}.json"


def test_what_is_saved_is_loaded(store: TunedStore) -> None:
    assert store.load(KEY) is None
    assert store.all() == []
    store.save(tuned())
    assert store.load(KEY) == tuned()
    later = tuned(quick=True, measured_at="2026-02-02T03:04:05+00:00")
    store.save(later)
    assert store.load(KEY) == later
    assert store.all() == [later]
    assert not store.notices
    assert [path.name for path in store.folder.iterdir()] == [file_of(store).name]


def test_the_latest_comes_first(store: TunedStore) -> None:
    alone = KEY.model_copy(update={"draft": None})
    store.save(tuned())
    store.save(tuned(alone, measured_at="2026-03-02T03:04:05+00:00"))
    assert [one.key for one in store.all()] == [alone, KEY]


@pytest.mark.parametrize(("part", "reason"), OTHERS.items())
def test_a_part_that_changed_is_another_key_and_a_reason(
    store: TunedStore, part: str, reason: str
) -> None:
    store.save(tuned())
    other = KEY.model_copy(update={part: "new"})
    assert store.load(other) is None
    assert stale_reasons(KEY, other) == (reason,)
    assert stale_reasons(KEY, KEY) == ()


def test_all_reasons_are_given() -> None:
    other = Key(hardware="1", build="2", target="3", draft=None, setup="4")
    assert stale_reasons(KEY, other) == tuple(OTHERS.values())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the whole file"),
        ("{", "the whole file"),
        ("[]", "the whole file"),
        ('{"schema": "x", "content": {}}', "schema"),
        ('{"schema": 1, "content": {}}', "key"),
        ('{"schema": 1, "content": {"key": 3}}', "key"),
    ],
)
def test_a_damaged_file_is_set_aside(store: TunedStore, text: str, part: str) -> None:
    store.save(tuned())
    path = file_of(store)
    path.write_text(text)
    assert store.load(KEY) is None
    (notice,) = store.notices
    assert str(path) in notice
    assert part in notice
    assert not path.exists()
    assert path.with_name(f"{path.name}.damaged").read_text() == text
    assert store.load(KEY) is None
    assert len(store.notices) == 1
    store.save(tuned())
    assert store.load(KEY) == tuned()
    assert len(store.all()) == 1


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"tables": []}, "tables"),
        ({"tables": [{"depth": 1, "verify": {"2": 0.1}}]}, "cost of 1"),
        ({"tables": [{"depth": 1, "verify": {"1": 0.1}, "draft": {"2": 0.1}}]}, "cost of 1"),
        ({"tables": [{"depth": 1, "verify": {"1": -0.1}}]}, "tables.0.verify.1"),
        ({"tables": [{"depth": 1, "verify": {"1": None}}]}, "tables.0.verify.1"),
        ({"threads": 0}, "threads"),
        ({"unheard": 1}, "unheard"),
        ({"acceptance": {"code": 1.1}}, "acceptance.code"),
    ],
)
def test_values_out_of_range_are_named(
    store: TunedStore, change: dict[str, object], part: str
) -> None:
    store.save(tuned())
    path = file_of(store)
    data = json.loads(path.read_text())
    data["content"] |= change
    path.write_text(json.dumps(data))
    assert store.load(KEY) is None
    assert part in store.notices[0]


def test_tables_must_go_together() -> None:
    a, b = Table(depth=1, verify={1: 1.0}), Table(depth=2, verify={1: 1.0, 2: 2.0})
    with pytest.raises(ValidationError, match="differ"):
        tuned(tables=(a, b))
    with pytest.raises(ValidationError, match="order"):
        tuned(tables=(b, b))


def test_a_file_under_another_name_is_not_believed(store: TunedStore) -> None:
    store.save(tuned())
    other = KEY.model_copy(update={"build": "new"})
    file_of(store).rename(file_of(store, other))
    assert store.load(other) is None
    assert store.notices


def test_a_newer_file_stays(store: TunedStore) -> None:
    store.save(tuned())
    path = file_of(store)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    assert store.load(KEY) is None
    assert "newer" in store.notices[0]
    assert path.exists()


def test_a_file_that_cannot_be_read_is_told(store: TunedStore) -> None:
    file_of(store).mkdir(parents=True)
    assert store.load(KEY) is None
    assert store.notices


def test_what_was_learnt_lies_beside(store: TunedStore) -> None:
    assert store.load_learned(KEY) is None
    learned = {"bins": [0.5, 1], "rounds": 3, "text": "ü"}
    store.save_learned(KEY, learned)
    assert store.load_learned(KEY) == learned
    assert store.load(KEY) is None
    assert store.all() == []
    (store.folder / f"{KEY.name}.learned.json").write_text("{")
    assert store.load_learned(KEY) is None
    assert len(store.notices) == 1


def test_samples_of_an_interrupted_measurement(store: TunedStore) -> None:
    assert store.load_partial(KEY) == {}
    store.save_partial(KEY, {"verify 64 1": [0.5, 0.25]})
    assert store.load_partial(KEY) == {"verify 64 1": [0.5, 0.25]}
    store.save_partial(KEY, {"verify 64 1": "x"})  # type: ignore[dict-item]
    assert store.load_partial(KEY) == {}
    assert store.notices
    store.save_partial(KEY, {"a": [1.0]})
    store.save_partial(KEY, {})
    store.save_partial(KEY, {})
    assert not (store.folder / f"{KEY.name}.partial.json").exists()


def test_removing_takes_all_of_a_key(store: TunedStore) -> None:
    other = KEY.model_copy(update={"build": "new"})
    for key in (KEY, other):
        store.save(tuned(key))
        store.save_learned(key, {})
        store.save_partial(key, {"a": [1.0]})
    store.remove(KEY)
    store.remove(KEY)
    assert all(path.name.startswith(other.name) for path in store.folder.iterdir())
    assert store.load(other) == tuned(other)


def test_a_crash_while_writing_leaves_the_old_result(
    store: TunedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(tuned())

    def crash(*_: object) -> None:
        raise OSError("power")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="power"):
        store.save(tuned(quick=True))
    assert store.load(KEY) == tuned()
    assert store.all() == [tuned()]


def test_the_folder_is_the_platforms(home: Path) -> None:
    assert home in TunedStore.default().folder.parents
