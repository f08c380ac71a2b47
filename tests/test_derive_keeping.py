"""A derived draft in the store: found by name, told what it was made of, removed with its pair."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgespec.cli.main import main
from edgespec.derive.keeping import (
    check_output,
    deliver,
    find_target,
    keep,
    pair_name,
    workspace,
)
from edgespec.derive.recipes import Recipe
from edgespec.errors import EdgeSpecError, UsageError
from model_registry import locate
from model_registry.files import StoreProblem
from model_registry.problem import ModelFileProblem
from model_registry.pull import Pull
from model_registry.store import Store
from model_registry.upkeep import prune, remove, verify
from tests.gguf_files import byte_vocab, random_llama
from tests.registry.stored import model_file, put

RECIPE = Recipe("Q4_0", (3, 4))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    return Store.default()


def made(folder: Path, seed: int = 1) -> Path:
    return model_file(folder / f"big-draft-without-2-Q4_0-{seed}.gguf", seed=seed)


def test_a_pair_is_used_by_its_targets_name(store: Store, tmp_path: Path) -> None:
    record = put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    draft = made(tmp_path)
    pair = keep(store, target, RECIPE, draft, pair_name(store, target, None))
    assert not draft.exists()
    assert pair.name == "big"
    found = locate.find("big", store=store)
    assert found.target == store.path(record)
    assert found.draft is not None
    contents = store.read()
    kept = contents.with_id(pair.draft)
    assert kept.source.kind == "derived"
    assert kept.source.command == "edgespec derive big --recipe q4_0 --drop 3-4"
    assert kept.source.revision == record.id
    assert kept.licence == "mit"
    assert verify(store, kept, full=True).problems == ()


def test_all_commands_know_it(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    pair = keep(store, target, RECIPE, made(tmp_path), "mine")
    name = store.read().with_id(pair.draft).name
    for command in (["list"], ["show", "mine"], ["show", name], ["verify", "--full"]):
        assert main(command) == 0
        assert name in capsys.readouterr().out
    main(["show", name])
    told = capsys.readouterr().out
    assert record.id in told
    assert "big --recipe q4_0 --drop 3-4" in told
    # A target that was pulled by itself stays.
    assert main(["rm", "mine"]) == 0
    assert [one.name for one in store.read().models] == ["big"]
    assert not store.read().pairs


def test_what_is_gone_can_be_made_again(store: Store, tmp_path: Path) -> None:
    put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    pair = keep(store, target, RECIPE, made(tmp_path), "mine")
    draft = store.read().with_id(pair.draft)
    store.path(draft).unlink()
    with pytest.raises(ModelFileProblem, match="Make it again: edgespec derive big --recipe q4_0"):
        locate.find("mine", store=store)
    again = keep(store, find_target(store, "mine"), RECIPE, made(tmp_path), "another")
    assert again == pair
    assert locate.find("mine", store=store).draft == store.path(draft)


def test_a_file_is_linked_and_stays(store: Store, tmp_path: Path) -> None:
    path = model_file(tmp_path / "my big.gguf")
    target = find_target(store, str(path))
    pair = keep(store, target, RECIPE, made(tmp_path), pair_name(store, target, None))
    contents = store.read()
    assert pair.name == "my-big"
    draft = contents.with_id(pair.draft)
    assert draft.source.revision == pair.target
    assert f"'{path}' --recipe q4_0" in draft.source.command
    done = remove(store, pair.name)
    assert path.exists()
    assert len(done.removed) == 3
    assert not store.read().models


def test_of_a_pair_the_target_is_taken(store: Store, tmp_path: Path) -> None:
    record = put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    keep(store, target, RECIPE, made(tmp_path), "big")
    again = find_target(store, "big")
    assert again == target
    assert again.record == record
    assert pair_name(store, again, None) == "big-derived"
    other = keep(store, again, Recipe("Q2_K"), made(tmp_path, 2), "big-derived")
    assert other.target == record.id
    assert pair_name(store, again, None) == "big-derived2"


def test_names_that_cannot_be(store: Store, tmp_path: Path) -> None:
    put(store, model_file(tmp_path / "big.gguf"))
    put(store, model_file(tmp_path / "other.gguf", seed=5))
    target = find_target(store, "big")
    keep(store, target, RECIPE, made(tmp_path), "taken")
    for name in ("taken", "other", "a/b", "x.gguf"):
        with pytest.raises(ModelFileProblem):
            pair_name(store, target, name)
    assert pair_name(store, target, "new") == "new"
    with pytest.raises(ModelFileProblem):
        find_target(store, "unheard-of")


def test_a_draft_that_comes_into_no_pair_goes_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, model_file(tmp_path / "big.gguf"))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Pull, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        keep(store, find_target(store, "big"), RECIPE, made(tmp_path), "mine")
    assert [one.name for one in store.read().models] == ["big"]
    assert prune(store) == []


def test_another_vocabulary_makes_no_pair(store: Store, tmp_path: Path) -> None:
    put(store, model_file(tmp_path / "big.gguf"))
    vocab = byte_vocab().renamed(270, "another")
    foreign = random_llama(tmp_path / "foreign.gguf", vocab=vocab)
    with pytest.raises(ModelFileProblem, match="cannot draft"):
        keep(store, find_target(store, "big"), RECIPE, foreign, "mine")
    assert [one.name for one in store.read().models] == ["big"]


def test_the_workspace_goes_and_prune_leaves_a_living_one(store: Store) -> None:
    with workspace(store) as folder:
        (folder / "half.gguf").write_bytes(b"x" * 100)
        # Locks are between processes.
        command = [sys.executable, "-m", "edgespec", "prune", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
        assert "derive" not in done.stdout
        assert (folder / "half.gguf").exists()
    assert not folder.exists()
    assert not [path for path in store.locks.iterdir() if path.name == f"{folder.stem}.lock"]
    # As a crash leaves it.
    folder.mkdir()
    (folder / "half.gguf").write_bytes(b"x" * 100)
    (rubbish,) = prune(store)
    assert "derived" in rubbish.what
    assert rubbish.size == 100
    assert not folder.exists()


def test_a_store_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreProblem), workspace(Store(tmp_path / "file")):
        pass


def test_where_a_file_may_go(tmp_path: Path) -> None:
    (tmp_path / "there.gguf").write_text("x")
    for place in ("there.gguf", "no/folder.gguf"):
        with pytest.raises(UsageError):
            check_output(tmp_path / place)
    assert check_output(tmp_path / "new.gguf") == tmp_path / "new.gguf"


def test_a_file_on_another_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = tmp_path / "a", tmp_path / "b.gguf"
    source.write_bytes(b"weights")
    replace = os.replace

    def other_disk(old: Path, new: Path) -> None:
        if old == source:
            raise OSError(errno.EXDEV, "another disk")
        replace(old, new)

    monkeypatch.setattr(os, "replace", other_disk)
    deliver(source, output)
    assert output.read_bytes() == b"weights"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b.gguf"]
    with pytest.raises(EdgeSpecError, match="cannot be written"):
        deliver(source, tmp_path / "no" / "folder.gguf")
