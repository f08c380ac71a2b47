"""Errors of SQLite and of the file system, put into sentences."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgespec.history.problem import HistoryDamaged, HistoryProblem

_MOVE = "move the history with EDGESPEC_HOME"
_NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into problems with the history at `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(error, path) from error
    except OSError as error:
        raise _of_system(error, path) from error


def _of_sqlite(error: sqlite3.Error, path: Path) -> HistoryProblem:
    # The low byte is the kind; the rest tells which call failed. Python's own errors have none.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return HistoryDamaged(
                f"The history {path} is damaged ({error}).",
                "The next start sets it aside and begins a new one.",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return HistoryProblem(
                f"Another program keeps the history {path} busy.", "Try again in a moment."
            )
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return _forbidden(path)
    return HistoryProblem(
        f"The history {path} cannot be used: {error}.", f"Check the disk, or {_MOVE}."
    )


def _of_system(error: OSError, path: Path) -> HistoryProblem:
    if error.errno in _NO_ROOM:
        return _full(path)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return _forbidden(path)
    return HistoryProblem(
        f"The history {path} cannot be used: {error.strerror or error}.",
        f"Check that folder, or {_MOVE}.",
    )


def _full(path: Path) -> HistoryProblem:
    return HistoryProblem(f"The disk of {path.parent} is full.", f"Make room, or {_MOVE}.")


def _forbidden(path: Path) -> HistoryProblem:
    return HistoryProblem(
        f"The history {path} cannot be opened for writing by this user.",
        f"Change the permissions of its folder, or {_MOVE}.",
    )
