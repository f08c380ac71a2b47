"""The tables, and how a file of an older EdgeSpec gets them.

A migration is a tuple of statements; number n leads from version n - 1 to n. One that was published is
never changed: the next one is added. All that a file lacks run in one transaction, and the number goes
into SQLite's `user_version` with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from edgespec.history.problem import HistoryProblem

Migration = tuple[str, ...]

APPLICATION = 0x45645370
"""`EdSp`: tells our files from other programs' (PRAGMA application_id)."""


def _indexed(words: str, table: str, column: str) -> Migration:
    """A full-text index of a column, and the triggers that keep it (sqlite.org/fts5.html, 4.4.3)."""
    new = f"INSERT INTO {words}(rowid, {column}) VALUES (new.id, new.{column});"
    old = f"INSERT INTO {words}({words}, rowid, {column}) VALUES ('delete', old.id, old.{column});"
    return (
        f"CREATE VIRTUAL TABLE {words} USING fts5({column}, content='{table}', content_rowid='id', "
        "tokenize='unicode61 remove_diacritics 2')",
        f"CREATE TRIGGER {words}_add AFTER INSERT ON {table} BEGIN {new} END",
        f"CREATE TRIGGER {words}_remove AFTER DELETE ON {table} BEGIN {old} END",
        f"CREATE TRIGGER {words}_change AFTER UPDATE OF {column} ON {table} BEGIN {old} {new} END",
    )


_FIRST: Migration = (
    f"PRAGMA application_id = {APPLICATION}",
    # Tells this file from the one that takes its place when it is set aside.
    "CREATE TABLE about (identity TEXT NOT NULL)",
    "INSERT INTO about VALUES (lower(hex(randomblob(16))))",
    # AUTOINCREMENT: an id is never given again, so nobody writes into what took the place of another.
    """CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        folder TEXT NOT NULL,
        model TEXT NOT NULL,
        persona TEXT NOT NULL,
        head INTEGER,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        deleted_at REAL
    )""",
    # A parent is always older than what follows it, so that its id is smaller.
    """CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations(id),
        parent INTEGER,
        role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
        content TEXT NOT NULL,
        complete INTEGER NOT NULL,
        model TEXT NOT NULL,
        stats TEXT NOT NULL,
        created_at REAL NOT NULL
    )""",
    "CREATE INDEX messages_by_conversation ON messages(conversation, role)",
    "CREATE INDEX messages_by_parent ON messages(parent)",
    *_indexed("message_words", "messages", "content"),
    *_indexed("title_words", "conversations", "title"),
)

MIGRATIONS: tuple[Migration, ...] = (_FIRST,)


def check(sql: sqlite3.Connection, name: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Refuse a file of a newer EdgeSpec or of another program. Only reads. Raises HistoryProblem."""
    version = _version(sql)
    (application,) = sql.execute("PRAGMA application_id").fetchone()
    (tables,) = sql.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (version or application or tables):
        raise HistoryProblem(
            f"{name} is a database of another program.",
            "Move it away, or move the history with EDGESPEC_HOME.",
        )
    if version > len(migrations):
        raise HistoryProblem(
            f"The history {name} was written by a newer EdgeSpec: its schema is {version}, "
            f"this one knows {len(migrations)}.",
            "Update EdgeSpec, or move the history with EDGESPEC_HOME; the file stays as it is.",
        )


def _version(sql: sqlite3.Connection) -> int:
    (version,) = sql.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(
    sql: sqlite3.Connection, name: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring the file to the newest schema, all or nothing. Raises HistoryProblem, sqlite3.Error."""
    check(sql, name, migrations)
    if _version(sql) == len(migrations):
        return  # nobody who only looks need wait for somebody who writes
    sql.execute("BEGIN IMMEDIATE")
    try:
        check(sql, name, migrations)  # another instance may have been here since
        for migration in migrations[_version(sql) :]:
            for statement in migration:
                sql.execute(statement)
        sql.execute(f"PRAGMA user_version = {len(migrations)}")
        sql.execute("COMMIT")
    except BaseException:
        if sql.in_transaction:
            sql.execute("ROLLBACK")
        raise
