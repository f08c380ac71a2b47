"""One view of files on their way: a table that is painted over, plain lines, or JSON events."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import Self, TextIO

from edgespec.cli import output
from edgespec.cli.models import human_size
from model_registry.progress import Progress, total
from model_registry.sizes import clock

__all__ = ["Painter", "PlainLines", "ProgressView", "clock", "describe", "total"]

_REPAINT = 0.1
_PLAIN_EVERY = 10.0
"""Seconds between plain lines about one file."""
_NUMBERS = 48
"""Columns that sizes, speed and time left take."""
_WORDS = {
    "waiting": "waiting",
    "downloading": "",
    "retrying": "trying again",
    "hashing": "checking",
    "done": "done",
}


class ProgressView:
    """Told about progress by calling it, from one thread. A context: it leaves the screen in order."""

    def __init__(
        self,
        show: Callable[[Progress], None],
        *,
        say: Callable[[str], None] = output.note,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._show, self._say, self._finish = show, say, finish

    @classmethod
    def for_terminal(cls, *, quiet: bool = False) -> ProgressView:
        """On stderr: painted over where it is a terminal, else a line now and then."""
        if quiet:
            return cls(lambda progress: None)
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            painter = Painter(sys.stderr)
            return cls(painter.show, say=painter.say, finish=painter.finish)
        return cls(PlainLines().show)

    @classmethod
    def as_json(cls) -> ProgressView:
        """On stdout, one JSON object a line. The keys are a published format."""
        return cls(
            lambda progress: _event({"event": "progress", **asdict(progress)}),
            say=lambda text: _event({"event": "note", "text": text}),
        )

    def __call__(self, progress: Progress) -> None:
        """Show it."""
        self._show(progress)

    def say(self, text: str) -> None:
        """A line that stays."""
        self._say(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._finish()


class Painter:
    """A line a file and one for all, written over each other with ANSI sequences."""

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic, width: int | None = None
    ) -> None:
        self._stream, self._clock, self._width = stream, clock, width
        self._files: dict[str, Progress] = {}
        self._lines = 0
        self._painted = float("-inf")

    def show(self, progress: Progress) -> None:
        """Paint, at most ten times a second."""
        self._files[progress.name] = progress
        if self._clock() - self._painted >= _REPAINT:
            self._paint()

    def say(self, text: str) -> None:
        """Write a line above the others."""
        self._clear()
        output.note(text)

    def _clear(self) -> None:
        if self._lines:
            self._stream.write(f"\x1b[{self._lines}F\x1b[J")
            self._lines = 0

    def finish(self) -> None:
        """Paint the last state, which stays."""
        if self._files:
            self._paint()
        self._lines = 0

    def _paint(self) -> None:
        self._painted = self._clock()
        width = (self._width or shutil.get_terminal_size().columns) - 1
        files = list(self._files.values())
        shown = [*files, total(files)] if len(files) > 1 else files
        lines = [describe(one, width) for one in shown]
        self._clear()
        self._stream.write("".join(f"{line[:width]}\n" for line in lines))
        self._stream.flush()
        self._lines = len(lines)


class PlainLines:
    """A line when a file's state changes, and every ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, tuple[str, str, float]] = {}

    def show(self, progress: Progress) -> None:
        """Write a line, if it is time to."""
        state, note, then = self._last.get(progress.name, ("", "", float("-inf")))
        now = self._clock()
        changed = (progress.state, progress.note) != (state, note)
        if progress.state != "waiting" and (changed or now - then >= _PLAIN_EVERY):
            self._last[progress.name] = (progress.state, progress.note, now)
            output.note(describe(progress))


def describe(progress: Progress, width: int | None = None) -> str:
    """A file's progress as a line: bytes, speed, time left. Its name gives way to a narrow screen."""
    name, room = progress.name, max((width or 1000) - _NUMBERS, 12)
    if len(name) > room:
        name = f"{name[: room // 2 - 1]}…{name[-(room - room // 2) :]}"
    share = progress.done / progress.total if progress.total else 1.0
    sizes = f"{human_size(progress.done)} of {human_size(progress.total)}"
    parts = [f"{name}  {share:4.0%}  {sizes}"]
    if progress.state in ("downloading", "hashing") and progress.speed:
        parts.append(f"{human_size(progress.speed)}/s")
        if progress.seconds_left is not None:
            parts.append(f"{clock(progress.seconds_left)} left")
    parts += [text for text in (_WORDS[progress.state], progress.note) if text]
    return "  ".join(parts)


def _event(facts: dict[str, object]) -> None:
    output.answer(json.dumps(facts, ensure_ascii=False) + "\n")
