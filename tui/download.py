"""One download at one moment, and how it is put into words. Knows no threads and no widgets."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from edgespec.shelf.row import Row
from model_registry.sizes import clock, human_size

State = Literal[
    "starting", "waiting", "running", "checking", "stopping", "removing", "paused", "failed", "done"
]

_AT_WORK = frozenset({"starting", "waiting", "running", "checking", "stopping", "removing"})


@dataclass(frozen=True, slots=True)
class Download:
    """One pull."""

    row: Row
    """What is pulled."""
    state: State = "starting"
    done: int = 0
    """Bytes."""
    total: int = 0
    """Bytes; 0 until they are known."""
    speed: float = 0.0
    """Bytes a second."""
    seconds_left: float | None = None
    note: str = ""
    """Why it is tried again, why it failed, or what was found out on the way."""
    stored: str | None = None
    """What to load, once it is done."""

    @property
    def at_work(self) -> bool:
        """Whether its thread runs."""
        return self.state in _AT_WORK

    @property
    def share(self) -> float | None:
        """From 0 to 1; None until the size is known."""
        return self.done / self.total if self.total else None

    @property
    def command(self) -> str:
        """What goes on with it outside the app."""
        words = ["edgespec", "pull", self.row.reference]
        words += ["--draft", self.row.draft] if self.row.draft else []
        words += ["--as", self.row.called] if self.row.called else []
        return shlex.join(words)


def reason(message: str, hint: str) -> str:
    """An error of a pull, for somebody who is not at a command line."""
    for words, keys in (("Run the same command", "Press p"), ("run the same command", "press p")):
        hint = hint.replace(f"{words} again", keys)
    return f"{message} {hint}".strip()


def in_words(download: Download) -> str:
    """One download, short enough for a cell."""
    part = "" if download.share is None else f" {percent(download.share)}"
    match download.state:
        case "running":
            speed = f"  {human_size(download.speed)}/s" if download.speed else ""
            return f"↓{part or ' …'}{speed}"
        case "checking" | "paused":
            return f"{download.state}{part}"
        case "done":
            return "here now"
        case _:
            return download.state


def foot(downloads: Sequence[Download]) -> str:
    """All downloads in a line; empty when none is on its way or waits for somebody."""
    running = [one for one in downloads if one.at_work]
    parts = []
    if running:
        done, size = sum(one.done for one in running), sum(one.total for one in running)
        speed = sum(one.speed for one in running)
        parts.append(f"{len(running)} download{'s' * (len(running) > 1)}")
        sizes = f"{human_size(done)} of {human_size(size)}"
        parts += [percent(done / size), sizes] if size else ["starting"]
        if speed:
            parts += [f"{human_size(speed)}/s", f"{clock((size - done) / speed)} left"]
    for state in ("paused", "failed"):
        count = sum(one.state == state for one in downloads)
        parts += [f"{count} {state}"] if count else []
    return "  ".join(parts)


def farewell(stopped: Sequence[Download]) -> str:
    """What to say of downloads that the end of the app has stopped."""
    kept = sum(one.done for one in stopped)
    if not kept:
        return ""
    if len(stopped) > 1:
        return (
            f"{len(stopped)} downloads were stopped; {human_size(kept)} are kept. "
            "`edgespec list` shows how to go on."
        )
    (one,) = stopped
    size = f" of {human_size(one.total)}" if one.total else ""
    return (
        f"The download of {one.row.name} was stopped; {human_size(kept)}{size} are kept. "
        f"Go on with: {one.command}"
    )


def percent(share: float) -> str:
    """A share of 1, as in `43 %`; 100 only for all of it."""
    return f"{min(int(share * 100), 100)} %"
