"""A history of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edgespec.history.store import History


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(place: Path) -> Iterator[History]:
    with closing(History.open(place)) as opened:
        yield opened
