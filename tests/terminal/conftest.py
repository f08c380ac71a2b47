"""A home of its own for each test of the app in a terminal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import ModelFiles
from tests.terminal.terminal import Terminal

_NOT_HANDED_DOWN = (
    "TMUX", "NO_COLOR", "COLORTERM", "TERM", "TEXTUAL", "EDGESPEC", "HF_", "HUGGING", "LC_", "LANG",
)  # fmt: skip

Open = Callable[..., Terminal]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if shutil.which("tmux") is None:
        skip = pytest.mark.skip(reason="tmux is not installed")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What programs in the terminal see: nothing of the person who runs the tests, no network."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_HANDED_DOWN)
    }
    for name in ("home", "cache", "config", "data", "state", "store"):
        (tmp_path / name).mkdir(exist_ok=True)
    return kept | {
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "EDGESPEC_HOME": str(tmp_path / "store"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }


@pytest.fixture
def open_terminal(tmp_path: Path, environment: dict[str, str]) -> Iterator[Open]:
    """Opens terminals; they are closed with the test."""
    with ExitStack() as stack:

        def opened(*, width: int = 80, height: int = 24, **more: str) -> Terminal:
            terminal = Terminal(tmp_path, environment | more, width=width, height=height)
            return stack.enter_context(terminal)

        yield opened


@pytest.fixture
def smollm2(models: ModelFiles) -> list[str]:
    """Options for the embedded model: greedy, on one thread."""
    return options(models.smollm2)


@pytest.fixture
def rambler(models: ModelFiles) -> list[str]:
    """Options for a small model that never ends by itself and opens at once."""
    return options(models["rambler"])


def options(model: Path | str, *more: str) -> list[str]:
    return ["--model", str(model), "--ctx", "2048", "--threads", "1", "--temp", "0",
            "--draft", "none", *more]  # fmt: skip
