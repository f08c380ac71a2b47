"""Tuning: what is known of the loaded models, measuring it, and what follows from it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerState

from edgespec.errors import EdgeSpecError
from edgespec.measuring import Measured, Outcome, Stopped, TuneEvent
from edgespec.reply import Notice
from tui.plot import Glyphs, glyphs_for
from tui.tuned_words import (
    UNKNOWN,
    cost_plot,
    cost_table,
    decision_words,
    known_words,
    prospect_table,
    prospects,
    speed_plot,
)
from tui.widgets.chart import Chart
from tui.widgets.turn import printable

if TYPE_CHECKING:
    from profiles.tuned import Tuned

EVERY_SECONDS = 0.25
"""Least time between two pictures of the progress: painting takes time from what is measured."""
_BAR = 20

log = logging.getLogger(__name__)

Run = Callable[[bool], Iterator[TuneEvent]]
"""Measure, in the quick form or thoroughly. Called and iterated in a thread."""


class TuneScreen(Screen["Tuned | None"]):
    """Dismissed with the newest result that was found here; None for none."""

    CSS_PATH = "tune.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "start(True)", "Quick (10 s)"),
        Binding("t", "start(False)", "Thorough (minutes)"),
        Binding("escape", "stop", "Stop"),
        Binding("escape", "back", "Back"),
    ]

    @dataclass
    class Progressed(Message, bubble=False):
        """One more pass was measured."""

        event: Measured

        def can_replace(self, message: Message) -> bool:
            """Only the newest is worth drawing."""
            return isinstance(message, TuneScreen.Progressed)

    @dataclass
    class Told(Message, bubble=False):
        """Something to know meanwhile."""

        text: str

    @dataclass
    class Ended(Message, bubble=False):
        """What came of it."""

        result: Outcome | Stopped | EdgeSpecError

    def __init__(
        self,
        run: Run,
        cancel: Callable[[], None],
        *,
        known: Tuned | None = None,
        title: str = "",
        glyphs: Glyphs | None = None,
    ) -> None:
        """`cancel` makes a running `run` end within about a second, from any thread. `title` names
        the models.
        """
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (74, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]
        self._run = run
        self._cancel = cancel
        self._known = known
        self._found: Tuned | None = None
        self._glyphs = glyphs or glyphs_for(os.environ, getattr(sys.__stdout__, "encoding", None))
        self._measuring = False
        self._at_work = False
        """Whether the thread is inside `run`, also when nobody waits for it any more."""
        self._stop = threading.Event()
        self._title = Static(f"Tune  {printable(title)}", id="title", markup=False)
        self._news = Static(id="news", markup=False)
        self._progress = Static(id="progress", markup=False)

    def compose(self) -> ComposeResult:
        """What is known, what follows, and below both what happens."""
        yield self._title
        with VerticalScroll(id="found"):
            yield Static(id="known", markup=False)
            yield Static(id="decision", markup=False)
            with Container(id="charts"):
                yield Chart("Time of a pass by rows; one row is 1", id="costs")
                yield Chart(f"Tokens/s by draft length; {self._glyphs.line} is plain", id="speeds")
            yield Static(id="prospects", markup=False)
            yield Static(id="rows", markup=False)
        yield self._news
        yield self._progress
        yield Footer()

    def on_mount(self) -> None:
        """Show what is known by now."""
        self._show()
        self._say("")
        self._progress.display = False

    @property
    def measuring(self) -> bool:
        """Whether the thread is at work."""
        return self._measuring

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the keys that would do something."""
        if action == "stop":
            return self._measuring and not self._stop.is_set()
        if action in {"start", "back"}:
            return not self._measuring
        return True

    def action_start(self, quick: bool) -> None:
        """Begin to measure."""
        self._measuring = self._at_work = True
        self._stop.clear()
        self._say("")
        self._progress.update("Starting; no answers meanwhile.")
        self._progress.display = True
        self.refresh_bindings()
        self._measure(quick)

    def action_stop(self) -> None:
        """Ask the measurement to end."""
        self._stop.set()
        self._cancel()
        self._progress.update("Stopping.")
        self.refresh_bindings()

    def action_back(self) -> None:
        """Leave."""
        self.dismiss(self._found)

    def on_unmount(self) -> None:
        """However the app ends, a measurement ends with it."""
        if self._at_work:
            self._stop.set()
            self._cancel()

    @work(thread=True, exclusive=True, exit_on_error=False, group="tune")
    def _measure(self, quick: bool) -> None:
        painted = -EVERY_SECONDS
        try:
            for event in self._run(quick):
                # A stop that came before it began to listen would be lost otherwise.
                if self._stop.is_set() and isinstance(event, Measured | Notice):
                    self._cancel()
                match event:
                    case Measured():
                        if time.monotonic() - painted >= EVERY_SECONDS:
                            painted = time.monotonic()
                            self.post_message(self.Progressed(event))
                    case Notice(text=text):
                        self.post_message(self.Told(text))
                    case Outcome() | Stopped():
                        self.post_message(self.Ended(event))
        except EdgeSpecError as error:
            self.post_message(self.Ended(error))
        finally:
            self._at_work = False

    @on(Progressed)
    def _progressed(self, message: Progressed) -> None:
        if self._stop.is_set():
            return
        event = message.event
        full = event.done * _BAR // max(event.total, 1)
        empty, block = self._glyphs.line, self._glyphs.levels[-1]
        self._progress.update(
            f"[{block * full}{empty * (_BAR - full)}] {event.done} of {event.total}  {event.what}  "
            f"{event.seconds * 1e3:.1f} ms"
        )

    @on(Told)
    def _told(self, message: Told) -> None:
        self._say(message.text)

    @on(Ended)
    def _ended(self, message: Ended) -> None:
        match message.result:
            case Outcome() as outcome:
                self._known = self._found = outcome.holds
                self._show()
                self._say(_told_of(outcome))
            case Stopped(goes_on=True):
                self._say(
                    "Stopped. What was measured is kept; the thorough form goes on from there."
                )
            case Stopped():
                self._say("Stopped.")
            case EdgeSpecError() as error:
                self._say(f"Error: {error}")

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        """The thread is free again: only now may it begin anew."""
        if event.worker.group != "tune" or not event.worker.is_finished:
            return
        if event.state is WorkerState.ERROR:
            log.error("unexpected error while tuning", exc_info=event.worker.error)
            self._say(f"Unexpected error: {event.worker.error}; details in the log.")
        self._measuring = False
        self._progress.display = False
        self.refresh_bindings()

    def _say(self, text: str) -> None:
        self._news.update(printable(text))
        self._news.display = bool(text)

    def _show(self) -> None:
        """Draw what is known."""
        tuned = self._known
        for name in ("#decision", "#charts", "#prospects", "#rows"):
            self.query_one(name).display = tuned is not None
        if tuned is None:
            self.query_one("#known", Static).update(UNKNOWN)
            return
        found = prospects(tuned)
        texts = {
            "#known": known_words(tuned),
            "#decision": decision_words(tuned),
            "#prospects": prospect_table(found),
            "#rows": cost_table(tuned),
        }
        for name, text in texts.items():
            self.query_one(name, Static).update(printable(text))
        self.query_one("#costs", Chart).show(partial(cost_plot, tuned, glyphs=self._glyphs))
        self.query_one("#speeds", Chart).show(partial(speed_plot, found, glyphs=self._glyphs))


def _told_of(outcome: Outcome) -> str:
    if not outcome.measured:
        return "These figures are known; nothing was measured."
    if outcome.holds is not outcome.found:
        return (
            f"Not to be believed: {outcome.found.busy} The figures from before are kept. Measure again "
            "in a quiet moment."
        )
    return "Measured, and gone by from now on."
