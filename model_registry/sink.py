"""A file on its way in: hashed as the bytes come, written by a thread of its own."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Self

from model_registry.files import explained

_BLOCK = 1024 * 1024
_AHEAD = 4
"""Chunks that may wait to be written; with their size, this bounds the memory."""
_FLUSH = 8 * 1024 * 1024
"""Bytes after which the disk is set to work, so that little is left to do at the end."""


class Sink:
    """The part at `path`, created if it is not there. Raises StoreProblem when the disk fails.

    Leaving it writes whatever has been put, so that the part can be gone on with.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = hashlib.sha256()
        self._waiting: Queue[memoryview | None] = Queue(_AHEAD)
        self._failure: OSError | None = None
        self.position = 0
        """Bytes taken up or put so far."""

    def __enter__(self) -> Self:
        with explained(self._path.parent):
            self._path.open("ab").close()
            self._file = self._path.open("r+b", buffering=0)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._waiting.put(None)
        self._writer.join()
        self._file.close()

    def take_up(self, on_bytes: Callable[[int], None]) -> None:
        """Hash what the part holds already, and go on from its end; `on_bytes` may raise."""
        buffer = memoryview(bytearray(_BLOCK))
        with explained(self._path.parent):
            while count := self._file.readinto(buffer):
                self._digest.update(buffer[:count])
                self.position += count
                on_bytes(self.position)

    def put(self, chunk: memoryview) -> None:
        """Add to the end. The caller must not change `chunk` afterwards."""
        if self._failure:
            self._settle()
        self._waiting.put(chunk)
        self._digest.update(chunk)
        self.position += len(chunk)

    def restart(self) -> None:
        """Throw away what there is."""
        self._settle()
        with explained(self._path.parent):
            self._file.truncate(0)
            self._file.seek(0)
        self._digest = hashlib.sha256()
        self.position = 0

    def sync(self) -> str:
        """Wait until everything is on the disk; the digest of it."""
        self._settle()
        with explained(self._path.parent):
            os.fsync(self._file.fileno())
        return self._digest.hexdigest()

    def _settle(self) -> None:
        self._waiting.join()
        if self._failure:
            with explained(self._path.parent):
                raise self._failure

    def _write(self) -> None:
        flushed = written = 0
        while (chunk := self._waiting.get()) is not None:
            try:
                while chunk and not self._failure:
                    count = self._file.write(chunk)
                    chunk, written = chunk[count:], written + count
                if written - flushed >= _FLUSH:
                    self._flush(written - flushed)
                    flushed = written
            except OSError as error:
                self._failure = error  # raised where the bytes come from
            self._waiting.task_done()

    def _flush(self, length: int) -> None:
        """Begin to bring the last bytes to the disk; Linux does so for pages said to be unneeded."""
        if sys.platform == "linux":
            start = self._file.tell() - length
            os.posix_fadvise(self._file.fileno(), start, length, os.POSIX_FADV_DONTNEED)
