"""Ctrl-C, and a reader that goes away."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from typing import IO

import pytest

from tests.cli.conftest import LIMIT, options, started
from tests.conftest import ModelFiles

PASTE = "Some words that say little but are many. " * 700
SOON = 20.0
"""Seconds; a prefill or an answer that went on to its end would take far longer."""
SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which fcntl has no name for before Python 3.10


def stream(process: subprocess.Popen[str], name: str) -> IO[str]:
    found: IO[str] | None = getattr(process, name)
    assert found is not None
    return found


def interrupt(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    code = process.wait(LIMIT)
    assert time.monotonic() - begun < SOON
    return code


def test_during_the_prefill_of_a_long_prompt() -> None:
    with started("run", "--ctx", "8192", "--threads", "1") as process:
        stream(process, "stdin").write(PASTE)
        stream(process, "stdin").close()
        # The built-in model's line says that loading is over.
        assert "SmolLM2" in stream(process, "stderr").readline()
        time.sleep(0.2)
        assert interrupt(process) == 130
        assert stream(process, "stderr").read().endswith("(stopped)\n")
        assert stream(process, "stdout").read().strip() == ""


@pytest.mark.parametrize("draft", ["none", "self"])
def test_during_the_answer(models: ModelFiles, draft: str) -> None:
    target = ["--ctx", "8192", "--threads", "1", "--temp", "0", "--draft", models.draft(draft)]
    question = "Count from 1 to 30, separated by commas."
    with started("run", question, *target) as process:
        stream(process, "stdin").close()
        first = stream(process, "stdout").read(4)
        assert interrupt(process) == 130
        answer = first + stream(process, "stdout").read()
        assert answer.startswith("1. 1")
        assert answer.endswith("\n")
        assert stream(process, "stderr").read().endswith("(stopped)\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe can be set on Linux only")
def test_while_nobody_reads(models: ModelFiles) -> None:
    """The pipe is full and the write waits: a second Ctrl-C ends that too, not only the computing."""
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(reader, SET_PIPE_SIZE, 4096)
        target = options(models["rambler"], "--ctx", "2048")
        with started("run", "hello", *target, stdout=writer) as process:
            stream(process, "stdin").close()
            _wait_until_full(reader)
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert process.poll() is None, "the write did not wait, so this tests nothing"
            assert interrupt(process) == 130
            assert "Traceback" not in stream(process, "stderr").read()
    finally:
        os.close(reader)
        os.close(writer)


def _wait_until_full(reader: int) -> None:
    waiting = array.array("i", [0])
    before, until = -1, time.monotonic() + LIMIT
    while waiting[0] == 0 or waiting[0] != before:
        assert time.monotonic() < until
        before = waiting[0]
        time.sleep(0.5)
        fcntl.ioctl(reader, termios.FIONREAD, waiting)


def test_a_reader_that_goes_away(models: ModelFiles) -> None:
    with started("run", "hello", *options(models["rambler"])) as process:
        stream(process, "stdin").close()
        assert len(stream(process, "stdout").read(10)) == 10
        stream(process, "stdout").close()
        assert process.wait(LIMIT) in {0, 1}
        err = stream(process, "stderr").read()
        assert "Traceback" not in err
        assert "Broken" not in err
