"""A result of tuning in words, tables and plots. Pure, apart from the time zone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from edgespec.costs import CostTable, between
from tui.plot import Curve, Glyphs, bars, curves

if TYPE_CHECKING:
    from profiles.tuned import Tuned

UNKNOWN = (
    "Nothing was measured for these models yet. The quick form takes ten seconds; the thorough one some "
    "minutes, and finds the best threads, costs in a long text and what is accepted besides."
)
_ROWS = (1, 2, 4, 8, 16, 32)
_GUESSES = {"a": 50, "b": 70, "c": 90}
"""Acceptances in percent to look at where none was measured, by the mark of their curve."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What drafting is to bring at one acceptance."""

    name: str
    mark: str
    acceptance: float
    length: int
    """The best one; 0 for plain decoding."""
    speedup: float
    rates: tuple[float, ...]
    """Tokens a second by draft length, from 0."""


def known_words(tuned: Tuned) -> str:
    """When and how it was measured."""
    moment = datetime.fromisoformat(tuned.measured_at).astimezone()
    form = "in the quick form" if tuned.quick else "thoroughly"
    return (
        f"Measured {moment:%Y-%m-%d %H:%M} {form}: {_table(tuned).token * 1e3:.1f} ms a token by plain "
        f"decoding. Threads: {tuned.threads} for single rows, {tuned.batch_threads} for batches."
    )


def decision_words(tuned: Tuned) -> str:
    """What follows from it, and what to think of the figures."""
    decision = tuned.recommendation
    text = decision.why
    if "Recommended" not in text:
        text = f"{text} Recommended: {decision.method}."
    if tuned.busy:
        text += f"\nNot to be believed: {tuned.busy} Measure again in a quiet moment."
    return text


def prospects(tuned: Tuned) -> list[Prospect]:
    """By kind of text where acceptance was measured, else for some acceptances."""
    from edgespec.payoff import best, speedup  # noqa: PLC0415 - it loads pydantic, as a result does

    table = _table(tuned)
    cases = [(kind, _mark(kind), share) for kind, share in tuned.acceptance.items()]
    cases = cases or [(f"if {n} % fit", mark, n / 100) for mark, n in _GUESSES.items()]
    found = []
    for name, mark, share in cases:
        gain = best(table, share)
        rates = (speedup(table, share, n) / table.token for n in range(max(table.verify)))
        found.append(Prospect(name, mark, share, gain.length, gain.speedup, tuple(rates)))
    return found


def prospect_table(found: Iterable[Prospect]) -> str:
    """What the plot of speeds shows, as numbers."""
    rows = [["", "text", "accepted", "best length", "tokens/s", "speed-up"]]
    rows += [
        [
            one.mark,
            one.name,
            f"{one.acceptance:.0%}".replace("%", " %"),
            str(one.length or "none"),
            f"{one.rates[one.length]:.1f}",
            f"{one.speedup:.2f}x",
        ]
        for one in found
    ]
    return _aligned(rows, left=2)


def cost_table(tuned: Tuned) -> str:
    """What the plot of costs shows, as numbers, at every depth."""
    widths = [n for n in _ROWS if n <= max(tuned.tables[0].verify)]
    rows = [["rows of a pass", "one takes", *map(str, widths)]]
    for one in _tables(tuned):
        shares = [f"{between(one.verify, n) / one.token:.2f}" for n in widths]
        rows.append([f"after {one.depth} tokens", f"{one.token * 1e3:.1f} ms", *shares])
    return _aligned(rows, left=1)


def cost_plot(tuned: Tuned, width: int, height: int, glyphs: Glyphs) -> list[str]:
    """The time of a pass by rows, that of one row being 1."""
    table = _table(tuned)
    rows = range(1, max(table.verify) + 1)
    return bars([between(table.verify, n) / table.token for n in rows], width, height, glyphs)


def speed_plot(found: Sequence[Prospect], width: int, height: int, glyphs: Glyphs) -> list[str]:
    """Tokens a second by draft length; the level is plain decoding."""
    drawn = [Curve(one.mark, one.rates, one.length) for one in found]
    return curves(drawn, found[0].rates[0], width, height, glyphs)


def _tables(tuned: Tuned) -> list[CostTable]:
    return [CostTable(one.depth, one.verify, one.draft) for one in tuned.tables]


def _table(tuned: Tuned) -> CostTable:
    return _tables(tuned)[0]


def _mark(kind: str) -> str:
    return kind[0].lower()


def _aligned(rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Columns; those after the first `left` end at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        texts = [f"{t:<{w}}" if n < left else f"{t:>{w}}" for n, (t, w) in enumerate(cells)]
        lines.append("  ".join(texts).rstrip())
    return "\n".join(lines)
