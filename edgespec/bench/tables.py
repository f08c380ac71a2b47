"""A report as text: a table for the terminal, Markdown, CSV, JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Sequence

from edgespec.bench.report import PLAIN, SERVER, Key, Report, Row, RunRow, Summary, name

_HEAD = (
    "category", "method", "length", "temp", "tok/s", "speed-up", "quartiles", "worst", "accepted",
    "tok/round", "TTFT s", "same text",
)  # fmt: skip
_RUN_HEAD = (
    "prompt", "method", "length", "temp", "repeat", "tokens", "tok/s", "speed-up", "accepted",
    "tok/round", "TTFT s", "same text", "rounds drafted by",
)  # fmt: skip
_WORDS = {"category", "prompt", "method", "rounds drafted by"}
"""Columns of text; the others hold numbers, and stand right."""
ALL = "all"
"""The category of a mean over all."""

Lines = Sequence[Sequence[str]]


def as_json(report: Report) -> str:
    """The published format."""
    return json.dumps(dataclasses.asdict(report), indent=2, ensure_ascii=False) + "\n"


def as_csv(report: Report, *, details: bool) -> str:
    """The rows, or with `details` the runs; numbers as they are, nested fields in columns of their own."""
    records = report.runs if details else report.rows
    fields = dataclasses.fields(RunRow if details else Row)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = [field.name for field in fields]
    writer.writerow([*heads[:-1], *_LAST_HEADS[details]])
    for record in records:
        *values, _ = (getattr(record, head) for head in heads)
        writer.writerow([*values, *_last(record)])
    return text.getvalue()


_LAST_HEADS = {False: ("worst_prompt", "worst_speedup"), True: ("sources",)}


def _last(record: Row | RunRow) -> tuple[object, ...]:
    if isinstance(record, Row):
        return record.worst_prompt.id, record.worst_prompt.speedup
    return (" ".join(f"{source or 'none'}={count}" for source, count in record.sources.items()),)


def as_text(report: Report, *, details: bool) -> str:
    """For a terminal."""
    return _document(report, details, _aligned)


def as_markdown(report: Report, *, details: bool) -> str:
    """For a page."""
    return _document(report, details, _piped)


def _document(report: Report, details: bool, table: Callable[[Lines], str]) -> str:
    many = len({row.temperature for row in report.runs}) > 1
    parts = [table(_columns(_HEAD, _rows(report), {"temp": many}))] if report.rows else []
    if details:
        repeats = any(run.repeat > 1 for run in report.runs)
        lines = [_run_cells(run) for run in report.runs]
        parts.append(table(_columns(_RUN_HEAD, lines, {"temp": many, "repeat": repeats})))
    # A paragraph each, so that Markdown keeps them apart too.
    parts += _sentences(report, many)
    return "\n\n".join(parts) + "\n"


def _columns(head: Sequence[str], lines: Lines, shown: dict[str, bool]) -> Lines:
    """Head and lines without the columns that are not shown."""
    kept = [i for i, title in enumerate(head) if shown.get(title, True)]
    return [[line[i] for i in kept] for line in (head, *lines)]


def _aligned(lines: Lines) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = [title in _WORDS for title in lines[0]]
    padded = (
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, left, strict=True)
        )
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def _piped(lines: Lines) -> str:
    rule = ["---" if title in _WORDS else "---:" for title in lines[0]]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
        for line in (lines[0], rule, *lines[1:])
    )


def _rows(report: Report) -> list[tuple[str, ...]]:
    """With a mean where there is more than one category to take it of."""
    several = len({row.category for row in report.rows}) > 1
    drafted = [one for one in report.summary if several and one.method != PLAIN[0]]
    return [*map(_cells, report.rows), *map(_mean_cells, drafted)]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.category,
        row.method,
        _length((row.method, row.draft_length)),
        f"{row.temperature:g}",
        f"{row.tokens_per_second:.1f}",
        f"{row.speedup:.2f}x",
        f"{row.speedup_low:.2f}-{row.speedup_high:.2f}",
        f"{row.worst_prompt.speedup:.2f}x",
        _percent(row.acceptance),
        f"{row.tokens_per_round:.2f}",
        f"{row.ttft_s:.2f}",
        _yes(row.same_as_plain),
    )


def _mean_cells(summary: Summary) -> tuple[str, ...]:
    length = _length((summary.method, summary.draft_length))
    worst = f"{summary.worst_prompt.speedup:.2f}x"
    head = (ALL, summary.method, length, f"{summary.temperature:g}", "")
    return (*head, f"{summary.speedup:.2f}x", "", worst, *[""] * 4)


def _run_cells(run: RunRow) -> tuple[str, ...]:
    return (
        run.id,
        run.method,
        _length((run.method, run.draft_length)),
        f"{run.temperature:g}",
        str(run.repeat),
        str(run.tokens),
        _number(run.tokens_per_second, ".1f"),
        _number(run.speedup, ".2f", "x"),
        _percent(run.acceptance),
        _number(run.tokens_per_round, ".2f"),
        f"{run.ttft_s:.2f}",
        _yes(run.same_as_plain),
        ", ".join(f"{source or 'none'} {count}" for source, count in run.sources.items()),
    )


def _sentences(report: Report, many: bool) -> list[str]:
    """What a table does not say."""
    found: list[str] = []
    if not report.complete:
        found.append("Stopped early: these are the prompts that were finished.")
    if report.left_out:
        found.append(
            f"Left out, because an answer was too short to have a speed: {report.left_out}."
        )
    if len({row.category for row in report.rows}) > 1:
        found.append(
            "all: the geometric mean over the categories, and the worst prompt of them all."
        )
    for summary in report.summary:
        at = f" at temperature {summary.temperature:g}" if many else ""
        found += [sentence + at + "." for sentence in _of_one(summary)]
    if report.rows:
        peak = max(row.peak_rss_bytes for row in report.rows)
        found.append(f"memory of this process at its highest: {peak / 1e9:.2f} GB")
    shares = ", ".join(f"{arm} {share:.1%}" for arm, share in report.outside_llama_cpp.items())
    found.append(f"time outside llama.cpp: {shares}")
    return found


def _of_one(summary: Summary) -> list[str]:
    found: list[str] = []
    arm: Key = (summary.method, summary.draft_length)
    if summary.of_best_fixed is not None and summary.of_own_best:
        own = ", ".join(f"{category} {x:.2f}" for category, x in summary.of_own_best.items())
        found.append(
            f"auto is {summary.of_best_fixed:.2f} times as fast as the best single fixed length, and "
            f"compared with each category's own best: {own}"
        )
    if (
        summary.of_server is not None
        and arm != SERVER
        and (arm == PLAIN or not summary.draft_length)
    ):
        found.append(f"{name(arm)} is {summary.of_server:.2f} times as fast as the server")
    return found


def _length(arm: Key) -> str:
    return str(arm[1]) if arm[1] else "-"


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


def _percent(share: float | None) -> str:
    return _number(share, ".0%")


def _yes(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"
