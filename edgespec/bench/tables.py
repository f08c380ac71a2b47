"""A report as text: a table for the terminal, Markdown, CSV, JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Sequence

from edgespec.bench.cells import WORDS, Lines, doubted, escaped, exact, number, percent, piped, size
from edgespec.bench.report import PLAIN, SERVER, Key, Report, Row, RunRow, Summary, name
from edgespec.bench.verdicts import verdicts

_HEAD = (
    "method", "tok/s", "speed-up", "quartiles", "worst", "accepted", "tok/round", "rows/round",
    "TTFT s", "exact",
)  # fmt: skip
_SUMMARY_HEAD = (
    "method", "speed-up", "worst", "accepted", "tok/round", "rows/round", "cost/round", "memory",
    "exact",
)  # fmt: skip
_RUN_HEAD = (
    "prompt", "method", "temp", "repeat", "tokens", "tok/s", "speed-up", "accepted", "tok/round",
    "rows/round", "TTFT s", "exact", "rounds drafted by",
)  # fmt: skip
ALL = "all"
"""The category of a mean over all."""

_TIE = (
    "exact, tie: a text went another way than plain decoding's where the target's logits for the two "
    "tokens are {:.2f} apart at most. Rounding does that, of several rows against one; --strict avoids it."
)
_OTHER_TEXT = (
    "exact, no: a text went another way than plain decoding's, by no near tie that is known."
)


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
    return _document(report, details, _aligned, str)


def as_markdown(report: Report, *, details: bool) -> str:
    """For a page."""
    return _document(report, details, piped, "**{}**".format)


def _document(
    report: Report, details: bool, table: Callable[[Lines], str], title: Callable[[str], str]
) -> str:
    many = len({row.temperature for row in report.runs}) > 1
    parts: list[str] = []
    for category, temperature in dict.fromkeys((r.category, r.temperature) for r in report.rows):
        rows = [r for r in report.rows if (r.category, r.temperature) == (category, temperature)]
        parts.append(title(_title(escaped(category), temperature, many)))
        parts.append(table([_HEAD, *map(_cells, rows)]))
    for temperature in dict.fromkeys(one.temperature for one in report.summary):
        every = [one for one in report.summary if one.temperature == temperature]
        every.sort(key=lambda one: -one.speedup)
        parts.append(title(_title(f"{ALL}, the fastest first", temperature, many)))
        parts.append(table([_SUMMARY_HEAD, *map(_summary_cells, every)]))
    if details:
        shown = {"temp": many, "repeat": any(run.repeat > 1 for run in report.runs)}
        parts.append(table(_columns(_RUN_HEAD, [_run_cells(run) for run in report.runs], shown)))
    # A paragraph each, so that Markdown keeps them apart too.
    parts += _sentences(report, many)
    return "\n\n".join(parts) + "\n"


def _title(text: str, temperature: float, many: bool) -> str:
    return f"{text}, temperature {temperature:g}" if many else text


def _columns(head: Sequence[str], lines: Lines, shown: dict[str, bool]) -> Lines:
    """Head and lines without the columns that are not shown."""
    kept = [i for i, title in enumerate(head) if shown.get(title, True)]
    return [[line[i] for i in kept] for line in (head, *lines)]


def _aligned(lines: Lines) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = [title in WORDS for title in lines[0]]
    padded = (
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, left, strict=True)
        )
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        name((row.method, row.draft_length)),
        f"{row.tokens_per_second:.1f}",
        f"{row.speedup:.2f}x",
        f"{row.speedup_low:.2f}-{row.speedup_high:.2f}",
        f"{row.worst_prompt.speedup:.2f}x",
        percent(row.acceptance),
        f"{row.tokens_per_round:.2f}",
        number(row.rows_per_round, ".2f"),
        f"{row.ttft_s:.2f}",
        exact(row),
    )


def _summary_cells(summary: Summary) -> tuple[str, ...]:
    cost = None
    if summary.draft_cost is not None and summary.verify_cost is not None:
        cost = summary.draft_cost + summary.verify_cost
    return (
        name((summary.method, summary.draft_length)),
        f"{summary.speedup:.2f}x",
        f"{summary.worst_prompt.speedup:.2f}x",
        percent(summary.acceptance),
        f"{summary.tokens_per_round:.2f}",
        number(summary.rows_per_round, ".2f"),
        number(cost, ".2f"),
        size(summary.memory_bytes),
        exact(summary),
    )


def _run_cells(run: RunRow) -> tuple[str, ...]:
    return (
        run.id,
        name((run.method, run.draft_length)),
        f"{run.temperature:g}",
        str(run.repeat),
        str(run.tokens),
        number(run.tokens_per_second, ".1f"),
        number(run.speedup, ".2f", "x"),
        percent(run.acceptance),
        number(run.tokens_per_round, ".2f"),
        number(run.rows_per_round, ".2f"),
        f"{run.ttft_s:.2f}",
        exact(run),
        ", ".join(f"{source or 'none'} {count}" for source, count in run.sources.items()),
    )


def _sentences(report: Report, many: bool) -> list[str]:
    """What a table does not say."""
    found: list[str] = []
    if doubt := doubted(report):
        found.append(doubt)
    if not report.complete:
        found.append("Stopped early: these are the prompts that were finished.")
    if report.left_out:
        found.append(
            f"Left out, because an answer was too short to have a speed: {report.left_out}."
        )
    if len({row.category for row in report.rows}) > 1:
        found.append(
            f"{ALL}: the geometric mean over the categories, and the worst prompt of them all."
        )
    found += _of_other_texts(report.rows)
    for temperature in dict.fromkeys(one.temperature for one in report.summary):
        at = f"temperature {temperature:g}: " if many else ""
        every = [one for one in report.summary if one.temperature == temperature]
        said = [sentence for one in every for sentence in _of_one(one)]
        found += [f"{at}{sentence}." for sentence in (*said, *verdicts(every))]
    doubts = report.setup.get("doubts", ())
    found += [str(text) for text in doubts] if isinstance(doubts, Sequence) else []
    if report.rows:
        peak = max(row.peak_rss_bytes for row in report.rows)
        found.append(f"memory of this process at its highest: {peak / 1e9:.2f} GB")
    shares = ", ".join(f"{arm} {share:.1%}" for arm, share in report.outside_llama_cpp.items())
    found.append(f"time outside llama.cpp: {shares}")
    return found


def _of_other_texts(rows: Sequence[Row]) -> list[str]:
    ties = [row.parted_logits for row in rows if row.parted_logits and exact(row) == "tie"]
    found = [_TIE.format(max(ties))] if ties else []
    return [*found, _OTHER_TEXT] if any(exact(row) == "no" for row in rows) else found


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
