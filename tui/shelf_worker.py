"""The threads of the models screen: everything that reads disks, devices or the network.

Questions to the network run in threads that the end of the program does not wait for: to look up the
name of a host knows no timeout. The others are Textual's workers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from textual import work
from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from edgespec.errors import EdgeSpecError
from edgespec.shelf.row import Row
from model_registry.problem import ModelFileProblem
from tui.shelf_messages import (
    Assessed,
    Checked,
    Checking,
    Detailed,
    DraftJudged,
    HubAnswered,
    Quoted,
    RemovalPlanned,
    Stocked,
    Told,
)

if TYPE_CHECKING:
    from edgespec.settings import Load

TELL_SECONDS = 0.25
"""Least time between two messages on how far something is."""

log = logging.getLogger(__name__)
_R = TypeVar("_R")


class _StoppedError(Exception):
    """A check of files that nobody waits for any more."""


class ShelfScreen(Screen[_R]):
    """A screen with these threads; its handlers of the messages do the drawing."""

    def __init__(self) -> None:
        super().__init__()
        self._gone = threading.Event()
        self._unwanted: set[str] = set()
        """Keys of checks that are to stop."""

    def on_unmount(self) -> None:
        """Nothing that runs is wanted any more."""
        self._gone.set()

    @work(thread=True, exclusive=True, exit_on_error=False, group="stock")
    def read_stock(self, load: Load, held: Mapping[str, int]) -> None:
        """`Stocked`, then `Assessed` now and then."""
        from edgespec.shelf.here import assess  # noqa: PLC0415 - the runtime
        from edgespec.shelf.stock import stock  # noqa: PLC0415

        worker = get_current_worker()
        with self._told():
            found = stock()
            self._tell(Stocked(found))
            done: list[Row] = []
            last = time.monotonic()
            for row in assess(found.rows, load, held):
                if worker.is_cancelled or self._gone.is_set():
                    return
                done.append(row)
                if time.monotonic() - last >= TELL_SECONDS:
                    self._tell(Assessed(tuple(done)))
                    done, last = [], time.monotonic()
            self._tell(Assessed(tuple(done)))

    def ask_hub(self, text: str) -> None:
        """`HubAnswered`."""

        def ask() -> None:
            from edgespec.shelf.stock import hub_rows  # noqa: PLC0415 - slow to import

            try:
                self._tell(HubAnswered(text, tuple(hub_rows(text))))
            except ModelFileProblem as problem:
                self._tell(HubAnswered(text, (), str(problem)))

        self._aside(ask)

    def ask_quote(self, row: Row, load: Load, held: Mapping[str, int]) -> None:
        """`Quoted`, or `Told`."""

        def ask() -> None:
            from edgespec.shelf.here import fit_of  # noqa: PLC0415 - the runtime
            from edgespec.shelf.orders import quote  # noqa: PLC0415

            found = quote(row)
            known = replace(found.row, fit=fit_of(found.row, load, held=held))
            self._tell(Quoted(replace(found, row=known)))

        self._aside(ask)

    @work(thread=True, exit_on_error=False, group="facts")
    def judge_draft(self, target: str | None, row: Row) -> None:
        """`DraftJudged`, or `Told`."""
        from edgespec.shelf.orders import can_draft  # noqa: PLC0415

        with self._told():
            verdict = can_draft(target, row)
            self._tell(DraftJudged(row, verdict.ok, verdict.message))

    @work(thread=True, exit_on_error=False, group="facts")
    def read_details(self, row: Row) -> None:
        """`Detailed`, or `Told`."""
        from edgespec.shelf.details import details  # noqa: PLC0415

        with self._told():
            self._tell(Detailed(row, tuple(details(row))))

    @work(thread=True, exit_on_error=False, group="facts")
    def plan_removal(self, row: Row) -> None:
        """`RemovalPlanned`, or `Told`."""
        from edgespec.shelf.orders import removal  # noqa: PLC0415

        with self._told():
            self._tell(RemovalPlanned(row, tuple(removal(row))))

    @work(thread=True, exit_on_error=False, group="removal")
    def remove_row(self, row: Row) -> None:
        """Remove it, then `Told`."""
        from edgespec.shelf.orders import remove  # noqa: PLC0415
        from model_registry.sizes import human_size  # noqa: PLC0415

        with self._told():
            done = remove(row)
            freed = f"Removed {row.name}: {human_size(done.freed)} freed."
            self._tell(Told(" ".join([freed, *done.kept]), changed=True))

    @work(thread=True, exit_on_error=False, group="check")
    def check_files(self, row: Row) -> None:
        """Read every byte: `Checking` now and then, `Checked` at the end."""
        from edgespec.shelf.orders import verify  # noqa: PLC0415

        last = 0.0

        def tell(share: float) -> None:
            nonlocal last
            if self._gone.is_set() or row.key in self._unwanted:
                raise _StoppedError
            if time.monotonic() - last >= TELL_SECONDS:
                last = time.monotonic()
                self._tell(Checking(row.key, share))

        problems: tuple[str, ...] | None = None
        with self._told(), suppress(_StoppedError):
            problems = tuple(verify(row, tell))
        self._unwanted.discard(row.key)
        self._tell(Checked(row, problems))

    def stop_check(self, key: str) -> None:
        """Let a running check end early."""
        self._unwanted.add(key)

    def _aside(self, ask: Callable[[], None]) -> None:
        def run() -> None:
            with self._told():
                ask()

        threading.Thread(target=run, name="ask the hub", daemon=True).start()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what goes wrong into `Told`."""
        try:
            yield
        except (ModelFileProblem, EdgeSpecError) as problem:
            self._tell(Told(str(problem)))
        except Exception as error:
            log.exception("unexpected error in the models screen")
            self._tell(Told(f"Unexpected error: {error}; details in the log."))

    def _tell(self, message: Message) -> None:
        # A thread may outlive the screen, and the app's event loop.
        with suppress(RuntimeError):
            if not self._gone.is_set():
                self.post_message(message)
