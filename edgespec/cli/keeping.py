"""Answers of a chat without the app on their way into the history."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Protocol

from edgespec.events import Reason
from edgespec.reply import ReplyDone


class Keeper(Protocol):
    """What writes conversations into the history, as `edgespec.history.recorder.Recorder` does."""

    def new(self, *, model: str, persona: str, system: str) -> None:
        """Begin a conversation."""
        ...

    def begin(self, question: str | None, *, more: bool, model: str) -> None:
        """An answer begins: to a question, again to the last one, or `more` of a cut one."""
        ...

    def grow(self, text: str) -> None:
        """More of the answer has come."""
        ...

    def finish(self, content: str, complete: bool, stats: Mapping[str, float]) -> None:
        """The answer has ended."""
        ...

    def fail(self) -> None:
        """The answer ended with an error."""
        ...

    def close(self) -> bool:
        """Write the rest."""
        ...


class Kept:
    """One answer on its way into the history; without a keeper nothing of it is kept."""

    def __init__(
        self, keeper: Keeper | None, question: str | None, *, more: bool, model: str
    ) -> None:
        self._keeper = keeper
        if keeper:
            keeper.begin(question, more=more, model=model)

    def grow(self, text: str) -> None:
        """More of it has come."""
        if self._keeper:
            self._keeper.grow(text)

    def finish(self, done: ReplyDone) -> None:
        """It has ended."""
        keeper, self._keeper = self._keeper, None
        if keeper:
            complete = done.reason in {Reason.END, Reason.STOP}
            keeper.finish(done.text, complete, done.stats.figures)

    def close(self) -> None:
        """Nothing more comes: without an end it is one that failed."""
        keeper, self._keeper = self._keeper, None
        if keeper:
            keeper.fail()


class News:
    """What other threads have to say, until there is a place for it."""

    def __init__(self) -> None:
        self._texts: queue.SimpleQueue[str] = queue.SimpleQueue()

    def put(self, text: str) -> None:
        """From any thread."""
        self._texts.put(text)

    def take(self) -> list[str]:
        """What has come since the last time."""
        found = []
        while not self._texts.empty():
            found.append(self._texts.get())
        return found
