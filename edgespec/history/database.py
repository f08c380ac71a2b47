"""The SQLite file: opening it, setting a damaged one aside, transactions."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from edgespec.history import schema
from edgespec.history.explain import explained
from edgespec.history.problem import HistoryDamaged, HistoryProblem
from edgespec.history.schema import MIGRATIONS, Migration

PATIENCE_SECONDS = 30.0
"""How long a write waits for another program's. Ours take milliseconds."""


def default_path() -> Path:
    """The file in the folder that EDGESPEC_HOME names, or else in the platform's for data."""
    if given := os.environ.get("EDGESPEC_HOME", "").strip():
        return Path(os.path.expanduser(given)).absolute() / "history.db"
    from platformdirs import user_data_path  # noqa: PLC0415 - not needed with EDGESPEC_HOME

    return user_data_path("edgespec", appauthor=False) / "history.db"


class Database:
    """One connection that several threads may use, one after the other."""

    def __init__(self, path: Path, sql: sqlite3.Connection, notices: tuple[str, ...]) -> None:
        self.path = path
        self.notices = notices
        self._sql = sql
        self._lock = threading.RLock()
        self._file = _file_at(path)

    @classmethod
    def open(cls, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> Database:
        """Open or begin the file; a damaged one is set aside first. Raises HistoryProblem.

        Reads the whole file to find damage, which takes seconds for a gigabyte.
        """
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(path):
                try:
                    return cls(path, _connected(path, migrations), ())
                except HistoryDamaged as damage:
                    aside = _set_aside(path)
                    told = f"{damage.message} It was set aside as {aside}, and a new one begins."
                    return cls(path, _connected(path, migrations), (told,))

    @property
    def current(self) -> bool:
        """Whether the file at `path` still is the one that is open here."""
        return self._file is not None and _file_at(self.path) == self._file

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """What is read in it belongs together. Raises HistoryProblem."""
        with self._transaction("DEFERRED") as sql:
            yield sql

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is written in it, or nothing. Raises HistoryProblem."""
        with self._transaction("IMMEDIATE") as sql:
            yield sql

    def close(self) -> None:
        """May be called again."""
        with self._lock, explained(self.path):
            self._sql.close()

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self.path):
            self._sql.execute(f"BEGIN {kind}")
            try:
                yield self._sql
                self._sql.execute("COMMIT")
            except BaseException:
                # After some errors, a full disk among them, SQLite has rolled back already.
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")
                raise


def _connected(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """Raises HistoryProblem, OSError."""
    if not path.exists():
        path.touch(mode=0o600)  # what is in it is nobody else's business; -wal and -shm follow it
    with explained(path):
        if path.stat().st_size:
            _examine(path, migrations)
        elif _size(path.with_name(f"{path.name}-wal")):
            raise HistoryDamaged(f"The history {path} is empty, but its log is not.")
        sql = _connection(path, "rw")
        try:
            sql.execute("PRAGMA journal_mode = WAL")
            # What a killed process wrote is safe; a power cut can take the last moments, no more.
            sql.execute("PRAGMA synchronous = NORMAL")
            schema.migrate(sql, str(path), migrations)
            sql.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            sql.close()
            raise
        return sql


def _connection(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _examine(path: Path, migrations: Sequence[Migration]) -> None:
    """Look at the file without changing it: closing a connection that may write applies the log to it.

    Raises HistoryProblem, sqlite3.Error.
    """
    try:
        _look_at(path, "ro", migrations)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
            raise
        # Its very first transaction was cut off: SQLite has to take it back before it can read.
        _look_at(path, "rw", migrations)


def _look_at(path: Path, mode: Literal["ro", "rw"], migrations: Sequence[Migration]) -> None:
    with closing(_connection(path, mode)) as sql:
        schema.check(sql, str(path), migrations)
        (verdict,) = sql.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            reason = str(verdict).splitlines()[-1]
            raise HistoryDamaged(f"The history {path} is damaged ({reason}).")


def _set_aside(path: Path) -> Path:
    """Rename the file and what belongs to it; returns the new name of the file. Raises OSError."""
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}"
    name = f"{path.stem}.damaged-{stamp}"
    number = 1
    while any(path.with_name(f"{name}{path.suffix}{tail}").exists() for tail in ("", *_TAILS)):
        number += 1
        name = f"{path.stem}.damaged-{stamp}-{number}"
    aside = path.with_name(f"{name}{path.suffix}")
    # The file itself goes last: beside a new one, an old log would be applied to it or thrown away.
    for tail in (*_TAILS, ""):
        old = path.with_name(path.name + tail)
        if old.exists():
            old.rename(aside.with_name(aside.name + tail))
    return aside


_TAILS = ("-wal", "-shm")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time open the file: two would set aside what the other just began."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - slow to import

    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        lock.acquire(timeout=2 * PATIENCE_SECONDS)
    except Timeout as error:
        raise HistoryProblem(
            f"Another program keeps the history {path} busy.", "Try again in a moment."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
