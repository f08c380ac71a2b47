"""How far a file is on its way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["waiting", "downloading", "retrying", "hashing", "done"]

_EVERY = 0.1
_WINDOW = 5.0


@dataclass(frozen=True)
class Progress:
    """One file at one moment."""

    name: str
    done: int
    """Bytes that are here, or hashed while `state` is "hashing"."""
    total: int
    speed: float
    """Bytes a second, lately; 0 when nothing comes."""
    seconds_left: float | None
    state: State
    note: str = ""
    """A sentence for people, such as why it is tried again."""


class Meter:
    """Turns the position of one file into Progress, about ten times a second."""

    def __init__(
        self,
        name: str,
        total: int,
        post: Callable[[Progress], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._total, self._post, self._clock = name, total, post, clock
        self._shown: tuple[State, str] | None = None
        self._last = 0.0
        self._marks: deque[tuple[float, int]] = deque()

    def show(self, state: State, done: int, note: str = "") -> None:
        """Post where the file is, at once if its state is new, else if it is time to."""
        now = self._clock()
        new = (state, note) != self._shown
        if not new and now - self._last < _EVERY:
            return
        if new or (self._marks and done < self._marks[-1][1]):
            self._marks.clear()
        self._shown, self._last = (state, note), now
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[1][0] > _WINDOW:
            self._marks.popleft()
        (then, before) = self._marks[0]
        speed = (done - before) / (now - then) if now > then else 0.0
        left = (self._total - done) / speed if speed > 0 else None
        self._post(Progress(self._name, done, self._total, speed, left, state, note))


def total(files: Iterable[Progress]) -> Progress:
    """Files on their way together, as one that is called `all`."""
    known = list(files)
    done, size = sum(one.done for one in known), sum(one.total for one in known)
    speed = sum(one.speed for one in known if one.state == "downloading")
    ended = all(one.state == "done" for one in known)
    left = (size - done) / speed if speed else None
    return Progress("all", done, size, speed, left, "done" if ended else "downloading")
