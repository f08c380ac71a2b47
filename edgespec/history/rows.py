"""Rows to records and back. What runs in a transaction of the caller's raises sqlite3.Error."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from edgespec.history.records import Entry, Summary

SUMMARY = (
    "SELECT c.id, c.title, c.folder, c.created_at, c.updated_at, c.model, c.persona, "
    "(SELECT count(*) FROM messages AS m WHERE m.conversation = c.id AND m.role <> 'system') "
    "FROM conversations AS c"
)
ENTRY = "SELECT m.id, m.parent, m.role, m.content, m.complete, m.created_at, m.model, m.stats"


def clean(text: str) -> str:
    """A text that UTF-8 can write: halves of surrogate pairs are joined, or become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def line(text: str) -> str:
    """A text in one line, for titles and names of folders."""
    return " ".join(clean(text).split())


def numbers(stats: Mapping[str, float]) -> str:
    """As JSON; what is no number there is left out."""
    return json.dumps({name: value for name, value in stats.items() if math.isfinite(value)})


def summary_of(row: tuple[Any, ...]) -> Summary:
    """A row of SUMMARY."""
    number, title, folder, created, updated, model, persona, messages = row
    times = (_moment(created), _moment(updated))
    return Summary(number, title, folder, *times, model, persona, messages)


def entry_of(row: tuple[Any, ...]) -> Entry:
    """A row of ENTRY."""
    number, parent, role, content, complete, created, model, stats = row
    facts = (bool(complete), _moment(created), model, json.loads(stats))
    return Entry(number, parent, role, content, *facts)


def insert_conversation(
    sql: sqlite3.Connection, summary: Summary, number: int | None = None
) -> int:
    """With the id `number`, or else a new one."""
    made = sql.execute(
        "INSERT INTO conversations (id, title, folder, model, persona, created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            summary.title,
            summary.folder,
            summary.model,
            summary.persona,
            summary.created_at.timestamp(),
            summary.updated_at.timestamp(),
        ),
    )
    return made.lastrowid or 0


def insert_message(sql: sqlite3.Connection, conversation: int, entry: Entry) -> int:
    """With a new id, whatever that of `entry`."""
    made = sql.execute(
        "INSERT INTO messages "
        "(conversation, parent, role, content, complete, model, stats, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation,
            entry.parent,
            entry.role,
            clean(entry.content),
            entry.complete,
            entry.model,
            numbers(entry.stats),
            entry.created_at.timestamp(),
        ),
    )
    return made.lastrowid or 0


def conversation_of(sql: sqlite3.Connection, message: int) -> int | None:
    """None for a message that is not there."""
    row = sql.execute("SELECT conversation FROM messages WHERE id = ?", (message,)).fetchone()
    return None if row is None else int(row[0])


def first_question(sql: sqlite3.Connection, conversation: int) -> str:
    """Empty while there is none."""
    row = sql.execute(
        "SELECT content FROM messages WHERE conversation = ? AND role = 'user' ORDER BY id LIMIT 1",
        (conversation,),
    ).fetchone()
    return "" if row is None else str(row[0])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
