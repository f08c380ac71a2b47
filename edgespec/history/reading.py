"""What can be asked of the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgespec.history import rows, search
from edgespec.history.database import Database
from edgespec.history.problem import HistoryGone
from edgespec.history.records import Entry, Hit, Summary, Whole

_PATH = f"""
WITH RECURSIVE up(id, parent, depth) AS (
    SELECT id, parent, 0 FROM messages WHERE id = :leaf AND conversation = :conversation
    UNION ALL
    SELECT m.id, m.parent, up.depth + 1 FROM messages AS m JOIN up ON m.id = up.parent AND m.id < up.id
)
{rows.ENTRY} FROM up JOIN messages AS m ON m.id = up.id ORDER BY up.depth DESC
"""

_NEWEST_BELOW = """
WITH RECURSIVE down(id) AS (
    SELECT id FROM messages WHERE id = ?
    UNION
    SELECT m.id FROM messages AS m JOIN down ON m.parent = down.id
)
SELECT max(id) FROM down
"""

_SIBLINGS = """
SELECT other.id FROM messages AS m
JOIN messages AS other ON other.conversation = m.conversation AND other.parent IS m.parent
WHERE m.id = ? ORDER BY other.id
"""


def gone(what: str, number: int) -> HistoryGone:
    """The error for an id that is not there."""
    return HistoryGone(
        f"There is no {what} {number} in the history.",
        "`edgespec history list` shows what there is.",
    )


class Reader:
    """All methods raise HistoryProblem; for an id that is not there, HistoryGone."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._begun: dict[int, Summary] = {}
        """Conversations without a message: they have an id, and no row yet."""
        with database.reading() as sql:
            ((identity,),) = sql.execute("SELECT identity FROM about").fetchall()
        self.identity: str = identity
        """Tells this file from one that takes its place."""

    @property
    def location(self) -> Path:
        """The file."""
        return self._db.path

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user must know about how it was opened."""
        return self._db.notices

    @property
    def current(self) -> bool:
        """False once another file, or none, is where this one was: what is written now gets lost."""
        return self._db.current

    def summary(self, conversation: int) -> Summary:
        """Of a deleted one too."""
        if conversation in self._begun:
            return self._begun[conversation]
        with self._db.reading() as sql:
            row = sql.execute(f"{rows.SUMMARY} WHERE c.id = ?", (conversation,)).fetchone()
        if row is None:
            raise gone("conversation", conversation)
        return rows.summary_of(row)

    def list(
        self, *, folder: str | None = None, limit: int | None = None, deleted: bool = False
    ) -> Sequence[Summary]:
        """Newest first. `folder` "" is what lies in none; `deleted` gives those that were deleted."""
        conditions = f"c.deleted_at IS {'NOT ' if deleted else ''}NULL"
        if folder is not None:
            conditions += " AND c.folder = :folder"
        with self._db.reading() as sql:
            found = sql.execute(
                f"{rows.SUMMARY} WHERE {conditions} "
                "ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit",
                {"folder": folder, "limit": -1 if limit is None else limit},
            ).fetchall()
        return [rows.summary_of(row) for row in found]

    def folders(self) -> Sequence[str]:
        """Names of folders that hold something, in alphabetical order."""
        with self._db.reading() as sql:
            found = sql.execute(
                "SELECT DISTINCT folder FROM conversations WHERE folder <> '' AND deleted_at IS NULL"
            ).fetchall()
        return sorted((name for (name,) in found), key=str.casefold)

    def path(self, conversation: int, leaf: int | None = None) -> Sequence[Entry]:
        """The messages down to `leaf`, or to the leaf that is shown; the first one first."""
        with self._db.reading() as sql:
            row = sql.execute(
                "SELECT head FROM conversations WHERE id = ?", (conversation,)
            ).fetchone()
            if row is None and conversation not in self._begun:
                raise gone("conversation", conversation)
            end = row[0] if row and leaf is None else leaf
            found = sql.execute(_PATH, {"leaf": end, "conversation": conversation}).fetchall()
        if leaf is not None and not found:
            raise gone("message", leaf)
        return [rows.entry_of(row) for row in found]

    def whole(self, conversation: int) -> Whole:
        """The conversation with all its branches."""
        summary = self.summary(conversation)
        with self._db.reading() as sql:
            found = sql.execute(
                f"{rows.ENTRY} FROM messages AS m WHERE m.conversation = ? ORDER BY m.id",
                (conversation,),
            ).fetchall()
            head = sql.execute(
                "SELECT head FROM conversations WHERE id = ?", (conversation,)
            ).fetchone()
        return Whole(summary, tuple(map(rows.entry_of, found)), head[0] if head else None)

    def siblings(self, message: int) -> Sequence[int]:
        """The messages that follow the same one, oldest first, itself among them."""
        with self._db.reading() as sql:
            found = sql.execute(_SIBLINGS, (message,)).fetchall()
        if not found:
            raise gone("message", message)
        return [number for (number,) in found]

    def leaf_below(self, message: int) -> int:
        """The newest leaf of the branch that begins with `message`."""
        with self._db.reading() as sql:
            ((newest,),) = sql.execute(_NEWEST_BELOW, (message,)).fetchall()
        if newest is None:
            raise gone("message", message)
        return int(newest)

    def search(self, text: str, *, limit: int = 50) -> Sequence[Hit]:
        """Conversations in which all words of `text` begin words of one message, or of the title.

        Newest first; a conversation comes once. Any text is safe; words in double quotes must follow
        each other.
        """
        query = search.query_of(text)
        if query is None:
            return []
        with self._db.reading() as sql:
            hits = []
            for match in search.find(sql, query, limit):
                row = sql.execute(
                    f"{rows.SUMMARY} WHERE c.id = ?", (match.conversation,)
                ).fetchone()
                hits.append(Hit(rows.summary_of(row), match.message, match.snippet))
        return hits
