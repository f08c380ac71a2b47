"""A stand-in hub for each test, and an environment in which nothing asks the real one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registry.fake_hub import FakeHub
from tests.registry.transfer_bench import Bench

os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


@pytest.fixture
def hub_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No token, no proxy, an empty cache; returns the cache's folder."""
    from huggingface_hub import constants

    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    cache = tmp_path / "hub-cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    return cache


@pytest.fixture
def fake(tmp_path: Path, hub_settings: Path) -> Iterator[FakeHub]:
    """An empty hub; `fake.add` puts models on it."""
    root = tmp_path / "hub"
    root.mkdir()
    with FakeHub(root) as hub:
        yield hub


@pytest.fixture
def delivered(fake: FakeHub) -> FakeHub:
    """The same hub, when another origin delivers the bytes."""
    fake.cdn = True
    return fake


@pytest.fixture
def bench(fake: FakeHub, tmp_path: Path) -> Bench:
    return Bench(fake, tmp_path)
