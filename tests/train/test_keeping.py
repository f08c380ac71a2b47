"""A trained head in the store: the draft of its target, found by name, in place of an elder one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgespec.derive.keeping import find_target
from edgespec.errors import EdgeSpecError
from edgespec.heads import file as head_file
from edgespec.train.keeping import copied, keep, pair_name
from model_registry import locate
from model_registry.heads import MEDUSA, About, Trained
from model_registry.identity import content_digest
from model_registry.problem import ModelFileProblem
from model_registry.store import Store
from model_registry.upkeep import remove, verify
from tests.registry.stored import model_file, put


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    return Store.default()


def head(path: Path, target: Path, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    about = About(
        kind=MEDUSA,
        targets=(Trained(content_digest(target), target.stem),),
        hidden_size=8,
        vocab_size=20,
    )
    head_file.save(
        path,
        about,
        blocks=rng.standard_normal((2, 8, 8)),
        output=rng.standard_normal((5, 8)),
        vocabulary=np.arange(5),
    )
    return path


def test_a_head_is_its_targets_draft(store: Store, tmp_path: Path) -> None:
    record = put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    path = head(tmp_path / "h.safetensors", target.path)
    name = pair_name(store, target, "medusa", None)
    pair = keep(store, target, "medusa", path, name)
    assert path.exists()
    assert pair.name == "big"
    found = locate.find("big", store=store)
    assert found.target == store.path(record)
    assert found.head is not None
    assert found.head.read_bytes() == path.read_bytes()
    kept = store.read().with_id(pair.draft)
    assert kept.traits.architecture == MEDUSA
    assert kept.source.command == "edgespec train medusa big"
    assert kept.source.revision == record.id
    assert list(store.partial.iterdir()) == []
    assert verify(store, kept, full=True).problems == ()


def test_a_better_head_takes_the_place(store: Store, tmp_path: Path) -> None:
    put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    for seed in (1, 2, 2):
        path = head(tmp_path / f"{seed}.safetensors", target.path, seed)
        name = pair_name(store, target, "medusa", None)
        keep(store, target, "medusa", path, name)
        contents = store.read()
        assert [pair.name for pair in contents.pairs] == ["big"]
        assert len(contents.models) == 2
        assert (
            store.path(contents.with_id(contents.pairs[0].draft)).read_bytes() == path.read_bytes()
        )


def test_a_head_that_cannot_be_stored_leaves_the_elder_one(store: Store, tmp_path: Path) -> None:
    put(store, model_file(tmp_path / "big.gguf"))
    target = find_target(store, "big")
    path = head(tmp_path / "h.safetensors", target.path)
    keep(store, target, "medusa", path, pair_name(store, target, "medusa", None))
    before = store.read()
    other = head(tmp_path / "o.safetensors", model_file(tmp_path / "other.gguf", seed=5), seed=3)
    with pytest.raises(ModelFileProblem, match="trained for other"):
        keep(store, target, "medusa", other, pair_name(store, target, "medusa", None))
    after = store.read()
    assert after.names() == before.names()
    assert [pair.draft for pair in after.pairs] == [pair.draft for pair in before.pairs]


def test_a_name_that_is_taken(store: Store, tmp_path: Path) -> None:
    put(store, model_file(tmp_path / "big.gguf"))
    put(store, model_file(tmp_path / "other.gguf", seed=5))
    target = find_target(store, "big")
    path = head(tmp_path / "h.safetensors", target.path)
    with pytest.raises(ModelFileProblem, match="other"):
        pair_name(store, target, "medusa", "other")
    keep(store, target, "medusa", path, pair_name(store, target, "medusa", "fast"))
    assert pair_name(store, target, "medusa", None) == "fast"
    assert pair_name(store, target, "eagle3", None) == "big"
    remove(store, "fast")
    assert pair_name(store, target, "medusa", None) == "big"
    assert [one.name for one in store.read().models] == ["big", "other"]


def test_a_target_that_was_only_a_file_is_linked(store: Store, tmp_path: Path) -> None:
    file = model_file(tmp_path / "big.gguf")
    target = find_target(store, str(file))
    path = head(tmp_path / "h.safetensors", target.path)
    pair = keep(store, target, "medusa", path, pair_name(store, target, "medusa", None))
    assert store.path(store.read().with_id(pair.target)) == file
    assert locate.find("big", store=store).head is not None


def test_a_copy_for_a_place_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_bytes(b"x")
    copied(path, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x"
    with pytest.raises(EdgeSpecError, match="cannot be written"):
        copied(path, tmp_path / "no" / "copy")
