"""One file, from wherever it can be had to its place, through anything that happens on the way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from model_registry.files import StoreProblem, explained, sha256_of
from model_registry.hub import Hub, RemoteFile
from model_registry.hub_problem import HubProblem, broken
from model_registry.problem import ModelFileProblem
from model_registry.progress import Meter, State
from model_registry.sink import Sink
from model_registry.sizes import human_size

MARGIN = 64 * 1000 * 1000
"""Bytes that stay free on the disk."""

_MOST_TRIES = 6
"""In a row without a byte more than ever before: about half a minute of waiting."""
_LONGEST_PAUSE = 16.0
_MOST_PATIENCE = 600.0
"""Seconds; a server that wants a longer pause is not waited for."""
_MOST_MISMATCHES = 2
_CHECK_EVERY = 64 * 1024 * 1024


class TransferStopped(ModelFileProblem):
    """A download that was stopped from outside; its part is kept."""

    def __init__(self) -> None:
        super().__init__(
            "The download was stopped.", "Run the same command again: it goes on from here."
        )


@dataclass(frozen=True)
class Means:
    """What every download of a transfer uses."""

    hub: Hub
    halt: threading.Event
    delay: Callable[[float], object]
    """Waits for so many seconds."""
    free_space: Callable[[Path], int]
    """Bytes that the disk of a folder has left."""


class Download:
    """One file of a transfer."""

    def __init__(
        self, file: RemoteFile, part: Path, place: Path, means: Means, meter: Meter
    ) -> None:
        self._file, self._part, self._place = file, part, place
        self._means, self._meter = means, meter
        self._checked_at = 0

    def run(self) -> str:
        """Put the file in its place; its SHA-256.

        Raises HubProblem, StoreProblem, TransferStopped, or ModelFileProblem for a file that does
        not come as it should; the part then stays.
        """
        with explained(self._place.parent):
            digest = self._file.sha256 if self._there() else None
            if digest is None:
                digest = self._bring()
            _sync_folder(self._place.parent)
            self._part.unlink(missing_ok=True)
        self._meter.show("done", self._file.size)
        return digest

    def _there(self) -> bool:
        """Whether an earlier transfer has put it in place."""
        return self._fits(self._place)

    def _bring(self) -> str:
        source = self._means.hub.cached(self._file)
        if source and not self._fits(source, "Found in a cache."):
            source = None
        if source and self._file.sha256 and self._linked(source):
            return self._file.sha256
        with Sink(self._part) as sink:
            digest = self._complete(sink, source)
        os.replace(self._part, self._place)
        return digest

    def _linked(self, source: Path) -> bool:
        try:
            self._place.unlink(missing_ok=True)
            os.link(source.resolve(), self._place)
        except OSError:
            return False  # another disk, or one that knows no links
        return True

    def _fits(self, path: Path, note: str = "") -> bool:
        if self._file.sha256 is None or not path.is_file():
            return False
        if path.stat().st_size != self._file.size:
            return False
        return sha256_of(path, self._tick("hashing", note)) == self._file.sha256

    def _complete(self, sink: Sink, source: Path | None) -> str:
        """Fill the part until its digest is right; returns it."""
        if source:
            self._copy(sink, source)
        else:
            self._take_up(sink)
        for _ in range(_MOST_MISMATCHES):
            self._fill(sink)
            digest = sink.sync()
            if self._file.sha256 in (None, digest):
                return digest
            sink.restart()
        raise ModelFileProblem(
            f"{self._file.path} does not come as the hub lists it: its digest is wrong, "
            "and was again after a second download.",
            "Try again later, or from another network; nothing of it was kept.",
        )

    def _take_up(self, sink: Sink) -> None:
        if not self._part.stat().st_size:
            return
        if self._file.sha256 is None or self._part.stat().st_size > self._file.size:
            sink.restart()  # without a digest nobody could tell whether the rest belongs to it
        else:
            sink.take_up(self._tick("hashing"))

    def _copy(self, sink: Sink, source: Path) -> None:
        sink.restart()
        with source.open("rb", buffering=0) as file:
            while chunk := file.read(1 << 20):
                sink.put(memoryview(chunk))
                self._tick("hashing", "Copied from a cache.")(sink.position)

    def _fill(self, sink: Sink) -> None:
        """Receive until the part has its size."""
        tries, most = 0, sink.position
        while sink.position < self._file.size:
            try:
                self._receive(sink)
            except HubProblem as problem:
                if sink.position > most:
                    tries, most = 0, sink.position
                tries += 1
                if not problem.again or tries > _MOST_TRIES:
                    raise
                if (problem.wait or 0.0) > _MOST_PATIENCE:
                    raise
                if problem.status == 416:
                    sink.restart()
                self._pause(problem, tries, sink.position)

    def _receive(self, sink: Sink) -> None:
        """Take what one request gives."""
        if self._file.sha256 is None and sink.position:
            sink.restart()
        with self._means.hub.open(self._file, sink.position) as stream:
            if stream.start not in (0, sink.position):
                raise broken("The hub goes on from a wrong position.")
            if stream.start != sink.position:
                sink.restart()
            for chunk in stream.chunks:
                if sink.position + len(chunk) > self._file.size:
                    raise broken("The hub sends more than it lists.")
                sink.put(chunk)
                self._tick("downloading")(sink.position)
                self._check_space(sink.position)
        if sink.position < self._file.size:
            raise broken()

    def _pause(self, problem: HubProblem, tries: int, position: int) -> None:
        seconds = max(min(2.0 ** (tries - 1), _LONGEST_PAUSE), problem.wait or 0.0)
        note = f"{problem.message} Trying again in {seconds:.0f} s."
        self._tick("retrying", note)(position)
        self._means.delay(seconds)
        self._tick("retrying", note)(position)

    def _check_space(self, position: int) -> None:
        """Stop while there is room left for others, rather than when the disk is full."""
        if position - self._checked_at < _CHECK_EVERY:
            return
        self._checked_at = position
        free = self._means.free_space(self._part.parent)
        if free < MARGIN:
            raise StoreProblem(
                f"The disk of {self._part.parent} is full but for {human_size(free)}.",
                f"Make room for {human_size(self._file.size - position)} more, then run the same "
                "command again: it goes on from here.",
            )

    def _tick(self, state: State, note: str = "") -> Callable[[int], None]:
        def tell(done: int) -> None:
            if self._means.halt.is_set():
                raise TransferStopped
            self._meter.show(state, done, note)

        return tell


def _sync_folder(folder: Path) -> None:
    """See that a renamed file is still found after a power cut, where a folder can be synced."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
