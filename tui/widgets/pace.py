"""How often a growing text is drawn: as often as it is cheap."""

from __future__ import annotations

import time
from collections.abc import Callable

LEAST_SECONDS = 0.1
"""Nobody reads what changes more often than ten times a second."""
MOST_SECONDS = 1.0
SHARE = 0.03
"""Part of a processor that drawing may take; a model on the other cores waits for this one too."""


class Pace:
    """Says when to draw next, from what drawing costs on this machine, with this conversation."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.thread_time,
        *,
        share: float = SHARE,
        least: float = LEAST_SECONDS,
    ) -> None:
        self._share, self._least = share, least
        self._clock = clock
        self._processor = processor
        self._begun = 0.0
        self._used = 0.0
        self._next = 0.0

    def begin(self) -> None:
        """Drawing begins."""
        self._begun, self._used = self._clock(), self._processor()

    def end(self) -> None:
        """What was drawn is on the screen."""
        cost = self._processor() - self._used
        self._next = self._begun + min(max(cost / self._share, self._least), MOST_SECONDS)

    @property
    def wait(self) -> float:
        """Seconds until the next drawing may begin."""
        return max(self._next - self._clock(), 0.0)
