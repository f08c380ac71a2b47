"""The instruments in a few lines below the conversation. Pure: readings in, lines out."""

from __future__ import annotations

from tui.widgets import readings as say
from tui.widgets.gauges import NOT_DRAFTED, UNKNOWN, fitting, grouped, height, paragraph
from tui.widgets.memory_bars import device_forms, without_devices
from tui.widgets.readings import Readings

COMPACT_HEIGHT = 7
"""Lines of this layout."""
TWO_COLUMNS = 62
"""From this width on the drawings are beside the words."""
WORDS_WIDTH = 42
"""Most cells that the words take of two columns, a little more than half."""
MOST_GROUPS = 9


def compact(readings: Readings, width: int, rows: int) -> list[str]:
    """At most `rows` lines of at most `width` cells."""
    lines = _beside(readings, width) if width >= TWO_COLUMNS else _below(readings, width)
    return lines[:rows]


def _beside(readings: Readings, width: int) -> list[str]:
    left = min(width * 11 // 20, WORDS_WIDTH)
    right = width - left - 1
    columns = say.columns_for(readings, right)
    words = [
        _speed(readings, left),
        fitting(left, f"Drafts  {say.drafting(readings)}"),
        _accepted(readings, left),
        _histogram(readings, left),
        _start(readings, left),
    ]
    drawn = [
        *say.drawing(readings, columns, right, 2),
        *say.strips(columns),
        f"Context  {say.context(readings, right - 9)}",
    ]
    pairs = zip(words, drawn, strict=True)
    lines = [f"{one:<{left}} {other}".rstrip() for one, other in pairs]
    return [*lines, _memory(readings, width), *_why(readings, width)]


def _below(readings: Readings, width: int) -> list[str]:
    columns = say.columns_for(readings, width)
    return [
        _speed(readings, width),
        *say.drawing(readings, columns, width, 1),
        say.strips(columns)[0],
        _accepted(readings, width),
        _histogram(readings, width),
        f"Context  {say.context(readings, width - 9)}",
        _memory(readings, width),
    ]


def _speed(readings: Readings, width: int) -> str:
    words = f"{say.speed(readings)}  {say.speed_up(readings)}"
    return fitting(width, f"{words} ({say.baseline(readings)})", words, say.speed(readings))


def _accepted(readings: Readings, width: int) -> str:
    return fitting(width, *(f"Accepted  {form}" for form in say.accepted(readings)))


def _histogram(readings: Readings, width: int) -> str:
    """Rounds without a draft, then rounds by accepted tokens, in as many groups as there is room."""
    plain, counts = say.lengths(readings)
    if not counts:
        return f"Rounds  {UNKNOWN}"
    line = ""
    for groups in range(MOST_GROUPS, 0, -1):
        rows = [(NOT_DRAFTED, plain)] if plain else []
        rows += grouped(counts, groups)
        highest = max(count for _, count in rows) or 1
        bars = (f"{name}:{height(count / highest).strip()}{count}" for name, count in rows)
        line = f"Rounds  {' '.join(bars)}"
        if len(line) <= width:
            break
    return fitting(width, line)


def _start(readings: Readings, width: int) -> str:
    first, stats = f"First token {say.first_token(readings)}", readings.stats
    if not stats.prompt_tokens:
        return first
    prompt = f"prompt {stats.prompt_tokens}"
    return fitting(
        width, f"{first}, {prompt} ({stats.reused_tokens} reused)", f"{first}, {prompt}", first
    )


def _memory(readings: Readings, width: int) -> str:
    memory = readings.memory
    if memory is None:
        return f"Memory  {UNKNOWN}"
    if not memory.devices:
        return without_devices(memory, width)[0]
    forms = zip(*(device_forms(memory, device) for device in memory.devices), strict=True)
    return fitting(width, *(f"Memory  {' │ '.join(form)}" for form in forms))


def _why(readings: Readings, width: int) -> list[str]:
    return paragraph(readings.why, width, 1) if readings.why else []
