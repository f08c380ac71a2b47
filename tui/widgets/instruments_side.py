"""The instruments as a column beside the conversation. Pure: readings in, lines out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui.widgets import readings as say
from tui.widgets.gauges import (
    NOT_DRAFTED,
    UNKNOWN,
    Heading,
    aside,
    bar,
    fitting,
    grouped,
    listing,
    paragraph,
)
from tui.widgets.memory_bars import device_lines, device_list, device_table, without_devices
from tui.widgets.readings import Columns, Readings

TABLE_WIDTH = 33
"""Least width of a table with three columns of bytes."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is shown: the most of each part, in lines."""

    chart: int
    methods: int
    histogram: int
    memory: Callable[..., list[str]]
    why: int
    gaps: bool = False
    """Whether parts stand apart."""


DETAILS = (
    Detail(chart=7, methods=2, histogram=16, memory=device_table, why=6, gaps=True),
    Detail(chart=5, methods=2, histogram=10, memory=device_table, why=6, gaps=True),
    Detail(chart=5, methods=2, histogram=7, memory=device_table, why=6, gaps=True),
    Detail(chart=4, methods=2, histogram=5, memory=device_table, why=4, gaps=True),
    Detail(chart=4, methods=1, histogram=5, memory=device_table, why=4),
    Detail(chart=3, methods=1, histogram=4, memory=device_list, why=4),
    Detail(chart=3, methods=1, histogram=3, memory=device_list, why=2),
    Detail(chart=2, methods=0, histogram=3, memory=device_lines, why=2),
    Detail(chart=1, methods=0, histogram=2, memory=device_lines, why=1),
    Detail(chart=1, methods=0, histogram=0, memory=device_lines, why=0),
)
"""The richest first; the first that fits is shown."""


def side(readings: Readings, width: int, rows: int) -> list[str]:
    """At most `rows` lines of at most `width` cells."""
    lines: list[str] = []
    columns = say.columns_for(readings, width)
    for detail in DETAILS:
        lines = [*_speed(readings, columns, width, detail), *_others(readings, width, detail)]
        if len(lines) <= rows:
            break
    return lines[:rows]


def _others(readings: Readings, width: int, detail: Detail) -> Iterator[str]:
    for part in (_drafts, _accepted, _start, _memory, _why):
        lines = part(readings, width, detail)
        if lines and detail.gaps:
            yield ""
        yield from lines


def _speed(readings: Readings, columns: Columns, width: int, detail: Detail) -> list[str]:
    head = f"Speed  {say.speed(readings)}"
    return [
        Heading(aside(head, say.baseline(readings), width)),
        fitting(width, say.speed_up(readings)),
        *say.drawing(readings, columns, width, detail.chart),
        *say.strips(columns),
    ]


def _drafts(readings: Readings, width: int, detail: Detail) -> list[str]:
    head = Heading(fitting(width, f"Drafts  {say.drafting(readings)}"))
    lines = listing(say.methods(readings, names=True), width)
    if len(lines) > detail.methods:
        lines = listing(say.methods(readings, names=False), width)[: detail.methods]
    return [head, *lines]


def _accepted(readings: Readings, width: int, detail: Detail) -> list[str]:
    forms = [f"Accepted  {form}" for form in say.accepted(readings)]
    return [Heading(fitting(width, *forms)), *_histogram(readings, width, detail.histogram)]


def _histogram(readings: Readings, width: int, most: int) -> list[str]:
    """Rounds without a draft, then rounds by accepted tokens: name, number, bar."""
    plain, counts = say.lengths(readings)
    if not most or not counts:
        return []
    rows = [(NOT_DRAFTED, plain)] if plain else []
    rows += grouped(counts, max(most - len(rows), 1))
    highest = max(count for _, count in rows) or 1
    digits = len(str(highest))
    room = width - say.GUTTER - digits - 2
    return [
        f"{name:>{say.GUTTER}} {count:>{digits}} {bar(count / highest, room)}".rstrip()
        for name, count in rows
    ]


def _start(readings: Readings, width: int, _: Detail) -> list[str]:
    prompts = [f"Prompt       {form}" for form in say.prefill(readings)]
    return [
        fitting(width, f"First token  {say.first_token(readings)}"),
        fitting(width, *prompts),
        f"Context      {say.context(readings, width - 13)}",
    ]


def _memory(readings: Readings, width: int, detail: Detail) -> list[str]:
    memory = readings.memory
    if memory is None:
        return [Heading(f"Memory  {UNKNOWN}")]
    if not memory.devices:
        return without_devices(memory, width)
    table = detail.memory
    if table is device_table and width < TABLE_WIDTH:
        table = device_list
    lines = table(memory, width)
    if table is device_lines:
        return lines
    return [Heading(fitting(width, lines[0], "Memory")), *lines[1:]]


def _why(readings: Readings, width: int, detail: Detail) -> list[str]:
    return paragraph(readings.why, width, detail.why) if readings.why else []
