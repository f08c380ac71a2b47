"""Things that one thread leaves for another, which comes for them once in a while.

A message for each token wakes the app's thread hundreds of times a second, and each time the decoding
thread has to wait for the interpreter. A letterbox wakes it once, and not again before it says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Letterbox(Generic[T]):
    """Put in any thread, taken in one. `ring` is called in the thread that puts."""

    def __init__(self, ring: Callable[[], object]) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._items: list[T] = []
        self._rung = False

    def put(self, item: T) -> None:
        """Leave something; ring, unless there was a ring that `rest` has not followed."""
        with self._lock:
            self._items.append(item)
            silent, self._rung = self._rung, True
        if not silent:
            self._ring()

    def take(self) -> list[T]:
        """All there is, oldest first."""
        with self._lock:
            items, self._items = self._items, []
        return items

    def rest(self) -> bool:
        """Let it ring again. True when there is something already, for which it will not ring."""
        with self._lock:
            self._rung = bool(self._items)
            return self._rung
