"""Pairs of loaded models, kept for the whole run: loading takes longer than most tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from edgespec.pair import Pair
from tests.conftest import ModelFiles
from tests.real import rig

LONGEST = 64
"""The longest draft that a kept pair can verify."""

OpenPair = Callable[..., Pair]


@pytest.fixture(scope="session")
def _kept(models: ModelFiles) -> Iterator[dict[tuple[str, str, int], Pair]]:
    kept: dict[tuple[str, str, int], Pair] = {}
    yield kept
    for pair in kept.values():
        pair.close()


@pytest.fixture
def smollm2(models: ModelFiles, _kept: dict[tuple[str, str, int], Pair]) -> OpenPair:
    """SmolLM2 with one of `rig.METHODS`; its context has 2048 tokens."""

    def open_pair(method: str) -> Pair:
        key = ("smollm2", method, 2048)
        if key not in _kept:
            _kept[key] = Pair.open(rig.load(models.draft(method), length=LONGEST))
        return _kept[key]

    return open_pair


@pytest.fixture
def tiny(models: ModelFiles) -> Iterator[OpenPair]:
    """Random weights as the target, by file name, with any draft; closed after the test."""
    opened: list[Pair] = []

    def open_pair(target: str, draft: str, *, context: int = 2048, length: int = LONGEST) -> Pair:
        names = {"self": target, "bad": "other-bytes" if target == "bytes" else "bad"}
        name = names.get(draft, draft)
        file = name if name in {"none", "lookup"} else str(models[name])
        load = rig.load(file, model=str(models[target]), context=context, length=length)
        opened.append(Pair.open(load))
        return opened[-1]

    yield open_pair
    for pair in opened:
        pair.close()
