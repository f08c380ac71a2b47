"""Who owns stdout, stderr and the exit code: stdout carries answers and results, stderr all the rest."""

from __future__ import annotations

import os
import sys
from enum import IntEnum

from edgespec.errors import EdgeSpecError


class ExitCode(IntEnum):
    """What the shell is told."""

    OK = 0
    ERROR = 1
    USAGE = 2
    INTERRUPTED = 130
    """128 + SIGINT, as shells have it."""


def prepare() -> None:
    """Let a character that the terminal's encoding lacks become a `?` and not an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def answer(text: str) -> None:
    """A part of the result, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def note(text: str) -> None:
    """A line about what happens."""
    print(text, file=sys.stderr, flush=True)


def error(problem: EdgeSpecError) -> None:
    """What went wrong, and on a line of its own what to do."""
    note(f"edgespec: {problem.message}")
    if problem.hint:
        note(f"  {problem.hint}")


def leave_broken_pipe() -> None:
    """The reader of stdout has gone: keep Python from complaining when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
