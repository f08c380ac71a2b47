"""Work in a thread of its own: Python handles Ctrl-C only between native calls, which can take seconds."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from edgespec.cli.output import ExitCode

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _End:
    problem: BaseException | None


def loaded(load: Callable[[], _T]) -> _T:
    """What `load` returns. Ctrl-C ends the process: loading cannot be stopped half-way, and there is
    nothing to lose.
    """
    events: queue.SimpleQueue[_T | _End] = queue.SimpleQueue()
    threading.Thread(target=_work, args=((load() for _ in range(1)), events), daemon=True).start()
    try:
        return next(_taken(events))
    except KeyboardInterrupt:
        os._exit(ExitCode.INTERRUPTED)


@contextmanager
def in_background(steps: Iterator[_T], cancel: Callable[[], None]) -> Iterator[Iterator[_T]]:
    """Iterate `steps` in a thread, and here what they give and raise.

    The first Ctrl-C calls `cancel`, after which `steps` are to come to an end of their own within a
    second. An exception would arise wherever the main thread is, also in the midst of printing. A
    second one does raise, for the case that nobody reads what is printed. When this is left the thread
    has ended.
    """
    events: queue.SimpleQueue[_T | _End] = queue.SimpleQueue()
    worker = threading.Thread(target=_work, args=(steps, events), daemon=True)
    with _cancelled_by_interrupt(cancel):
        worker.start()
        try:
            yield _taken(events)
        finally:
            cancel()  # whatever went wrong: nobody waits for the rest
            while worker.is_alive():
                # What it computes with is freed next.
                with suppress(KeyboardInterrupt):
                    worker.join()


@contextmanager
def _cancelled_by_interrupt(cancel: Callable[[], None]) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        cancel()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(steps: Iterator[_T], events: queue.SimpleQueue[_T | _End]) -> None:
    problem: BaseException | None = None
    try:
        for event in steps:
            events.put(event)
    except BaseException as error:  # noqa: BLE001 - raised again in the main thread
        problem = error
    events.put(_End(problem))


def _taken(events: queue.SimpleQueue[_T | _End]) -> Iterator[_T]:
    while True:
        event = events.get()
        if not isinstance(event, _End):
            yield event
        elif event.problem is None:
            return
        else:
            raise event.problem
