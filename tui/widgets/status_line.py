"""The numbers of the running answer in one line, shorter where the terminal is narrow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from edgespec.stats import Stats

if TYPE_CHECKING:
    from edgespec.memory import Memory

UNKNOWN = "—"
SEPARATOR = " │ "
REDRAW_SECONDS = 0.05
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
    offline: bool = False
    """Whether nothing here uses the network."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a line of one length says things."""

    speed: str = "tok/s"
    speed_up: str = " plain"
    """What follows the factor; `WORDS` for a phrase."""
    tested: str = " tested"
    memory: str = "mem {}/{}"
    """This process, then the model files."""
    unit: str = ""
    context: str = "ctx"


WORDS = "in words"
FORMS = (
    Form(speed_up=WORDS, memory="memory {}, model files {}", unit="B", context="context"),
    Form(memory="mem {} files {}"),
    Form(),
    Form(tested=""),
    Form(speed="t/s", speed_up="", tested="", memory="{}/{}"),
)
"""The longest first."""
DISPENSABLE = ("memory", "acceptance", "method", "offline", "context", "speed-up")
"""Where the shortest form has no room these leave it, one after the other; the throughput stays."""


def size(count: int, *, unit: str = "") -> str:
    """Bytes in decimal units, three digits: `1.2G`, `612M`; with `unit` B, `612 MB`."""
    gap = " " if unit else ""
    if count >= 9_995_000_000:
        return f"{count / 1e9:.0f}{gap}G{unit}"
    if count >= 999_500_000:
        return f"{count / 1e9:.1f}{gap}G{unit}"
    return f"{count / 1e6:.0f}{gap}M{unit}"


def rate(value: float) -> str:
    """Tokens a second: three digits, or as many as it takes."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}"


def is_plain(stats: Stats) -> bool:
    """Whether no round had a draft: such an answer is plain decoding, whatever the clock says."""
    return stats.rounds > 0 and dict(stats.rounds_by).get("plain", 0) == stats.rounds


def speed_up_words(stats: Stats, *, tail: str = WORDS) -> str:
    """How the answer compares with plain decoding; empty where that is not known, or where it is that."""
    factor = stats.speed_up
    if factor is None or is_plain(stats):
        return ""
    slower = round(factor, 2) < 1
    times = f"{factor:.2f}x" if slower else f"{factor:.1f}x"
    if tail != WORDS:
        return times + tail
    return f"slower than plain: {times}" if slower else f"{times} plain"


def status_text(status: Status, width: int) -> str:
    """The longest form that fits `width` cells; a number is left out rather than cut."""
    for parts in _forms(status):
        text = SEPARATOR.join(filter(None, parts.values()))
        if cell_len(text) <= width:
            return text
    first = _speed(status, FORMS[-1]).split()[0]
    return first if cell_len(first) <= width else ""


def _forms(status: Status) -> Iterator[dict[str, str]]:
    """Parts by name, the longest line first."""
    for form in FORMS:
        yield _parts(status, form)
    left = _parts(status, FORMS[-1])
    for name in DISPENSABLE:
        del left[name]
        yield left


def _parts(status: Status, form: Form) -> dict[str, str]:
    return {
        "speed": _speed(status, form),
        "speed-up": "" if status.activity else speed_up_words(status.stats, tail=form.speed_up),
        "method": _method(status),
        "acceptance": _acceptance(status, form),
        "memory": _memory(status, form),
        "context": f"{form.context} {_context(status)}",
        "offline": "offline" if status.offline else "",
    }


def _speed(status: Status, form: Form) -> str:
    if status.activity:
        return status.activity
    speed = status.stats.tokens_per_second
    return f"{UNKNOWN if speed is None else rate(speed)} {form.speed}"


def _method(status: Status) -> str:
    if status.method is None:
        return UNKNOWN
    if status.method == "auto":
        source, length = status.stats.last_draft
        return f"auto: {source} {length}" if length else "auto: plain"
    return status.method if status.method == "plain" else f"{status.method} {status.draft_length}"


def _acceptance(status: Status, form: Form) -> str:
    acceptance = status.stats.acceptance
    if acceptance is None:
        return f"accepted {UNKNOWN}"
    return f"{acceptance:.0%} of {status.stats.tested}".replace("%", " %") + form.tested


def _memory(status: Status, form: Form) -> str:
    memory = status.memory
    if memory is None:
        return form.memory.format(UNKNOWN, UNKNOWN)
    return form.memory.format(
        size(memory.process, unit=form.unit), size(memory.weights, unit=form.unit)
    )


def _context(status: Status) -> str:
    used = UNKNOWN if status.context_used is None else str(status.context_used)
    total = UNKNOWN if status.context_size is None else str(status.context_size)
    return f"{used}/{total}"


class StatusLine(Widget):
    """One line, never two."""

    def __init__(self) -> None:
        super().__init__()
        self._status = Status()
        self._redraw_due = False
        self._drawn = 0.0
        """When it was drawn last, on the monotonic clock."""

    @property
    def status(self) -> Status:
        """What the line shows, or will in a moment: a fast model changes it faster than eyes see."""
        return self._status

    @status.setter
    def status(self, status: Status) -> None:
        self._status = status
        wait = self._drawn + REDRAW_SECONDS - time.monotonic()
        if wait <= 0:
            # At once, together with the text that came with it: each picture costs the same.
            self._redraw()
        elif not self._redraw_due:
            self._redraw_due = True
            asyncio.get_running_loop().call_later(wait, self._redraw)

    @property
    def text(self) -> str:
        """The longest form of the status that fits."""
        return status_text(self._status, self.content_size.width)

    def render(self) -> Content:
        """Draw the text as it is; it is no markup."""
        return Content(self.text)

    def _redraw(self) -> None:
        self._redraw_due = False
        self._drawn = time.monotonic()
        self.refresh()
