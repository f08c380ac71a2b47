"""Files that are damaged, locked, full or forbidden: nothing of them is overwritten."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from edgespec.history import database
from edgespec.history.explain import explained
from edgespec.history.problem import HistoryDamaged, HistoryProblem
from edgespec.history.schema import Migration
from edgespec.history.store import History
from tests.history.talking import ids, run_sql, talk, texts


def bad_header(content: bytes) -> bytes:
    return b"not SQLite at all" + content[17:]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def cut_within_a_page(content: bytes) -> bytes:
    return content[:50]


def garbled(content: bytes) -> bytes:
    """All pages but the first one, which holds the schema."""
    return content[:4096] + b"\xa5" * (len(content) - 4096)


def garbled_schema(content: bytes) -> bytes:
    return content[:100] + b"\xa5" * 3000 + content[3100:]


def text(content: bytes) -> bytes:
    return b"My diary.\n" * 100


DAMAGES = [bad_header, cut, cut_within_a_page, garbled, garbled_schema, text]


def filled(place: Path) -> bytes:
    with closing(History.open(place)) as history:
        for number in range(30):
            talk(history, f"question {number} " * 50, "answer " * 50)
    return place.read_bytes()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_a_damaged_file_is_set_aside(place: Path, damage: Callable[[bytes], bytes]) -> None:
    content = damage(filled(place))
    place.write_bytes(content)
    with closing(History.open(place)) as history:
        (told,) = history.notices
        (aside,) = place.parent.glob("history.damaged-*.db")
        assert str(aside) in told
        assert "damaged" in told
        assert history.list() == []
        number = talk(history, "new")
    assert aside.read_bytes() == content
    with closing(History.open(place)) as history:
        assert history.notices == ()
        assert texts(history, number) == ["new"]


def test_its_log_goes_with_it_unchanged(place: Path) -> None:
    filled(place)
    history = History.open(place)
    talk(history, "only in the log")
    # What a killed process leaves: a file, and a log that is not in it yet.
    left = {tail: place.with_name(place.name + tail).read_bytes() for tail in ("", "-wal", "-shm")}
    history.close()
    assert b"only in the log" in left["-wal"]
    assert b"only in the log" not in left[""]
    left[""] = garbled_schema(left[""])
    left["-wal"] = b"\0" * 32 + left["-wal"][32:]
    for tail, content in left.items():
        place.with_name(place.name + tail).write_bytes(content)
    with closing(History.open(place)) as history:
        assert history.notices
    (aside,) = place.parent.glob("history.damaged-*.db")
    assert aside.read_bytes() == left[""]
    assert aside.with_name(aside.name + "-wal").read_bytes() == left["-wal"]
    assert aside.with_name(aside.name + "-shm").exists()


def test_a_log_without_its_file_is_set_aside(place: Path) -> None:
    filled(place)
    history = History.open(place)
    talk(history, "only in the log")
    log = place.with_name(place.name + "-wal").read_bytes()
    history.close()
    place.write_bytes(b"")
    place.with_name(place.name + "-wal").write_bytes(log)
    with closing(History.open(place)) as history:
        assert history.notices
    (aside,) = place.parent.glob("history.damaged-*.db-wal")
    assert aside.read_bytes() == log


def test_names_of_damaged_files_are_not_used_twice(place: Path) -> None:
    place.parent.mkdir()
    for number in range(4):
        place.write_bytes(b"damage %d" % number)
        History.open(place).close()
    kept = {path.read_bytes() for path in place.parent.glob("history.damaged-*.db")}
    assert kept == {b"damage %d" % number for number in range(4)}


def test_a_whole_file_with_a_log_is_not_damaged(place: Path, tmp_path: Path) -> None:
    history = History.open(place)
    number = talk(history, "one", "two")
    copy = tmp_path / "copy"
    shutil.copytree(place.parent, copy)
    history.close()
    with closing(History.open(copy / place.name)) as again:
        assert again.notices == ()
        assert texts(again, number) == ["one", "two"]


def test_damage_while_it_is_open(place: Path) -> None:
    filled(place)
    with closing(History.open(place)) as history:
        content = place.read_bytes()
        place.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
        with pytest.raises(HistoryDamaged, match="damaged"):
            history.search("question")
        assert history.current
    with closing(History.open(place)) as history:
        assert history.notices


def test_a_file_that_was_replaced_is_noticed(place: Path) -> None:
    with closing(History.open(place)) as history:
        assert history.current
        identity = history.identity
        place.rename(place.with_name("elsewhere.db"))
        assert not history.current
        with closing(History.open(place)) as other:
            assert other.identity != identity
            assert other.current
        assert not history.current


def test_a_full_disk_changes_nothing(history: History, place: Path) -> None:
    number = talk(history, "q", "a")
    with history._db.reading() as sql:
        (pages,) = sql.execute("PRAGMA page_count").fetchone()
    history._db._sql.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(HistoryProblem, match="is full") as caught:
        history.add(number, ids(history, number)[1], "user", "x" * 100_000)
    assert "Make room" in caught.value.hint
    begun = history.create(title="begun")
    with pytest.raises(HistoryProblem, match="is full"):
        history.add(begun, None, "user", "x" * 100_000)
    assert texts(history, number) == ["q", "a"]
    history._db._sql.execute("PRAGMA max_page_count = 100000")
    history.add(number, ids(history, number)[1], "user", "again")
    assert texts(history, number) == ["q", "a", "again"]
    history.add(begun, None, "user", "x" * 100_000)
    assert history.summary(begun).title == "begun"


def test_another_program_that_keeps_it(history: History, place: Path) -> None:
    number = talk(history, "q")
    history._db._sql.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert texts(history, number) == ["q"], "reading goes on"
        with pytest.raises(HistoryProblem, match="busy"):
            history.rename(number, "x")
        other.execute("ROLLBACK")
    history.rename(number, "x")


def test_a_place_where_nothing_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "history.db", tmp_path):
        with pytest.raises(HistoryProblem) as caught:
            History.open(place)
        assert str(place) in caught.value.message
        assert "EDGESPEC_HOME" in caught.value.hint


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the administrator may do all")
def test_a_folder_that_may_not_be_written(place: Path) -> None:
    filled(place)
    place.parent.chmod(0o500)
    try:
        with pytest.raises(HistoryProblem, match="cannot be opened for writing"):
            History.open(place)
        assert not list(place.parent.glob("*damaged*"))
    finally:
        place.parent.chmod(0o700)


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR]
)
def test_what_is_no_damage_sets_nothing_aside(
    place: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    content = filled(place)

    def refuse(path: Path, mode: str) -> sqlite3.Connection:
        error = sqlite3.OperationalError("no")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(database, "_connection", refuse)
    with pytest.raises(HistoryProblem) as caught:
        History.open(place)
    assert not isinstance(caught.value, HistoryDamaged)
    assert place.read_bytes() == content
    assert not list(place.parent.glob("*damaged*"))


def test_a_first_start_that_was_cut_off(place: Path) -> None:
    """A rollback journal that is left has to be applied, which a reader may not do."""
    place.parent.mkdir()
    with closing(sqlite3.connect(place, isolation_level=None)) as sql:
        sql.execute("PRAGMA journal_mode = DELETE")
        sql.execute("PRAGMA cache_size = 1")
        sql.execute("BEGIN")
        sql.execute("CREATE TABLE x (y)")
        sql.executemany("INSERT INTO x VALUES (?)", [("z" * 4000,)] * 50)
        left = {tail: place.with_name(place.name + tail).read_bytes() for tail in ("", "-journal")}
        sql.execute("ROLLBACK")
    for tail, content in left.items():
        place.with_name(place.name + tail).write_bytes(content)
    with closing(History.open(place)) as history:
        assert history.list() == []
    assert run_sql(place, "SELECT name FROM sqlite_master WHERE name = 'x'") == []


def test_one_at_a_time_opens_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would set aside what the other just began."""
    filled(place)
    connected = database._connected
    looked: list[bool] = []

    def look(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
        with pytest.raises(Timeout):
            FileLock(place.with_name("history.db.lock")).acquire(timeout=0)
        looked.append(True)
        return connected(path, migrations)

    monkeypatch.setattr(database, "_connected", look)
    History.open(place).close()
    assert looked == [True]
    with FileLock(place.with_name("history.db.lock")).acquire(timeout=0):
        monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.0)
        with pytest.raises(HistoryProblem, match="busy"):
            History.open(place)


