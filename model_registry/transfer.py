"""Several files at once from the hub to a folder, each complete and verified or not there at all.

A file grows as a part, named by the digest it is to have, so that a later call goes on with it
whatever ended the earlier one. The caller keeps other processes away from the same parts.
"""

from __future__ import annotations

import hashlib
import os
import queue
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from model_registry.download import MARGIN, Download, Means, TransferStopped
from model_registry.files import StoreProblem, explained
from model_registry.hub import Hub, RemoteFile
from model_registry.problem import ModelFileProblem
from model_registry.progress import Meter, Progress
from model_registry.sizes import human_size

__all__ = ["FetchedFile", "Progress", "TransferStopped", "fetch", "part_name"]

_GRACE = 2.0
"""Seconds that the workers have to write what they hold; one that waits for a server is left."""


@dataclass(frozen=True)
class FetchedFile:
    """A file in its place."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class _Ended:
    file: RemoteFile
    digest: str = ""
    failure: BaseException | None = None


_Job = list[tuple[RemoteFile, Download]]
"""Downloads one after the other, since files of one content grow as the same part."""


def part_name(file: RemoteFile) -> str:
    """What a file is called while it grows."""
    if file.sha256:
        return f"{file.sha256}.part"
    known = f"{file.repo}\n{file.commit}\n{file.path}"
    return f"{hashlib.sha256(known.encode()).hexdigest()}.part"


def free_bytes(folder: Path) -> int:
    """What the disk of a folder has left for this user."""
    return shutil.disk_usage(folder).free


def fetch(
    hub: Hub,
    files: Sequence[RemoteFile],
    parts_dir: Path,
    dest_dir: Path,
    *,
    on_progress: Callable[[Progress], None],
    cancelled: threading.Event,
    workers: int = 4,
    delay: Callable[[float], None] | None = None,
    free_space: Callable[[Path], int] = free_bytes,
) -> dict[RemoteFile, FetchedFile]:
    """Bring `files` into `dest_dir` under their own names. Both folders lie on one disk.

    `on_progress` is called in the calling thread. `delay` waits between tries. The first failure
    stops all; what is complete by then stays in its place, what is not stays a part.

    Raises HubProblem, StoreProblem, TransferStopped when `cancelled` is set, or ModelFileProblem.
    """
    names = _names(files)
    with explained(parts_dir):
        parts_dir.mkdir(parents=True, exist_ok=True)
        dest_dir.mkdir(parents=True, exist_ok=True)
        _check_space(hub, names, parts_dir, dest_dir, free_space)
    halt = threading.Event()
    means = Means(hub, halt, delay or halt.wait, free_space)
    events: queue.SimpleQueue[Progress | _Ended] = queue.SimpleQueue()
    jobs: dict[str, _Job] = {}
    for file, name in names.items():
        meter = Meter(name, file.size, events.put)
        meter.show("waiting", 0)
        part = part_name(file)
        download = Download(file, parts_dir / part, dest_dir / name, means, meter)
        jobs.setdefault(part, []).append((file, download))
    waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    for job in jobs.values():
        waiting.put(job)
    crew = [
        threading.Thread(target=_work, args=(waiting, events, halt), daemon=True)
        for _ in range(min(workers, len(jobs)))
    ]
    for worker in crew:
        worker.start()
    try:
        digests = _follow(events, len(names), on_progress, cancelled)
    finally:
        halt.set()
        for worker in crew:
            worker.join(_GRACE)
    return {file: FetchedFile(dest_dir / names[file], digests[file]) for file in names}


def _work(
    waiting: queue.SimpleQueue[_Job],
    events: queue.SimpleQueue[Progress | _Ended],
    halt: threading.Event,
) -> None:
    while not halt.is_set():
        try:
            job = waiting.get_nowait()
        except queue.Empty:
            return
        for file, download in job:
            try:
                ended = _Ended(file, digest=download.run())
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                ended = _Ended(file, failure=error)
            events.put(ended)


def _follow(
    events: queue.SimpleQueue[Progress | _Ended],
    count: int,
    on_progress: Callable[[Progress], None],
    cancelled: threading.Event,
) -> dict[RemoteFile, str]:
    """Pass on what the workers say until all files have ended; their digests."""
    digests: dict[RemoteFile, str] = {}
    while len(digests) < count:
        if cancelled.is_set():
            raise TransferStopped
        try:
            event = events.get(timeout=0.1)
        except queue.Empty:
            continue
        if isinstance(event, Progress):
            on_progress(event)
        elif event.failure:
            raise event.failure
        else:
            digests[event.file] = event.digest
    return digests


def _names(files: Sequence[RemoteFile]) -> dict[RemoteFile, str]:
    """The name that each file gets; refuses those that would leave the folder or meet in it."""
    names: dict[RemoteFile, str] = {}
    for file in files:
        name = PurePosixPath(file.path).name
        if not name or name.startswith(".") or re.search(r'[\x00-\x1f<>:"|?*\\]', name):
            raise ModelFileProblem(
                f"{file.repo} lists a file with the name {name!r}, which is no good one here.",
                "Take another repository.",
            )
        names[file] = name
    if len({name.casefold() for name in names.values()}) < len(names):
        raise ModelFileProblem(
            "Two of the files have the same name.", "Take them one after the other."
        )
    return names


def _check_space(
    hub: Hub,
    names: dict[RemoteFile, str],
    parts_dir: Path,
    dest_dir: Path,
    free_space: Callable[[Path], int],
) -> None:
    """Raise StoreProblem before the first byte if the last would not fit."""
    need = 0
    for file, name in names.items():
        place, part, cached = dest_dir / name, parts_dir / part_name(file), hub.cached(file)
        if cached and os.stat(cached).st_dev == os.stat(dest_dir).st_dev:
            continue
        if not place.exists() or place.stat().st_size != file.size:
            need += file.size - min(file.size, part.stat().st_size if part.exists() else 0)
    free = free_space(parts_dir)
    if need and need + MARGIN > free:
        raise StoreProblem(
            f"{human_size(need)} are to come, but the disk of {parts_dir} has only "
            f"{human_size(free)} free.",
            "Make room, or move the store with EDGESPEC_HOME.",
        )
