"""The app's downloads: they belong to the app, not to a screen, and go on while there is a chat.

Each runs in a thread of its own. Whoever shows them asks for `all()` as often as it cares to draw. The
parts of what is stopped stay in the store, so that going on is the same pull again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from edgespec.shelf.row import Row
from model_registry.progress import Progress, total
from tui.download import Download, State, farewell, reason

if TYPE_CHECKING:
    from model_registry.hub import Hub
    from model_registry.pull import Pulled
    from model_registry.store import Store

After = Literal["pause", "keep", "discard"]
"""What becomes of one that has been stopped: it stays in the list, or its parts do in the store."""

_WORKERS = 2
"""Files that come at once: each takes some processor time from the model that answers."""
_LOOK_SECONDS = 0.2
_PATIENCE = 6.0
"""Seconds that all downloads together have to end in order when the app leaves."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    """One pull and its thread. `view` and `after` are changed under the lock of the downloads."""

    view: Download
    cancelled: threading.Event = field(default_factory=threading.Event)
    files: dict[str, Progress] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    after: After = "pause"
    thread: threading.Thread | None = None


class Downloads:
    """All pulls of one run of the app. Every method may be called from any thread."""

    def __init__(
        self,
        *,
        on_end: Callable[[Download], None] = lambda download: None,
        store: Store | None = None,
        hub: Callable[[], Hub] | None = None,
    ) -> None:
        """`on_end` is called in the download's thread when it is done or has failed; it must not raise."""
        self._on_end = on_end
        self._store_given = store
        self._hub = hub
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._closed = False

    def all(self) -> tuple[Download, ...]:
        """Every one that was not dismissed, in the order in which they were started."""
        with self._lock:
            return tuple(job.view for job in self._jobs.values())

    def get(self, key: str) -> Download | None:
        """The download of the row with this key."""
        with self._lock:
            job = self._jobs.get(key)
            return job.view if job else None

    def start(self, row: Row) -> None:
        """Begin a pull, or go on with one. Nothing happens while it is at work."""
        with self._lock:
            before = self._jobs.get(row.key)
            if self._closed or (before and before.view.at_work):
                return
            view = Download(row, done=row.done, total=row.size or 0)
            if before and before.view.state != "done":
                view = replace(before.view, row=row, state="starting", note="", speed=0.0)
            self._begin(_Job(view), self._run)

    def pause(self, key: str) -> None:
        """Stop it and keep it in the list."""
        self._stop(key, "pause")

    def resume(self, key: str) -> None:
        """Go on with one that is paused or has failed."""
        if view := self.get(key):
            self.start(view.row)

    def cancel(self, key: str, *, keep: bool) -> None:
        """Stop it and take it off the list; `keep` its parts for another time or remove them."""
        self._stop(key, "keep" if keep else "discard")

    def dismiss(self, key: str) -> None:
        """Take one that is done or has failed off the list; what came of it stays."""
        with self._lock:
            job = self._jobs.get(key)
            if job and not job.view.at_work:
                del self._jobs[key]

    def close(self) -> str:
        """Stop all in order, within some seconds; a sentence on what is kept, or nothing."""
        with self._lock:
            self._closed = True
            jobs = [job for job in self._jobs.values() if job.view.state != "done"]
            for job in jobs:
                job.cancelled.set()
        end = time.monotonic() + _PATIENCE
        for job in jobs:
            if job.thread:
                job.thread.join(max(end - time.monotonic(), 0.0))
        with self._lock:
            views = [job.view for job in jobs]
        return farewell([view for view in views if view.state not in {"done", "removing"}])

    def _begin(self, job: _Job, work: Callable[[_Job], None]) -> None:
        """Start a thread; the lock is held."""
        self._jobs[job.view.row.key] = job
        name = f"pull {job.view.row.name}"
        job.thread = threading.Thread(target=work, args=(job,), name=name, daemon=True)
        job.thread.start()

    def _stop(self, key: str, after: After) -> None:
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.view.state == "removing":
                return
            if job.view.at_work:
                job.after = after
                job.view = replace(job.view, state="stopping")
                job.cancelled.set()
            elif after == "keep" or (after == "discard" and job.view.state == "done"):
                del self._jobs[key]
            elif after == "discard":
                job.view = replace(job.view, state="removing")
                self._begin(job, self._discard)

    def _run(self, job: _Job) -> None:
        from model_registry.download import TransferStopped  # noqa: PLC0415 - the app opens first
        from model_registry.problem import ModelFileProblem  # noqa: PLC0415

        try:
            pulled = self._pull(job)
        except TransferStopped:
            self._ended(job, "paused", "")
        except ModelFileProblem as problem:
            self._ended(job, "failed", reason(problem.message, problem.hint))
        except Exception as error:
            log.exception("unexpected error in a download")
            self._ended(job, "failed", f"Unexpected error: {error}; details in the log.")
        else:
            self._done(job, pulled)

    def _pull(self, job: _Job) -> Pulled:
        """Pull; where another download of this app is at the same file, after it."""
        from model_registry.download import TransferStopped  # noqa: PLC0415 - the app opens first
        from model_registry.files import BusyProblem  # noqa: PLC0415

        while True:
            try:
                return self._pull_once(job)
            except BusyProblem:
                others = self._others(job)
                if not others:
                    raise
                while all(thread.is_alive() for thread in others):
                    if job.cancelled.wait(_LOOK_SECONDS):
                        raise TransferStopped from None

    def _others(self, job: _Job) -> list[threading.Thread]:
        """Threads of the other downloads that are at work; this one waits for one of them to end."""
        with self._lock:
            jobs = [one for one in self._jobs.values() if one is not job and one.view.at_work]
            if jobs and job.view.state != "stopping":
                note = "It shares a file with another download, and waits for that one."
                job.view = replace(job.view, state="waiting", note=note)
            return [one.thread for one in jobs if one.thread]

    def _pull_once(self, job: _Job) -> Pulled:
        from edgespec.shelf.orders import request_of  # noqa: PLC0415 - the app opens first
        from model_registry.hub import Hub  # noqa: PLC0415
        from model_registry.pull import Pull  # noqa: PLC0415

        pull = Pull(
            self._store(),
            hub=self._hub or Hub,
            on_progress=lambda progress: self._report(job, progress),
            note=job.said.append,
            cancelled=job.cancelled,
            workers=_WORKERS,
        )
        return pull.run(request_of(job.view.row))

    def _report(self, job: _Job, progress: Progress) -> None:
        """What a pull tells, about ten times a second a file."""
        job.files[progress.name] = progress
        whole = total(job.files.values())
        states = {one.state for one in job.files.values()}
        checks = "hashing" in states and "downloading" not in states
        state: State = "checking" if checks else "running"
        notes = (one.note for one in job.files.values() if one.state == "retrying")
        with self._lock:
            job.view = replace(
                job.view,
                state="stopping" if job.view.state == "stopping" else state,
                done=whole.done,
                total=whole.total,
                speed=whole.speed,
                seconds_left=whole.seconds_left,
                note=next(notes, ""),
            )

    def _done(self, job: _Job, pulled: Pulled) -> None:
        model = pulled.models[0]
        name = pulled.pair.name if pulled.pair else model.name
        if pulled.pair is None and self._store().read().pair(name):
            name = model.id  # by name it would mean the pair that is called the same
        with self._lock:
            job.view = replace(
                job.view, state="done", speed=0.0, stored=name, note=" ".join(job.said)
            )
        self._on_end(job.view)

    def _ended(self, job: _Job, state: State, note: str) -> None:
        """It was stopped, or it failed."""
        kept = self._kept(job)
        with self._lock:
            after = job.after
            now: State = "removing" if after == "discard" else state
            view = replace(job.view, state=now, note=note, done=kept, speed=0.0, seconds_left=None)
            job.view = view
            if after == "keep":
                self._jobs.pop(view.row.key, None)
        if after == "discard":
            self._discard(job)
        elif after == "pause" and state == "failed":
            self._on_end(view)

    def _kept(self, job: _Job) -> int:
        """Bytes that are in the store: while parts are checked, less is counted."""
        from edgespec.shelf.orders import begun  # noqa: PLC0415 - the app opens first
        from model_registry import unfinished  # noqa: PLC0415

        store = self._store()
        pull = begun(job.view.row, store)
        return unfinished.fetched(store, pull) if pull else 0

    def _discard(self, job: _Job) -> None:
        from edgespec.shelf.orders import remove  # noqa: PLC0415 - the app opens first
        from model_registry.problem import ModelFileProblem  # noqa: PLC0415

        try:
            remove(replace(job.view.row, where="unfinished"), store=self._store())
        except ModelFileProblem as problem:
            with self._lock:
                note = reason(problem.message, problem.hint)
                job.view = replace(job.view, state="failed", note=note)
            return
        with self._lock:
            self._jobs.pop(job.view.row.key, None)

    def _store(self) -> Store:
        from model_registry.store import Store  # noqa: PLC0415 - the app opens first

        return self._store_given or Store.default()