def test_a_transaction_that_sqlite_has_taken_back_already(history: History) -> None:
    def fail() -> None:
        with history._db.writing() as sql:
            sql.execute("ROLLBACK")  # as SQLite does after some errors
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert texts(history, talk(history, "q")) == ["q"]


def test_a_circle_ends(place: Path) -> None:
    """No file of ours has one, but a damaged one that still looks whole may."""
    with closing(History.open(place)) as history:
        number = talk(history, "q", "a", "q2")
    run_sql(place, "UPDATE messages SET parent = 3 WHERE id = 1")
    with closing(History.open(place)) as history:
        assert texts(history, number) == ["q", "a", "q2"]
        assert history.leaf_below(1) == 3


def coded(code: int) -> sqlite3.Error:
    error = sqlite3.DatabaseError("told by SQLite")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (coded(sqlite3.SQLITE_FULL), "The disk of folder is full"),
        (coded(sqlite3.SQLITE_CORRUPT_VTAB), "is damaged (told by SQLite)"),
        (coded(sqlite3.SQLITE_BUSY_SNAPSHOT), "keeps the history folder/h.db busy"),
        (coded(sqlite3.SQLITE_LOCKED), "keeps the history folder/h.db busy"),
        (coded(sqlite3.SQLITE_READONLY_DIRECTORY), "cannot be opened for writing"),
        (coded(sqlite3.SQLITE_CANTOPEN), "cannot be opened for writing"),
        (coded(sqlite3.SQLITE_IOERR_WRITE), "cannot be used: told by SQLite"),
        (sqlite3.ProgrammingError("closed"), "cannot be used: closed"),
        (OSError(errno.ENOSPC, "no"), "The disk of folder is full"),
        (OSError(errno.EROFS, "no"), "cannot be opened for writing"),
        (PermissionError(errno.EACCES, "no"), "cannot be opened for writing"),
        (OSError(errno.EIO, "broken"), "cannot be used: broken"),
    ],
)
def test_what_is_told(error: Exception, words: str) -> None:
    with pytest.raises(HistoryProblem) as caught, explained(Path("folder/h.db")):
        raise error
    assert words in caught.value.message
    assert caught.value.hint
    assert isinstance(caught.value, HistoryDamaged) == ("damaged" in words)
