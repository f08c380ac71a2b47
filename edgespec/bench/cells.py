"""How figures of a benchmark are written, whatever the table."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.bench.report import NEAR_TIE, PLAIN, SERVER, Report, Row, RunRow, Summary
from edgespec.busy import disturbed

WORDS = {"prompt", "method", "rounds drafted by"}
"""Columns of text; the others hold numbers, and stand right."""

Lines = Sequence[Sequence[str]]


def piped(lines: Lines) -> str:
    """A table of Markdown; the first line is its head."""
    rule = ["---" if title in WORDS else "---:" for title in lines[0]]
    return "\n".join(
        "| " + " | ".join(map(escaped, line)) + " |" for line in (lines[0], rule, *lines[1:])
    )


def escaped(text: str) -> str:
    """Text that does not break a table of Markdown."""
    return text.replace("|", "\\|")


def number(value: float | None, form: str, unit: str = "") -> str:
    """A dash where it is not known."""
    return "-" if value is None else f"{value:{form}}{unit}"


def percent(share: float | None) -> str:
    """A share between 0 and 1."""
    return number(share, ".0%")


def size(count: int | None) -> str:
    """Bytes."""
    if not count:
        return "-" if count is None else "0"
    return f"{count / 1e9:.2f} GB" if count >= 999_500_000 else f"{count / 1e6:.0f} MB"


def exact(one: Row | Summary | RunRow) -> str:
    """Whether it is what plain decoding says; above temperature 0 it is by the rule of acceptance."""
    if one.same_as_plain:
        return "yes"
    if one.same_as_plain is False:
        tie = one.parted_logits is not None and one.parted_logits < NEAR_TIE
        return "tie" if tie else "no"
    return "-" if (one.method, one.draft_length) in {PLAIN, SERVER} else "by rule"


def doubted(report: Report) -> str:
    """Why its speeds are not to be believed, as a sentence; empty where nothing speaks against them."""
    share = report.setup.get("others")
    why = disturbed(share) if isinstance(share, float) else ""
    return (
        why and f"{why} Speeds and ratios are not to be believed: measure again in a quiet moment."
    )
