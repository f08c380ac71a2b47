"""Work in a thread: its events, its errors and its end are those of the thread that waits for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from edgespec.cli.background import in_background, loaded

SAFETY = 60


class Work:
    """Counts until it is cancelled; between two numbers it waits for nothing but that."""

    def __init__(self, *, last: int | None = None, problem: Exception | None = None) -> None:
        self.cancelled = threading.Event()
        self.ended = False
        self._last, self._problem = last, problem

    def steps(self) -> Iterator[int]:
        try:
            yield 1
            yield 2
            if self._problem:
                raise self._problem
            if self._last is None:
                assert self.cancelled.wait(SAFETY)
            yield 3
        finally:
            self.ended = True


def test_what_it_gives_is_given() -> None:
    work = Work(last=3)
    with in_background(work.steps(), work.cancelled.set) as events:
        assert list(events) == [1, 2, 3]
    assert work.cancelled.is_set(), "in vain, but nobody has to ask whether it has ended"


def test_what_it_raises_is_raised() -> None:
    work = Work(problem=ValueError("odd"))
    given: list[int] = []
    with (
        pytest.raises(ValueError, match="odd"),
        in_background(work.steps(), work.cancelled.set) as events,
    ):
        given.extend(event for event in events)
    assert work.ended


def test_the_first_interrupt_cancels_and_the_second_raises() -> None:
    before = signal.getsignal(signal.SIGINT)
    work = Work()
    with in_background(work.steps(), work.cancelled.set) as events:
        assert [next(events), next(events)] == [1, 2]
        assert not work.cancelled.is_set()
        signal.raise_signal(signal.SIGINT)
        assert work.cancelled.is_set()
        assert list(events) == [3]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_who_leaves_early_waits_for_the_thread() -> None:
    work = Work()
    with in_background(work.steps(), work.cancelled.set) as events:
        assert next(events) == 1
    assert work.ended


def test_loading() -> None:
    assert loaded(lambda: 5) == 5

    def fail() -> int:
        raise ValueError("no file")

    with pytest.raises(ValueError, match="no file"):
        loaded(fail)
