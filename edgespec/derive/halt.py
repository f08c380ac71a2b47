"""One switch for everything that computes while a draft is made: models, and other processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgespec.errors import Cancelled


class Halt:
    """Off when made; cannot be switched off again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # Ctrl-C may come in the midst of `on`, in the same thread
        self._on = False
        self._stops: list[Callable[[], None]] = []

    def on(self) -> None:
        """Stop what runs, and all that would be begun. From any thread."""
        with self._lock:
            self._on = True
            for stop in self._stops:
                stop()

    def check(self) -> None:
        """Raise `Cancelled` if it is on."""
        with self._lock:
            if self._on:
                raise Cancelled

    @contextmanager
    def over(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` when switched on meanwhile. Raises `Cancelled` if it is on."""
        with self._lock:
            if self._on:
                raise Cancelled
            self._stops.append(stop)
        try:
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)
