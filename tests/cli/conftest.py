"""The command line as a shell starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ModelFiles

LIMIT = 100.0
"""Seconds that a command may take on a busy machine."""
ROOT = Path(__file__).parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> Iterator[None]:
    """A parent that ignores Ctrl-C, as background jobs do, would hand that down."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def started(*arguments: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A running command whose streams are pipes; it does not outlive the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "edgespec", *arguments],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def edgespec() -> Run:
    """Run one command to its end."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        with started(*arguments) as process:
            out, err = process.communicate(stdin, timeout=LIMIT)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return run


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """A file for `bench`: two prompts of two categories."""
    lines = [
        {"id": "a", "category": "talk", "messages": [{"role": "user", "content": "go on"}]},
        {"id": "b", "category": "code", "messages": [{"role": "user", "content": "and on"}]},
    ]
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


@pytest.fixture
def tiny(models: ModelFiles) -> Sequence[str]:
    """Options for a small model of random weights, greedy, on one thread."""
    return options(models["rambler"])


def options(model: Path, *more: str) -> list[str]:
    return ["--model", str(model), "--ctx", "512", "--threads", "1", "--temp", "0", *more]


def refused(done: subprocess.CompletedProcess[str], *parts: str, code: int = 1) -> None:
    """A sentence and perhaps a hint on stderr, nothing on stdout."""
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 2, done.stderr
    assert lines[0].startswith("edgespec: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr, done.stderr
    assert done.returncode == code
