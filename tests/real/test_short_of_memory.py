"""A machine with less free RAM than this one: what is loaded, what is given up, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from edgespec import fitting
from edgespec.errors import OutOfMemoryError
from edgespec.memory import MIB, Device
from edgespec.pair import Pair
from tests.conftest import ModelFiles
from tests.real import rig

Open = Callable[..., Pair]


@pytest.fixture
def opened(models: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """SmolLM2 as its own draft, with so many MiB of RAM free beyond the reserve."""
    pairs: list[Pair] = []

    def open_pair(free: int, **changes: object) -> Pair:
        total = 8192 * MIB
        memory = Device("CPU", "cpu", (256 + free) * MIB, total)
        monkeypatch.setattr(fitting, "ram", lambda: memory)
        load = rig.load(models.draft("self"), model=str(models.smollm2), context=4096)
        pairs.append(Pair.open(replace(load, **changes)))  # type: ignore[arg-type]
        return pairs[-1]

    yield open_pair
    for pair in pairs:
        pair.close()


def test_enough_for_both(opened: Open) -> None:
    pair = opened(500)
    assert pair.draft is not None
    assert pair.notices == []
    assert pair.target.model.capacity == 4096
    # 30 layers, 3 heads of 64, keys and values of 2 bytes.
    assert pair.target.model.buffers.kv_cache == 4096 * 30 * 3 * 64 * 2 * 2


def test_a_shorter_cache(opened: Open) -> None:
    pair = opened(330)
    assert pair.draft is not None
    assert pair.target.model.capacity == 4096
    for loaded in pair.models:
        kept = 4096 * 30 * 3 * 64 * 2 * 34 // 32
        assert loaded.model.buffers.kv_cache == pytest.approx(kept, abs=10_000)
    (said,) = pair.notices
    assert "q8_0" in said


def test_no_draft(opened: Open) -> None:
    pair = opened(210)
    assert pair.draft is None
    assert pair.method == "plain"
    assert pair.target.model.capacity == 4096
    assert "no room for the draft" in pair.notices[0]
    assert rig.drafted(pair, [1, 2, 3], 4, 4)


def test_a_shorter_context(opened: Open) -> None:
    pair = opened(180, kv_type="f16")
    assert pair.draft is None
    assert 2048 <= pair.target.model.capacity < 4096
    assert f"The context is {pair.target.model.capacity} tokens" in pair.notices[1]


def test_nothing_that_would_do(opened: Open) -> None:
    with pytest.raises(OutOfMemoryError, match="does not fit: it needs") as caught:
        opened(120)
    assert "--mmap" in caught.value.hint


def test_mapped_weights_are_opened_all_the_same(opened: Open) -> None:
    pair = opened(120, mmap=True)
    assert pair.draft is None
    assert pair.target.model.capacity == 4096
