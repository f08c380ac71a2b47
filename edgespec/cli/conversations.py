"""How `edgespec history` puts conversations into words and into JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgespec.cli.models import table, when
from edgespec.history.records import SPEAKERS, Entry, Hit, Summary
from edgespec.printable import printable


def listed(found: Sequence[Summary]) -> str:
    """A table."""
    rows = [("ID", "WHEN", "MESSAGES", "MODEL", "FOLDER", "TITLE")]
    rows += [
        (
            str(one.id),
            when(one.updated_at),
            str(one.messages),
            printable(one.model) or "-",
            printable(one.folder) or "-",
            printable(one.title) or "-",
        )
        for one in found
    ]
    return table(rows, right=frozenset({0, 2}))


def hits(found: Sequence[Hit]) -> str:
    """Two lines each."""
    return "".join(
        f"{hit.summary.id}  {when(hit.summary.updated_at)}  {printable(hit.summary.title)}\n"
        f"    {printable(hit.snippet)}\n"
        for hit in found
    )


def spoken(summary: Summary, entries: Sequence[Entry]) -> str:
    """A conversation to read, its control characters made visible."""
    model = f"  {printable(summary.model)}" if summary.model else ""
    lines = [printable(summary.title), f"{when(summary.updated_at)}{model}"]
    for entry in entries:
        speaker = printable(entry.model) or SPEAKERS[entry.role]
        cut = "" if entry.complete else "\n(cut)"
        lines.append(f"\n--- {speaker}, {when(entry.created_at)}\n{printable(entry.content)}{cut}")
    return "\n".join(lines) + "\n"


def summary_facts(summary: Summary) -> dict[str, Any]:
    """A conversation for JSON. The keys are a published format."""
    return {
        "id": summary.id,
        "title": summary.title,
        "folder": summary.folder,
        "model": summary.model,
        "persona": summary.persona,
        "messages": summary.messages,
        "created_at": summary.created_at.isoformat(timespec="seconds"),
        "updated_at": summary.updated_at.isoformat(timespec="seconds"),
    }


def hit_facts(hit: Hit) -> dict[str, Any]:
    """What was found, for JSON. The keys are a published format."""
    return {**summary_facts(hit.summary), "message": hit.message, "snippet": hit.snippet}


def entry_facts(entry: Entry) -> dict[str, Any]:
    """A message for JSON. The keys are a published format."""
    return {
        "id": entry.id,
        "role": entry.role,
        "content": entry.content,
        "complete": entry.complete,
        "model": entry.model,
        "stats": dict(entry.stats),
        "created_at": entry.created_at.isoformat(timespec="seconds"),
    }
