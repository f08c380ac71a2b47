"""A store of its own, a hub on loopback that the catalogue knows, and finding rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgespec.shelf.row import Row
from edgespec.shelf.stock import rows
from model_registry import catalog
from model_registry.store import Store
from tests.registry.fake_hub import FakeHub
from tests.shelf_stand import catalogue, put_model, put_on_hub


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_settings: Path) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(catalog, "user_file", lambda: tmp_path / "catalog.yaml")
    return Store(tmp_path / "store")


@pytest.fixture
def hub(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """The stand-in hub, and a catalogue that knows what is on it."""
    put_on_hub(fake)
    (tmp_path / "catalog.yaml").write_text(catalogue(fake))
    monkeypatch.setenv("HF_ENDPOINT", fake.url)
    return fake


def row_of(name: str, where: str = "") -> Row:
    (found,) = (row for row in rows() if row.name == name and where in ("", row.where))
    return found


def add_pair(store: Store, folder: Path, name: str = "duo") -> None:
    big = put_model(store, folder, "big", width=64, alone=False)
    small = put_model(store, folder, "small", seed=1, alone=False)
    store.add_pair(name, big, small, verdict="They agree.")
