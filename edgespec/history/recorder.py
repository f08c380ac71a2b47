"""The one writer of the app's running conversation. Its caller never waits for a disk.

A thread of its own opens the history and writes at most every half a second, and at once when an answer
begins or ends. While the file cannot be written, all stays in memory and is tried again; where the file
was set aside or removed, the conversation is written into the new one as a whole.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from edgespec.history.problem import HistoryProblem
from edgespec.history.records import Entry, Summary
from edgespec.history.running import Talk
from edgespec.history.store import History
from edgespec.history.writer import Writer

SAVE_SECONDS = 0.5
"""Least time between two writes of a growing answer; a crash loses no more."""
RETRY_SECONDS = 3.0

_MEANWHILE = "The conversation is kept in memory meanwhile, and written once that works again."

log = logging.getLogger(__name__)


def _nobody(text: str) -> None:
    """Where notices go that nobody wants."""


class Recorder:
    """Methods may be called from any thread and return at once, but for `flush` and `close`."""

    def __init__(
        self,
        open_history: Callable[[], History],
        on_problem: Callable[[str], None],
        on_notice: Callable[[str], None] = _nobody,
    ) -> None:
        """All three are called in the recorder's thread, and must not raise anything else.

        `on_problem` is told once what keeps the history from being written, and "" when that is over;
        `on_notice` what the user must know: a damaged file was set aside.
        """
        self._on_problem = on_problem
        self._told = ""
        self._wake = threading.Condition()
        self._writer = Writer(open_history, on_notice, self._wake)
        self._talk = Talk()
        self._unwritten: list[Talk] = []
        """Conversations before this one that could not be written yet."""
        self._changes, self._written, self._failures = 1, 0, 0  # the first write opens the file
        self._hurry, self._closing, self._ended = True, False, False
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._thread.start()

    @property
    def conversation(self) -> int | None:
        """Id of the running conversation; None until its first message is written."""
        talk = self._talk
        return talk.id if talk.nodes and talk.nodes[0].id is not None else None

    @property
    def shown(self) -> tuple[int | None, ...]:
        """Ids of the messages that are shown, first one first; None for one not written yet."""
        with self._wake:
            return tuple(node.id for node in self._talk.path)

    def new(
        self,
        *,
        title: str = "",
        folder: str = "",
        model: str = "",
        persona: str = "",
        system: str = "",
    ) -> None:
        """Begin a conversation. It is stored with its first question, the system text before that."""
        self._take(Talk(title, folder, model, persona, system))

    def resume(self, summary: Summary, entries: Sequence[Entry]) -> None:
        """Go on with a stored conversation, or with another branch of it: `entries` are shown."""
        self._take(Talk.of(summary, entries))

    def begin(
        self,
        question: str | None,
        *,
        keep: int | None = None,
        more: bool = False,
        model: str = "",
    ) -> None:
        """A question is asked, and `model` will answer.

        None asks the last question again, or, with `more`, for more of its cut answer, which comes
        again from its beginning. `keep` messages stay before an edited question; system texts do not
        count.
        """
        with self._changing(hurry=True) as talk:
            talk.writer = model
            if question is not None:
                talk.ask(question, keep)
            elif more:
                talk.go_on()
            else:
                talk.ask_again()

    def grow(self, text: str) -> None:
        """More of the answer has come."""
        with self._changing() as talk:
            talk.grow(text)

    def finish(
        self, content: str, complete: bool, stats: Mapping[str, float] | None = None
    ) -> None:
        """The answer has ended and is `content`; empty when it was stopped before anything came."""
        with self._changing(hurry=True) as talk:
            talk.finish(content, complete, stats)

    def fail(self) -> None:
        """The answer ended with an error. What came of it stays, as a branch that is cut."""
        with self._changing(hurry=True) as talk:
            talk.give_up()

    def rename(self, title: str) -> None:
        """Give the running conversation another title."""
        with self._changing(hurry=True) as talk:
            talk.title = talk.new_title = title

    def move(self, folder: str) -> None:
        """Put the running conversation into a folder."""
        with self._changing(hurry=True) as talk:
            talk.folder = talk.new_folder = folder

    def become(self, persona: str, system: str) -> None:
        """Somebody else answers in the running conversation."""
        with self._changing(hurry=True) as talk:
            talk.become(persona, system)

    def flush(self, timeout: float) -> bool:
        """Write now. True once all of before is in the file; False after a failure or `timeout` seconds."""
        with self._wake:
            changes, failures = self._changes, self._failures
            self._hurry = self._written < changes
            self._wake.notify_all()
            self._wake.wait_for(
                lambda: self._written >= changes or self._failures > failures or self._ended,
                timeout,
            )
            return self._written >= changes

    def close(self, timeout: float = 5.0) -> bool:
        """Write the rest and end the thread. False when something could not be written in time."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._thread.join(timeout)
        return self._written >= self._changes

    @contextmanager
    def _changing(self, *, hurry: bool = False) -> Iterator[Talk]:
        with self._wake:
            yield self._talk
            self._changes += 1
            self._hurry |= hurry
            self._wake.notify_all()

    def _take(self, talk: Talk) -> None:
        with self._changing(hurry=True) as before:
            if before.pending:
                self._unwritten.append(before)
            self._talk = talk

    # What the thread does

    def _run(self) -> None:
        try:
            last = False
            while not last:
                last = self._wait()
                self._write()
        except Exception as error:
            log.exception("the thread of the history has ended")
            self._on_problem(f"Unexpected error: the history is written no more ({error}).")
        finally:
            self._writer.close()
            with self._wake:
                self._ended = True
                self._wake.notify_all()

    def _wait(self) -> bool:
        """Until it is time to write; True when that is the last time."""
        with self._wake:
            if self._written == self._changes:
                self._hurry = False  # it was about what is written by now
            self._wake.wait_for(lambda: self._written < self._changes or self._closing)
            pause = RETRY_SECONDS if self._told else SAVE_SECONDS
            self._wake.wait_for(lambda: self._hurry or self._closing, pause)
            self._hurry = False
            return self._closing

    def _write(self) -> None:
        with self._wake:
            changes, talks = self._changes, [*self._unwritten, self._talk]
        problem = self._writer.write(talks)
        self._tell(problem)
        with self._wake:
            if problem is None:
                self._written = changes
                self._unwritten = [talk for talk in self._unwritten if talk.pending]
            else:
                self._failures += 1
            self._wake.notify_all()

    def _tell(self, problem: HistoryProblem | None) -> None:
        text = "" if problem is None else f"{problem.message} {_MEANWHILE} {problem.hint}".strip()
        if text != self._told:
            self._told = text
            self._on_problem(text)
