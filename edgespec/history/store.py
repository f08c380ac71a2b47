"""The history: conversations as trees of messages, in the platform's data folder.

An edited question or another answer is a sibling of the first one, so that nothing that was written is
ever replaced. `head` of a conversation is the leaf that is shown; the path from the first message down
to it is what a person reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from edgespec.history import rows
from edgespec.history.database import Database, default_path
from edgespec.history.reading import Reader, gone
from edgespec.history.records import Entry, Role, Summary, Whole, title_of

KEPT = timedelta(days=30)
"""How long a deleted conversation can be brought back."""


class History(Reader):
    """May be used from several threads, and by several processes at once.

    All methods raise HistoryProblem when the file cannot be used; for an id that is not there,
    HistoryGone.
    """

    @classmethod
    def open(cls, path: Path | None = None) -> History:
        """Open the history, or begin it. What was deleted long ago goes for good.

        A damaged file is set aside, and `notices` says where. Raises HistoryProblem.
        """
        history = cls(Database.open(path or default_path()))
        history.purge()
        return history

    def close(self) -> None:
        """May be called again."""
        self._db.close()

    def create(
        self, *, title: str = "", model: str = "", persona: str = "", folder: str = ""
    ) -> int:
        """Begin a conversation. It is stored with its first message; until then only this object knows."""
        now = datetime.now(UTC)
        begun = Summary(0, rows.line(title), rows.line(folder), now, now, model, persona, 0)
        with self._db.writing() as sql:
            # To take the row out again leaves its id taken.
            number = rows.insert_conversation(sql, begun)
            sql.execute("DELETE FROM conversations WHERE id = ?", (number,))
        self._begun[number] = replace(begun, id=number)
        return number

    def add(
        self,
        conversation: int,
        parent: int | None,
        role: Role,
        content: str,
        *,
        complete: bool = True,
        model: str = "",
        stats: Mapping[str, float] | None = None,
    ) -> int:
        """Add a message below `parent`; it becomes the head. A deleted conversation comes back."""
        now = datetime.now(UTC)
        entry = Entry(0, parent, role, content, complete, now, model, stats or {})
        begun = self._begun.get(conversation)
        with self._db.writing() as sql:
            if begun is not None:
                rows.insert_conversation(sql, begun, conversation)
            if parent is not None and rows.conversation_of(sql, parent) != conversation:
                raise gone("message", parent)
            # Without its conversation a message must not be there, not even in a failed attempt.
            self._change(sql, conversation, updated_at=now.timestamp(), deleted_at=None)
            message = rows.insert_message(sql, conversation, entry)
            self._change(sql, conversation, head=message)
            if model:
                self._change(sql, conversation, model=model)
            if role == "user":
                _give_title(sql, conversation)
        self._begun.pop(conversation, None)
        return message

    def update(
        self,
        message: int,
        content: str,
        *,
        complete: bool,
        stats: Mapping[str, float] | None = None,
    ) -> None:
        """Put a new text into a message that grows; without `stats` it keeps those that it has."""
        with self._db.writing() as sql:
            conversation = rows.conversation_of(sql, message)
            if conversation is None:
                raise gone("message", message)
            sql.execute(
                "UPDATE messages SET content = ?, complete = ?, stats = coalesce(?, stats) WHERE id = ?",
                (
                    rows.clean(content),
                    complete,
                    None if stats is None else rows.numbers(stats),
                    message,
                ),
            )
            self._change(sql, conversation, updated_at=datetime.now(UTC).timestamp())

    def set_head(self, conversation: int, message: int) -> None:
        """Show the branch that ends with `message` from now on."""
        with self._db.writing() as sql:
            if rows.conversation_of(sql, message) != conversation:
                raise gone("message", message)
            self._change(sql, conversation, head=message)

    def rename(self, conversation: int, title: str) -> None:
        """Give another title; an empty one lets it be made of the first question again."""
        given = rows.line(title)
        if conversation in self._begun:
            self._begun[conversation] = replace(self._begun[conversation], title=given)
            return
        with self._db.writing() as sql:
            self._change(sql, conversation, title=given)
            _give_title(sql, conversation)

    def move(self, conversation: int, folder: str) -> None:
        """Put it into a folder; an empty name takes it out."""
        given = rows.line(folder)
        if conversation in self._begun:
            self._begun[conversation] = replace(self._begun[conversation], folder=given)
            return
        with self._db.writing() as sql:
            self._change(sql, conversation, folder=given)

    def become(self, conversation: int, persona: str) -> None:
        """Say who answers in it; empty for nobody in particular."""
        given = rows.line(persona)
        if conversation in self._begun:
            self._begun[conversation] = replace(self._begun[conversation], persona=given)
            return
        with self._db.writing() as sql:
            self._change(sql, conversation, persona=given)

    def delete(self, conversation: int) -> None:
        """Take it out of lists and searches; for thirty days `restore` brings it back."""
        with self._db.writing() as sql:
            self._change(sql, conversation, deleted_at=datetime.now(UTC).timestamp())

    def restore(self, conversation: int) -> None:
        """Bring back what was deleted."""
        with self._db.writing() as sql:
            self._change(sql, conversation, deleted_at=None)

    def purge(self) -> None:
        """Remove for good what was deleted more than thirty days ago."""
        limit = (datetime.now(UTC) - KEPT).timestamp()
        with self._db.reading() as sql:  # mostly there is none, and nobody need wait
            old = sql.execute(
                "SELECT id FROM conversations WHERE deleted_at < ?", (limit,)
            ).fetchall()
        if old:
            with self._db.writing() as sql:
                for (conversation,) in old:
                    _remove(sql, conversation)

    def remove(self, conversation: int) -> None:
        """Remove for good, at once."""
        with self._db.writing() as sql:
            if not _remove(sql, conversation):
                raise gone("conversation", conversation)

    def take(self, whole: Whole) -> int:
        """Store a conversation from elsewhere under new ids; returns its own.

        Parents must come before what follows them.
        """
        summary = replace(
            whole.summary,
            title=rows.line(whole.summary.title),
            folder=rows.line(whole.summary.folder),
        )
        new: dict[int | None, int | None] = {None: None}
        with self._db.writing() as sql:
            conversation = rows.insert_conversation(sql, summary)
            for entry in whole.entries:
                moved = replace(entry, parent=new[entry.parent])
                new[entry.id] = rows.insert_message(sql, conversation, moved)
            head = whole.head if whole.head is not None else whole.entries[-1].id
            self._change(sql, conversation, head=new[head])
            _give_title(sql, conversation)
        return conversation

    def _change(self, sql: sqlite3.Connection, conversation: int, **values: object) -> None:
        """Set columns of a conversation. Raises HistoryGone."""
        columns = ", ".join(f"{name} = ?" for name in values)
        done = sql.execute(
            f"UPDATE conversations SET {columns} WHERE id = ?", (*values.values(), conversation)
        )
        if done.rowcount != 1:
            raise gone("conversation", conversation)


def _give_title(sql: sqlite3.Connection, conversation: int) -> None:
    """Make a title of the first question where there is none."""
    title = title_of(rows.first_question(sql, conversation))
    sql.execute(
        "UPDATE conversations SET title = ? WHERE id = ? AND title = ''", (title, conversation)
    )


def _remove(sql: sqlite3.Connection, conversation: int) -> bool:
    sql.execute("DELETE FROM messages WHERE conversation = ?", (conversation,))
    return sql.execute("DELETE FROM conversations WHERE id = ?", (conversation,)).rowcount == 1
