"""A conversation as Markdown: what is shown of it, for people, and for reading it in again unchanged.

Messages stand between two comments that no viewer shows. The second one is chosen such that it occurs
in no message, so that a text needs no escaping, whatever is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgespec.history.records import SPEAKERS, Entry, Summary
from edgespec.printable import printable

FORMAT = 1

_HEADER = re.compile(r"^<!-- edgespec (\{.*\}) -->\r?$", re.MULTILINE)
_MESSAGE = re.compile(r"^<!-- message (\{.*\}) -->$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")


def written(summary: Summary, entries: Sequence[Entry]) -> str:
    """The whole file."""
    end = _end_of(entries)
    facts = {
        "format": FORMAT,
        "end": end,
        "title": summary.title,
        "folder": summary.folder,
        "model": summary.model,
        "persona": summary.persona,
        "created_at": summary.created_at.isoformat(),
        "updated_at": summary.updated_at.isoformat(),
    }
    head = f"# {printable(summary.title) or 'Conversation'}\n\n<!-- edgespec {_json(facts)} -->\n"
    return head + "".join(_message(entry, end) for entry in entries)


def is_ours(text: str) -> bool:
    """Whether `parsed` can read it."""
    return _HEADER.search(text) is not None


def parsed(text: str) -> dict[str, Any]:
    """The facts of such a file, its messages under `messages` with `content`. Raises ValueError."""
    header = _HEADER.search(text)
    if header is None:
        raise ValueError("no header")
    if header[0].endswith("\r"):  # somebody's editor has put Windows' line ends everywhere
        return parsed(text.replace("\r\n", "\n"))
    facts = json.loads(header[1])
    end = f"\n<!-- {facts['end']} -->"
    messages = []
    position = header.end()
    while start := _MESSAGE.search(text, position):
        position = text.find(end, start.end() + 1)
        if position < 0:
            raise ValueError("the end of a message is missing")
        content = text[start.end() + 1 : position]
        messages.append({**json.loads(start[1]), "content": content})
        position += len(end)
    return {**facts, "messages": messages}


def _end_of(entries: Sequence[Entry]) -> str:
    """The text of the comment that ends a message."""
    end, number = "end", 1
    while any(f"<!-- {end} -->" in entry.content for entry in entries):
        number += 1
        end = f"end {number}"
    return end


def _message(entry: Entry, end: str) -> str:
    facts: dict[str, Any] = {"role": entry.role, "created_at": entry.created_at.isoformat()}
    if entry.role == "assistant":
        facts |= {"model": entry.model, "complete": entry.complete, "stats": dict(entry.stats)}
    speaker = printable(entry.model) or SPEAKERS[entry.role]
    cut = "" if entry.complete else "\n*(cut)*\n"
    return (
        f"\n## {speaker}\n\n<!-- message {_json(facts)} -->\n{entry.content}\n<!-- {end} -->\n"
        f"{_open_fence(entry.content)}{cut}"
    )


def _json(facts: Mapping[str, Any]) -> str:
    """In one line, and without what would end a comment."""
    return json.dumps(facts, ensure_ascii=False).replace(">", "\\u003e")


def _open_fence(text: str) -> str:
    """What closes a fence that a cut answer left open, or else a viewer shows all below as code."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found.groups()
        if not fence and not (marks[0] == "`" and "`" in rest):
            fence = marks
        elif fence and marks.startswith(fence) and not rest.strip():
            fence = ""
    return f"{fence}\n" if fence else ""
