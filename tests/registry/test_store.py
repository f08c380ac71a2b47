"""The store: what is in it is whole, and what it removes was its own."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from model_registry import unfinished
from model_registry.embedded import EMBEDDED, SHOWN, locate
from model_registry.files import StoreProblem, write_atomic
from model_registry.locate import find
from model_registry.problem import ModelFileProblem
from model_registry.records import NewerRecordProblem, RecordProblem, load_model
from model_registry.store import Store
from model_registry.upkeep import prune, remove, verify
from tests.registry.stored import model_file, put


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    return tmp_path / "incoming"


def test_an_empty_store(store: Store) -> None:
    contents = store.read()
    assert (contents.models, contents.pairs, contents.broken) == ((), (), ())
    assert not store.home.exists(), "looking makes no folders"


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "here"))
    assert Store.default().home == tmp_path / "here"
    monkeypatch.setenv("EDGESPEC_HOME", " ")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Store.default().home.name == "edgespec"


def test_a_model_is_moved_in_and_read_back(store: Store, incoming: Path) -> None:
    path = model_file(incoming / "Tiny-Q8_0.gguf")
    content = path.read_bytes()
    model = put(store, path)
    assert not path.exists()
    assert store.path(model).read_bytes() == content
    assert store.path(model).name == "Tiny-Q8_0.gguf"
    assert store.read().models == (model,)
    assert (model.name, model.traits.quant, model.traits.context) == ("Tiny-Q8_0", "Q8_0", 2048)
    assert store.intact(model)


def test_the_same_model_twice_is_one(store: Store, incoming: Path) -> None:
    first = put(store, model_file(incoming / "a.gguf"), alone=False)
    second_file = model_file(incoming / "b.gguf")
    second = put(store, second_file)
    assert first.id == second.id
    assert [one.name for one in store.read().models] == ["a"]
    assert second.alone
    assert not second_file.exists()


def test_a_model_whose_file_is_gone_is_replaced(store: Store, incoming: Path) -> None:
    first = put(store, model_file(incoming / "a.gguf"))
    store.path(first).unlink()
    assert not store.intact(first)
    assert store.intact(put(store, model_file(incoming / "a.gguf")))


def test_names(store: Store, incoming: Path) -> None:
    first = put(store, model_file(incoming / "m.gguf", seed=1))
    second = put(store, model_file(incoming / "M.gguf", seed=2))
    assert second.name == f"M-{second.id[:4]}", "names differ by more than case"
    third = put(store, model_file(incoming / "my model (1).gguf", seed=3))
    assert third.name == "my-model-1"
    with pytest.raises(StoreProblem, match="another model called m"):
        put(store, model_file(incoming / "x.gguf", seed=4), name="m")
    assert put(store, model_file(incoming / "m.gguf", seed=1), name="new").id == first.id
    assert {one.name for one in store.read().models} == {"new", second.name, third.name}
    with pytest.raises(ModelFileProblem, match="cannot be a name"):
        put(store, model_file(incoming / "y.gguf", seed=5), name="../x")


def test_pairs(store: Store, incoming: Path) -> None:
    models = [put(store, model_file(incoming / f"{n}.gguf", seed=n), alone=False) for n in range(3)]
    pair = store.add_pair("both", models[0], models[1], verdict="fine")
    assert store.read().pairs == (pair,)
    assert store.add_pair("BOTH", models[0], models[1], verdict="fine").name == "both"
    with pytest.raises(StoreProblem, match="another pair called both"):
        store.add_pair("both", models[0], models[2], verdict="fine")
    with pytest.raises(StoreProblem, match="model that is not this pair's target"):
        store.add_pair(models[2].name, models[0], models[1], verdict="fine")
    assert store.add_pair(models[0].name, models[0], models[1], verdict="fine")


def test_a_pair_with_the_name_of_the_embedded_model_is_that_pair(
    store: Store, incoming: Path
) -> None:
    target, draft = (
        put(store, model_file(incoming / f"{n}.gguf", seed=n), alone=False) for n in range(2)
    )
    assert find(SHOWN, store=store).target == locate(EMBEDDED)
    store.add_pair(SHOWN, target, draft, verdict="fine")
    found = find(SHOWN, store=store)
    assert (found.target, found.draft) == (store.path(target), store.path(draft))
    assert find("built-in", store=store).target == locate(EMBEDDED)


def test_a_pair_of_the_catalogue_may_change(store: Store, incoming: Path) -> None:
    models = [put(store, model_file(incoming / f"{n}.gguf", seed=n), alone=False) for n in range(3)]
    store.add_pair("known", models[0], models[1], verdict="old", alias="known")
    store.add_pair("known", models[0], models[2], verdict="new", alias="known")
    (pair,) = store.read().pairs
    assert (pair.draft, pair.verdict) == (models[2].id, "new")


def test_a_shared_draft_stays_until_its_last_pair_goes(store: Store, incoming: Path) -> None:
    draft, one, two = (
        put(store, model_file(incoming / f"{name}.gguf", seed=seed), alone=False)
        for seed, name in enumerate(("draft", "one", "two"))
    )
    store.add_pair("p1", one, draft, verdict="")
    store.add_pair("p2", two, draft, verdict="")
    with pytest.raises(StoreProblem, match="belongs to the pair p1, p2"):
        remove(store, "draft")
    done = remove(store, "p1")
    assert done.removed == ["pair p1", "model one"]
    assert done.kept == ["draft stays: the pair p2 uses it."]
    assert done.freed == one.size
    assert not (store.models / one.id).exists()
    assert store.intact(draft)
    assert remove(store, "P2").removed == ["pair p2", "model two", "model draft"]
    assert store.read().models == ()
    assert not any(store.models.iterdir())
    assert not any(store.pairs.iterdir())


def test_a_model_pulled_by_itself_outlives_its_pair(store: Store, incoming: Path) -> None:
    target = put(store, model_file(incoming / "t.gguf", seed=1))
    draft = put(store, model_file(incoming / "d.gguf", seed=2), alone=False)
    store.add_pair("p", target, draft, verdict="")
    assert "t stays: it was pulled by itself." in remove(store, "p").kept[0]
    assert [one.name for one in store.read().models] == ["t"]


def test_linked_files_are_never_deleted(store: Store, incoming: Path) -> None:
    path = model_file(incoming / "mine.gguf")
    model = put(store, path, linked=True)
    assert store.path(model) == path
    done = remove(store, "mine")
    assert (done.freed, path.exists()) == (0, True)
    assert f"The files in {incoming} stay" in done.kept[0]
    assert store.read().models == ()


def test_nothing_of_that_name(store: Store, incoming: Path) -> None:
    with pytest.raises(StoreProblem, match="Nothing is stored yet"):
        remove(store, "x")
    put(store, model_file(incoming / "m.gguf"))
    with pytest.raises(StoreProblem, match="There are m"):
        remove(store, "x")


def test_last_used(store: Store, incoming: Path) -> None:
    target = put(store, model_file(incoming / "t.gguf", seed=1))
    draft = put(store, model_file(incoming / "d.gguf", seed=2))
    pair = store.add_pair("p", target, draft, verdict="")
    assert store.last_used(pair) is None
    before = datetime.now(UTC).timestamp() - 2
    find("p", store=store).mark_used()
    for record in (pair, target, draft):
        moment = store.last_used(record)
        assert moment
        assert moment.timestamp() > before


def test_verify(store: Store, incoming: Path) -> None:
    model = put(store, model_file(incoming / "m.gguf"))
    path = store.path(model)
    told: list[tuple[str, int, int]] = []
    assert verify(store, model, full=False).problems == ()
    assert verify(store, model, full=True, on_bytes=lambda *now: told.append(now)).problems == ()
    assert told[-1] == ("m.gguf", model.size, model.size)
    os.utime(path, ns=(1, 1))
    assert "written to since" in verify(store, model, full=False).problems[0]
    assert verify(store, model, full=True).problems == ()
    (model,) = store.read().models
    assert verify(store, model, full=False).problems == (), "the new time is noted"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "not have the content" in verify(store, model, full=True).problems[0]
    path.write_bytes(content[:-1])
    assert "bytes instead of" in verify(store, model, full=False).problems[0]
    path.unlink()
    assert "cannot be read" in verify(store, model, full=True).problems[0]


def test_prune_leaves_what_is_whole(store: Store, incoming: Path) -> None:
    target = put(store, model_file(incoming / "t.gguf", seed=1))
    draft = put(store, model_file(incoming / "d.gguf", seed=2), alone=False)
    pair = store.add_pair("p", target, draft, verdict="")
    store.mark_used(pair)
    before = sorted(store.home.rglob("*"))
    assert prune(store) == []
    assert sorted(store.home.rglob("*")) == before


def test_prune_removes_rubbish(store: Store, incoming: Path) -> None:
    target = put(store, model_file(incoming / "t.gguf", seed=1))
    orphan = put(store, model_file(incoming / "o.gguf", seed=2), alone=False)
    store.partial.mkdir(parents=True, exist_ok=True)
    rubbish = [
        store.partial / f"{'a' * 64}.part",
        store.partial / "unreadable.json",
        store.models / "half" / "m.gguf",
        store.models / target.id / ".model.json.1.tmp",
        store.pairs / "gone.json",
        store.pairs / "gone.last-used",
        store.models / "damaged" / "model.json",
    ]
    for path in rubbish:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{")
    found = prune(store, dry_run=True)
    assert len(found) == len(rubbish) + 1
    assert all(path.exists() for path in rubbish)
    assert prune(store) == found
    assert not any(path.exists() for path in rubbish)
    assert not (store.models / orphan.id).exists()
    assert store.read().models == (target,)


def test_prune_keeps_what_a_newer_version_wrote(store: Store, incoming: Path) -> None:
    model = put(store, model_file(incoming / "m.gguf"), alone=False)
    path = store.models / model.id / "model.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    newer_pair = store.pairs / "p.json"
    write_atomic(newer_pair, '{"schema": 9}')
    assert prune(store) == []
    assert newer_pair.exists()
    assert store.path(model).exists()
    assert all(isinstance(one, NewerRecordProblem) for one in store.read().broken)


def test_unfinished_pulls(store: Store) -> None:
    part = f"{'b' * 64}.part"
    pull = unfinished.begin(store, "big", "edgespec pull big", [(part, "m.gguf", 1000)])
    (store.partial / part).write_bytes(bytes(400))
    assert unfinished.listed(store) == [pull]
    assert (unfinished.fetched(store, pull), pull.size) == (400, 1000)
    assert store.read().models == (), "a part is no model"
    done = remove(store, "BIG")
    assert (done.removed, done.freed) == (["unfinished pull big"], 400)
    assert not any(store.partial.iterdir())


def hold(home: Path, name: str, ready: multiprocessing.synchronize.Event) -> None:
    with Store(home).lock(name, patience=-1):
        ready.set()
        multiprocessing.Event().wait(60)


def test_a_running_pull_is_left_alone(store: Store) -> None:
    part = f"{'b' * 64}.part"
    unfinished.begin(store, "big", "edgespec pull big", [(part, "m.gguf", 1000)])
    (store.partial / part).write_bytes(bytes(400))
    spawned = multiprocessing.get_context("spawn")
    ready = spawned.Event()
    other = spawned.Process(target=hold, args=(store.home, "b" * 64, ready))
    other.start()
    try:
        assert ready.wait(60)
        assert prune(store) == []
        with pytest.raises(StoreProblem, match="Another EdgeSpec is at work"):
            remove(store, "big")
        assert (store.partial / part).stat().st_size == 400
    finally:
        other.kill()
        other.join()
    assert len(prune(store)) == 2, "a killed process holds no lock"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"name": 1}, "name should be of the type str"),
        ({"id": None}, "id should be of the type str"),
        ({"files": []}, "files is empty"),
        ({"files": [{"name": "a", "size": True, "sha256": "", "mtime_ns": 0}]}, "files.0.size"),
        ({"source": 1}, "source is no object"),
        ({"traits": {}}, "traits.architecture"),
        ({"schema": "1"}, "schema should be"),
        ({"id": "other"}, "id is not the folder's name"),
    ],
)
def test_a_damaged_record_is_named(
    store: Store, incoming: Path, change: dict[str, object], key: str
) -> None:
    model = put(store, model_file(incoming / "m.gguf"))
    path = store.models / model.id / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    (problem,) = store.read().broken
    assert str(path) in problem.message
    assert key in problem.message


def test_a_record_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(RecordProblem, match=re.escape("model.json is not JSON")):
        load_model(tmp_path / "model.json")
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(RecordProblem, match="the whole file is no object"):
        load_model(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "may not be used by this user"),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk of .* is full"),
        (OSError(errno.EIO, "Input/output error"), "has trouble with .*: Input/output error"),
    ],
)
def test_trouble_with_the_disk(
    store: Store, incoming: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, sentence: str
) -> None:
    def fail(path: Path, text: str) -> None:
        raise error

    monkeypatch.setattr("model_registry.store.write_atomic", fail)
    with pytest.raises(StoreProblem, match=sentence):
        put(store, model_file(incoming / "m.gguf"))
    assert store.read().models == ()


def test_names_lead_to_files(store: Store, incoming: Path) -> None:
    target = put(store, model_file(incoming / "t-Q4_K_M.gguf", seed=1), name="both")
    draft = put(store, model_file(incoming / "d.gguf", seed=2), repo="owner/small")
    store.add_pair("both", target, draft, verdict="")
    assert find("both", store=store).draft == store.path(draft)
    assert find("BOTH", role="draft", store=store).target == store.path(target)
    assert find("both", role="draft", store=store).draft is None
    assert find(draft.id, store=store).target == store.path(draft)
    for reference in ("hf:owner/name", "hf:Owner/Name:q4_k_m", "hf:owner/name/T-q4_k_m.gguf"):
        assert find(reference, store=store).target == store.path(target)
    with pytest.raises(ModelFileProblem, match="edgespec pull hf:owner/name:Q8_0"):
        find("hf:owner/name:Q8_0", store=store)
    with pytest.raises(ModelFileProblem, match=r"Fetch it first: edgespec pull qwen3-8b"):
        find("Qwen3-8B", store=store)
    with pytest.raises(ModelFileProblem, match="Did you mean both"):
        find("bott", store=store)
    store.path(draft).unlink()
    with pytest.raises(ModelFileProblem, match=r"Fetch it again: edgespec pull hf:owner/small@c"):
        find("both", store=store)
    assert find("both", with_draft=False, store=store).target == store.path(target)


def test_a_pair_whose_model_is_gone_is_no_pair(store: Store, incoming: Path) -> None:
    target = put(store, model_file(incoming / "t.gguf", seed=1))
    draft = put(store, model_file(incoming / "d.gguf", seed=2))
    store.add_pair("p", target, draft, verdict="")
    (store.models / draft.id / "model.json").unlink()
    contents = store.read()
    assert contents.pairs == ()
    assert "names a model that is gone" in contents.broken[0].message
    assert {one.what for one in prune(store)} == {
        "model without a record",
        "pair without its models",
    }


def test_two_models_of_one_repository(store: Store, incoming: Path) -> None:
    put(store, model_file(incoming / "m-Q4_0.gguf", seed=1))
    put(store, model_file(incoming / "m-Q8_0.gguf", seed=2))
    with pytest.raises(ModelFileProblem, match="Name one of them: m-Q4_0, m-Q8_0"):
        find("hf:owner/name", store=store)
