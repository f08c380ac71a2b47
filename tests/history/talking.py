"""Conversations for tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from edgespec.history.records import Entry
from edgespec.history.store import History


def talk(history: History, *texts: str, title: str = "", folder: str = "") -> int:
    """A conversation of questions and answers, in turn."""
    conversation = history.create(title=title, folder=folder, model="m1", persona="p1")
    last = None
    for place, text in enumerate(texts):
        if place % 2:
            last = history.add(conversation, last, "assistant", text, model="m1")
        else:
            last = history.add(conversation, last, "user", text)
    return conversation


def texts(history: History, conversation: int, leaf: int | None = None) -> list[str]:
    return [entry.content for entry in history.path(conversation, leaf)]


def ids(history: History, conversation: int) -> list[int]:
    return [entry.id for entry in history.path(conversation)]


def told(entry: Entry) -> tuple[object, ...]:
    """All of a message but where it is stored."""
    return (
        entry.role,
        entry.content,
        entry.complete,
        entry.created_at,
        entry.model,
        dict(entry.stats),
    )


def run_sql(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Change the file behind the program's back; what the last statement gives."""
    with closing(sqlite3.connect(path)) as sql, sql:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            rows = sql.execute(statement).fetchall()
    return rows
