"""The instruments' readings in words, as both layouts say them. Pure.

Every number is one of `Stats` or `Memory`, or a difference of two. What is not known is a dash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgespec.stats import Stats
from tui.trace import Column, Trace
from tui.widgets.gauges import (
    AXIS,
    AXIS_LINE,
    AXIS_MARK,
    FREE,
    LINE,
    NOT_DRAFTED,
    OURS,
    UNKNOWN,
    chart,
    fitting,
    height,
    shaded,
)
from tui.widgets.status_line import is_plain, rate, speed_up_words

if TYPE_CHECKING:
    from edgespec.memory import Memory

LETTERS = {"plain": NOT_DRAFTED, "lookahead": "A", "draft+tree": "T"}
"""What stands for a way to draft, where that is not the first letter of its name."""
GUTTER = 6
"""Cells in front of a drawing, for its labels."""


@dataclass(frozen=True, slots=True)
class Readings:
    """All that the instruments show; None is not known."""

    trace: Trace = field(default_factory=Trace)
    stats: Stats = field(default_factory=Stats)
    """Of the running answer, or of the last one."""
    memory: Memory | None = None
    context_used: int | None = None
    context_size: int | None = None
    why: str | None = None

    @property
    def plain_speed(self) -> float | None:
        """Tokens a second of plain decoding."""
        seconds = self.trace.plain_seconds
        return 1 / seconds if seconds else None


def percent(share: float) -> str:
    """A share of one."""
    return f"{share * 100:.0f} %"


def letter(source: str) -> str:
    """One character for what drafted; B is both copies and a draft model in one round."""
    if source in LETTERS:
        return LETTERS[source]
    return "B" if "+" in source else source[:1].upper() or "D"


def speed(readings: Readings) -> str:
    """Throughput of the answer."""
    value = readings.stats.tokens_per_second
    return f"{UNKNOWN if value is None else rate(value)} tok/s"


def baseline(readings: Readings) -> str:
    """Throughput of plain decoding, with the sign of its line in the drawing."""
    plain = readings.plain_speed
    return f"{LINE} plain {UNKNOWN if plain is None else rate(plain)}"


def speed_up(readings: Readings) -> str:
    """How the answer compares with plain decoding."""
    if is_plain(readings.stats):
        return "plain decoding"
    return speed_up_words(readings.stats) or f"speed-up {UNKNOWN}"


def drafting(readings: Readings) -> str:
    """What the last round did."""
    stats = readings.stats
    if not stats.rounds:
        return UNKNOWN
    source, length = stats.last_draft
    return f"now {letter(source)} {source or 'draft'}" + (f", {length} tokens" if length else "")


def methods(readings: Readings, *, names: bool) -> list[str]:
    """The share of each way to draft in the answer's rounds."""
    rounds = max(readings.stats.rounds, 1)
    return [
        f"{letter(source)} {f'{source} ' if names else ''}{percent(count / rounds)}"
        for source, count in readings.stats.rounds_by
    ]


def accepted(readings: Readings) -> list[str]:
    """Acceptance and tokens a round, the longest form first."""
    stats = readings.stats
    if stats.tokens_per_round is None:
        return [UNKNOWN]
    each = f"{stats.tokens_per_round:.1f}"
    if stats.acceptance is None:
        return [f"{UNKNOWN}, {each} tok/round", UNKNOWN]
    share = f"{percent(stats.acceptance)} of {stats.tested}"
    return [f"{share} tested, {each} tok/round", f"{share}, {each} a round", share]


def lengths(readings: Readings) -> tuple[int, tuple[int, ...]]:
    """Rounds without a draft, and rounds with one by the tokens that were accepted."""
    stats = readings.stats
    plain = dict(stats.rounds_by).get("plain", 0)
    if not stats.accepted_lengths:
        return plain, ()
    none, *others = stats.accepted_lengths
    return plain, (max(none - plain, 0), *others)


def first_token(readings: Readings) -> str:
    """How long the answer let wait for itself."""
    seconds = readings.stats.ttft_seconds
    return f"{seconds:.2f} s" if seconds > 0 else UNKNOWN


def prefill(readings: Readings) -> list[str]:
    """What was read before the answer, the longest form first."""
    stats = readings.stats
    if not stats.prompt_tokens:
        return [UNKNOWN]
    tokens, reused = f"{stats.prompt_tokens} tokens", f"{stats.reused_tokens} reused"
    seconds = f"{stats.prefill_seconds:.2f} s"
    return [
        f"{tokens}, {reused}, {seconds}",
        f"{stats.prompt_tokens}, {reused}, {seconds}",
        f"{tokens}, {reused}",
        tokens,
    ]


def context(readings: Readings, width: int) -> str:
    """A bar of the context, as wide as there is room, with its numbers."""
    used, size = readings.context_used, readings.context_size
    numbers = f"{UNKNOWN if used is None else used}/{UNKNOWN if size is None else size}"
    if used is None or not size:
        return fitting(width, numbers)
    share = used / size
    told = f"{numbers}  {percent(share)}"
    room = width - len(f" {told}")
    if room < 4:
        return fitting(width, told, numbers)
    return f"{shaded([(OURS, share), (FREE, 1 - share)], room)} {told}"


Columns = Sequence[Column | None]


def columns_for(readings: Readings, width: int) -> Columns:
    """What `drawing` and `strips` draw in `width` cells."""
    return readings.trace.columns(width - GUTTER)


def drawing(readings: Readings, columns: Columns, width: int, rows: int) -> list[str]:
    """Speed over time before the line of plain decoding, in `rows` rows with labels."""
    values: list[float | None] = [column.speed if column else None for column in columns]
    values += [None] * (width - GUTTER - len(values))  # the line goes on where nothing is yet
    plain = readings.plain_speed
    top = max([value for value in values if value is not None] + ([plain] if plain else [0.0]))
    drawn, line_row = chart(values, rows, top, plain)
    lines = []
    for row, cells in enumerate(drawn):
        label = ""
        if row == line_row and plain is not None:
            label = rate(plain)
        elif row == 0 and top > 0:
            label = rate(top)
        mark = AXIS_LINE if row == line_row else AXIS_MARK if label else AXIS
        lines.append(f"{label:>{GUTTER - 1}}{mark}{cells}")
    return lines


def strips(columns: Columns) -> list[str]:
    """Below the drawing, column by column: what drafted, and how many tokens in a round."""
    longest = max([column.length for column in columns if column is not None] or [0])
    how = "".join(" " if column is None else letter(column.source) for column in columns)
    many = "".join(
        " " if column is None or not column.length else height(column.length / longest)
        for column in columns
    )
    label = f"to {longest}" if longest else "len"
    return [f"{'how':>{GUTTER - 1}} {how}", f"{label:>{GUTTER - 1}} {many}"]
