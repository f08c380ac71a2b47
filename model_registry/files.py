"""Writing, hashing and explaining files of the store."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from model_registry.problem import ModelFileProblem

_CHUNK = 1 << 20
_NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class StoreProblem(ModelFileProblem):
    """The store cannot do what it was asked to."""


class BusyProblem(StoreProblem):
    """Somebody else is at work on the same thing."""


def now() -> str:
    """This moment, as records have it: ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that at any moment it has its old content or its new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def sha256_of(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """Digest of a file; `on_bytes` is told the bytes read so far and may raise. OSError as `open`."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if on_bytes:
                on_bytes(done)
    return digest.hexdigest()


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Turn an OSError at the store into a StoreProblem."""
    try:
        yield
    except OSError as error:
        where = error.filename or place
        if error.errno in _NO_ROOM:
            raise StoreProblem(
                f"The disk of {place} is full.", "Make room, or move the store with EDGESPEC_HOME."
            ) from error
        if isinstance(error, PermissionError):
            raise StoreProblem(
                f"{where} may not be used by this user.",
                "Change its permissions, or move the store with EDGESPEC_HOME.",
            ) from error
        raise StoreProblem(
            f"The store has trouble with {where}: {error.strerror or error}.",
            "Check the disk, or move the store with EDGESPEC_HOME.",
        ) from error
