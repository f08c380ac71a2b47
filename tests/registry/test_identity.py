"""A model is known again, and told from every other, without reading all of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from model_registry import identity
from model_registry.gguf import GGUFError
from model_registry.identity import identify
from model_registry.problem import ModelFileProblem
from model_registry.store import Store
from tests.gguf_files import byte_vocab, random_llama, split_llama
from tests.registry.stored import model_file, put


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


def test_a_copy_is_the_same_and_other_weights_are_not(tmp_path: Path, store: Store) -> None:
    a = model_file(tmp_path / "a.gguf")
    b = model_file(tmp_path / "b.gguf", seed=1)
    copy = Path(shutil.copy(a, tmp_path / "copy.gguf"))
    os.utime(copy, (1, 1))
    assert identify(a, store) == identify(copy, store)
    assert identify(a, store) != identify(b, store)
    assert a.stat().st_size == b.stat().st_size


def test_a_change_is_seen_wherever_a_sample_is(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_HEAD", 1000)
    monkeypatch.setattr(identity, "_BLOCK", 100)
    path = random_llama(tmp_path / "m.gguf", vocab=byte_vocab(), layers=4)
    whole, size = path.read_bytes(), path.stat().st_size
    first = identify(path, store)
    # Weights only: a changed header may be no header any more.
    places = [(size - 100) * n // 24 + 50 for n in range(12, 25)]
    for place in [*places, size - 100, size - 1]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert identify(path, store) != first
    path.write_bytes(whole)
    assert identify(path, store) == first
    path.write_bytes(whole + b"\0")
    assert identify(path, store) != first


def test_metadata_count(tmp_path: Path, store: Store) -> None:
    a = random_llama(tmp_path / "a.gguf", vocab=byte_vocab(), changes={"general.name": "a"})
    b = random_llama(tmp_path / "b.gguf", vocab=byte_vocab(), changes={"general.name": "b"})
    assert identify(a, store) != identify(b, store)


def test_a_stored_file_has_its_records_digest(tmp_path: Path, store: Store) -> None:
    record = put(store, model_file(tmp_path / "m.gguf"))
    assert identify(store.path(record), store) == f"store:{record.id}"


def test_a_linked_file_too_until_it_changes(tmp_path: Path, store: Store) -> None:
    path = model_file(tmp_path / "m.gguf")
    record = put(store, path, linked=True)
    assert identify(path, store) == f"store:{record.id}"
    model_file(path, seed=2)
    os.utime(path, (1, 1))
    assert identify(path, store).startswith("sample:")


def test_all_parts_count(tmp_path: Path, store: Store) -> None:
    parts = split_llama(tmp_path, "big-model", vocab=byte_vocab())
    before = identify(parts[0], store)
    content = bytearray(parts[-1].read_bytes())
    content[-1] ^= 1
    parts[-1].write_bytes(content)
    assert identify(parts[0], store) != before
    parts[-1].unlink()
    with pytest.raises(OSError, match="No such file"):
        identify(parts[0], store)


def test_what_is_no_model(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUX" + bytes(100))
    with pytest.raises((GGUFError, ModelFileProblem)):
        identify(path, store)
    with pytest.raises(OSError, match="No such file"):
        identify(tmp_path / "none.gguf", store)
