"""Full-text search. Any text is a query: none of it is taken as syntax but double quotes.

Words are found by FTS5 from their beginning on, whatever their case and accents. Its tokenizer knows
words by the space around them, and its `trigram` one finds nothing shorter than three characters, so
that what is written without spaces (Chinese, Japanese, Thai ...), and signs (`C++`, `->`), are looked
for as they stand, by LIKE over all messages.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.history.rows import clean

_MOST_TERMS = 32
_MOST_CHARACTERS = 100
_MOST_MATCHES = 5000
"""Messages looked at, of the newest conversations; more say that the query is too short."""

_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    r"\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, CJK radicals to katakana, ideographs."""
_TERM = re.compile(r'"([^"]+)"|([^\s"]+)')
_OPEN, _CLOSE = "\x02", "\x03"
"""Marks around a match that no text holds, in contrast to [ and ]."""
_BEFORE, _AFTER = 40, 120
"""Characters of a snippet around the beginning of its match."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for; all of it must be in one message, or in the title."""

    words: str
    """For MATCH; empty when there are none."""
    literals: tuple[str, ...]
    """Parts that must be there as they stand, but for the case of ASCII letters."""


@dataclass(frozen=True, slots=True)
class Match:
    """A conversation that fits; `message` is the shown leaf where only its title does."""

    conversation: int
    message: int
    snippet: str


def query_of(text: str) -> Query | None:
    """None when there is nothing to look for."""
    words: list[str] = []
    literals: list[str] = []
    terms = [phrase or word for phrase, word in _TERM.findall(clean(text).replace("\0", " "))]
    for term in dict.fromkeys(terms[:_MOST_TERMS]):
        cut = unicodedata.normalize("NFC", term.strip())[:_MOST_CHARACTERS]
        if not cut:
            continue
        if _literal(cut):
            literals.append(cut)
        else:
            words.append(f'"{cut}"*')
    return Query(" ".join(words), tuple(literals)) if words or literals else None


def _literal(term: str) -> bool:
    """Whether FTS5's tokenizer would lose what matters of it."""
    if _UNSPACED.search(term):
        return True
    letters = sum(map(str.isalnum, term))
    return letters == 0 or (letters < 3 and letters < len(term))


def find(sql: sqlite3.Connection, query: Query, limit: int) -> list[Match]:
    """The newest conversations that fit, newest first."""
    found: dict[int, tuple[float, _Place, int]] = {}
    for place in (_MESSAGES, _TITLES):
        before = len(found)
        for conversation, message, updated in _matches(sql, place, query):
            if len(found) - before < limit:
                found.setdefault(conversation, (updated, place, message))
    newest = sorted(found, key=lambda one: (found[one][0], one), reverse=True)[:limit]
    messages = [found[one][2] for one in newest if found[one][1] is _MESSAGES]
    titles = [one for one in newest if found[one][1] is _TITLES]
    in_messages = _snippets(sql, query, _MESSAGES, messages)
    in_titles = _snippets(sql, query, _TITLES, titles)
    matches = []
    for one in newest:
        _, place, message = found[one]
        snippet = in_messages[message] if place is _MESSAGES else in_titles[one]
        matches.append(Match(one, message, snippet))
    return matches


@dataclass(frozen=True, slots=True)
class _Place:
    """Where text lies: a table with its index."""

    table: str
    column: str
    words: str
    conversation: str
    message: str
    join: str = ""
    condition: str = ""


_MESSAGES = _Place(
    table="messages",
    column="content",
    words="message_words",
    conversation="place.conversation",
    message="place.id",
    join="JOIN conversations AS c ON c.id = place.conversation",
    condition="AND place.role <> 'system'",
)
_TITLES = _Place(
    table="conversations",
    column="title",
    words="title_words",
    conversation="place.id",
    message="c.head",
    join="JOIN conversations AS c ON c.id = place.id",
)


def _matches(sql: sqlite3.Connection, place: _Place, query: Query) -> list[tuple[int, int, float]]:
    """Conversation, message, time; the first message first within a conversation."""
    source, condition = f"{place.table} AS place", ""
    values: list[str] = []
    if query.words:
        source = f"{place.words} JOIN {place.table} AS place ON place.id = {place.words}.rowid"
        condition = f"AND {place.words} MATCH ?"
        values.append(query.words)
    for literal in query.literals:
        condition += f" AND place.{place.column} LIKE ? ESCAPE '\\'"
        values.append(_pattern(literal))
    return sql.execute(
        f"SELECT {place.conversation}, {place.message}, c.updated_at FROM {source} {place.join} "
        f"WHERE c.deleted_at IS NULL {place.condition} {condition} "
        f"ORDER BY c.updated_at DESC, c.id DESC, place.id LIMIT {_MOST_MATCHES}",
        values,
    ).fetchall()


def _pattern(literal: str) -> str:
    escaped = re.sub(r"([\\%_])", r"\\\1", literal)
    return f"%{escaped}%"


def _snippets(
    sql: sqlite3.Connection, query: Query, place: _Place, rows: Sequence[int]
) -> dict[int, str]:
    """By id. In one go: each time that FTS5 is asked, it collects all that begins with the words."""
    chosen = ", ".join(map(str, rows))
    if query.words:
        marked = sql.execute(
            f"SELECT rowid, snippet({place.words}, 0, ?, ?, '…', 16) FROM {place.words} "
            f"WHERE {place.words} MATCH ? AND +rowid IN ({chosen})",
            (_OPEN, _CLOSE, query.words),
        ).fetchall()
    else:
        found = sql.execute(
            f"SELECT id, {place.column} FROM {place.table} WHERE id IN ({chosen})"
        ).fetchall()
        marked = [(row, _marked(text, query.literals)) for row, text in found]
    return {row: _short(text) for row, text in marked}


def _marked(text: str, literals: Sequence[str]) -> str:
    pattern = "|".join(map(re.escape, literals))
    return re.sub(f"({pattern})", rf"{_OPEN}\1{_CLOSE}", text, flags=re.IGNORECASE)


def _short(marked: str) -> str:
    """One line around the first match."""
    line = " ".join(marked.split())
    first = max(line.find(_OPEN), 0)
    start = max(first - _BEFORE, 0)
    end = first + _AFTER
    cut = line[start:end]
    if cut.count(_OPEN) > cut.count(_CLOSE):
        cut += _CLOSE
    text = f"{'…' * (start > 0)}{cut}{'…' * (end < len(line))}"
    return text.replace(_OPEN, "[").replace(_CLOSE, "]")
