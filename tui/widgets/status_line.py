"""The numbers of the running answer in one line, shorter where the terminal is narrow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from edgespec.stats import Stats

if TYPE_CHECKING:
    from edgespec.session import Memory

UNKNOWN = "—"
SEPARATOR = " │ "
REDRAW_SECONDS = 0.1
"""Least time between two redraws; every redraw takes time from the model."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the line shows; None is not known yet."""

    activity: str = ""
    """What happens instead of decoding, e.g. `loading`; takes the place of the throughput."""
    method: str | None = None
    draft_length: int = 0
    stats: Stats = field(default_factory=Stats)
    memory: Memory | None = None
    context_used: int | None = None
    context_size: int | None = None


def size(count: int, *, unit: str = "") -> str:
    """Bytes in decimal units, three digits: `1.2G`, `612M`; with `unit` B, `612 MB`."""
    gap = " " if unit else ""
    if count >= 9_995_000_000:
        return f"{count / 1e9:.0f}{gap}G{unit}"
    if count >= 999_500_000:
        return f"{count / 1e9:.1f}{gap}G{unit}"
    return f"{count / 1e6:.0f}{gap}M{unit}"


def status_text(status: Status, width: int) -> str:
    """The longest form that fits `width` cells; the shortest where none does."""
    text = ""
    for form in (_long, _medium, _narrow, _short):
        text = SEPARATOR.join(form(status))
        if cell_len(text) <= width:
            break
    return text


def _speed(status: Status, unit: str) -> str:
    if status.activity:
        return status.activity
    speed = status.stats.tokens_per_second
    if speed is None:
        return f"{UNKNOWN} {unit}"
    return f"{speed:.0f} {unit}" if speed >= 99.95 else f"{speed:.1f} {unit}"


def _method(status: Status) -> str:
    if status.method is None:
        return UNKNOWN
    if status.method == "auto":
        source, length = status.stats.last_draft
        return f"auto: {source} {length}" if length else "auto: plain"
    return status.method if status.method == "plain" else f"{status.method} {status.draft_length}"


def _acceptance(status: Status, tail: str) -> str:
    acceptance = status.stats.acceptance
    if acceptance is None:
        return f"accepted {UNKNOWN}"
    return f"{acceptance:.0%} of {status.stats.tested}".replace("%", " %") + tail


def _memory(status: Status, *, unit: str = "") -> tuple[str, str]:
    """This process and the model files."""
    if status.memory is None:
        return UNKNOWN, UNKNOWN
    return size(status.memory.process, unit=unit), size(status.memory.weights, unit=unit)


def _context(status: Status) -> str:
    used = UNKNOWN if status.context_used is None else str(status.context_used)
    total = UNKNOWN if status.context_size is None else str(status.context_size)
    return f"{used}/{total}"


def _long(status: Status) -> list[str]:
    process, files = _memory(status, unit="B")
    return [
        _speed(status, "tok/s"),
        _method(status),
        _acceptance(status, " tested"),
        f"memory {process}, model files {files}",
        f"context {_context(status)}",
    ]


def _medium(status: Status) -> list[str]:
    process, files = _memory(status)
    return [
        _speed(status, "tok/s"),
        _method(status),
        _acceptance(status, " tested"),
        f"mem {process} files {files}",
        f"ctx {_context(status)}",
    ]


def _narrow(status: Status) -> list[str]:
    process, files = _memory(status)
    return [*_medium(status)[:3], f"mem {process}/{files}", f"ctx {_context(status)}"]


def _short(status: Status) -> list[str]:
    process, files = _memory(status)
    return [
        _speed(status, "t/s"),
        _method(status),
        _acceptance(status, ""),
        f"{process}/{files}",
        f"ctx {_context(status)}",
    ]


class StatusLine(Widget):
    """One line, never two."""

    def __init__(self) -> None:
        super().__init__()
        self._status = Status()
        self._redraw_due = False

    @property
    def status(self) -> Status:
        """What the line shows, or will in a moment: a fast model changes it faster than eyes see."""
        return self._status

    @status.setter
    def status(self, status: Status) -> None:
        self._status = status
        if not self._redraw_due:
            self._redraw_due = True
            self.set_timer(REDRAW_SECONDS, self._redraw)

    @property
    def text(self) -> str:
        """The longest form of the status that fits."""
        return status_text(self._status, self.content_size.width)

    def render(self) -> Content:
        """Draw the text as it is; it is no markup."""
        return Content(self.text)

    def _redraw(self) -> None:
        self._redraw_due = False
        self.refresh()
