"""The one thread that works with the session; everything it learns goes to the screen as messages.

A session is opened, iterated and closed only in a worker thread, one at a time. When the app leaves
while that thread works, the thread is asked to stop and closes the session itself at its end: the
runtime's memory is never freed beneath a running call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, assert_never

from textual import on, work
from textual.message import Message
from textual.screen import Screen

from edgespec.errors import EdgeSpecError
from edgespec.events import Prefilled
from edgespec.reply import Notice, ReplyDone, ReplyEvent, StatsChanged, TextDelta
from tui.letterbox import Letterbox
from tui.messages import (
    NoticeArrived,
    OpenFailed,
    PromptRead,
    ReplyFailed,
    ReplyFinished,
    SessionReady,
    StatsArrived,
    SwitchFailed,
    TextArrived,
)
from tui.session_like import Opener, SessionLike, Start
from tui.widgets.pace import Pace

if TYPE_CHECKING:
    from edgespec.settings import Settings


Event = TypeVar("Event")

SWITCH_SECONDS = 0.0005
"""How long the decoding thread waits at most for a picture that is being drawn; Python's own is ten
times as much, and a fast model needs the interpreter for a moment after each token."""


class MailArrived(Message, bubble=False):
    """There is something in the letterbox."""


class SessionScreen(Screen[None]):
    """A screen that owns one session."""

    def __init__(self, settings: Settings, opener: Opener) -> None:
        super().__init__()
        self.settings = settings
        self._opener = opener
        self._lock = threading.Lock()
        self._session: SessionLike | None = None
        self._at_work = False
        self._stop = threading.Event()
        self._leaving = threading.Event()
        self._mail: Letterbox[TextDelta | StatsArrived] = Letterbox(self._ring)
        self._pace = Pace()

    @property
    def session(self) -> SessionLike | None:
        """The open session; None before it is loaded and once it is closed."""
        return self._session

    @property
    def thread_at_work(self) -> bool:
        """Whether a thread is inside the session, so that the process must not tear it down."""
        return self._at_work

    def open_session(self) -> None:
        """Load the model; `SessionReady` or `OpenFailed` follows."""
        self._at_work = True
        self._open()

    def start_reply(self, start: Start) -> None:
        """Stream an answer; only while no other work runs."""
        self._stop.clear()
        self._at_work = True
        self._answer(start)

    def switch_session(self, settings: Settings) -> None:
        """Load other models and go on with the same conversation; only while no other work runs.

        `SessionReady` follows, after `SwitchFailed` if it is the one before again, or `OpenFailed`.
        """
        self._at_work = True
        self._switch(settings)

    def lend(self, work: Callable[[SessionLike], Iterator[Event]]) -> Iterator[Event]:
        """What `work` does with the session, for a thread of another screen to iterate to its end."""
        self._at_work = True
        try:
            if self._session is not None:
                yield from work(self._session)
        finally:
            self._end_work()

    def stop_reply(self) -> None:
        """Ask the running answer to end; what it has so far is kept."""
        self._stop.set()
        if self._session is not None:
            self._session.cancel()

    def leave_session(self) -> bool:
        """Begin to close the session. True when nothing is left to wait for.

        Loading cannot be interrupted: its thread closes what it opened, if the process still lives.
        """
        with self._lock:
            self._leaving.set()
            session, at_work = self._session, self._at_work
        if session is None:
            return True
        if at_work:
            self.stop_reply()
        else:
            self._at_work = True
            self._close()
        return False

    def on_unmount(self) -> None:
        """However the app ends, a running answer ends with it."""
        self._leaving.set()
        self.stop_reply()
        if not self._at_work:
            self._close_now()

    @work(thread=True, exclusive=True, exit_on_error=False, group="generate")
    def _open(self) -> None:
        try:
            session = self._opener(self.settings)
            with self._lock:
                self._session = session
            self._tell(SessionReady())
        except EdgeSpecError as error:
            self._tell(OpenFailed(error))
        finally:
            self._end_work()

    @work(thread=True, exclusive=True, exit_on_error=False, group="generate")
    def _switch(self, settings: Settings) -> None:
        """Two targets at once may not fit, so the one before goes first."""
        before = self._session
        messages = before.messages if before else ()
        own = self.settings.system
        try:
            self._close_now()
            try:
                session = self._opener(settings)
                self.settings = settings
            except EdgeSpecError as error:
                self._tell(SwitchFailed(error))
                session = self._opener(self.settings)
            kept = messages[1:] if own and messages and messages[0].content == own else messages
            session.restore(kept)
            with self._lock:
                self._session = session
            self._tell(SessionReady())
        except EdgeSpecError as error:
            self._tell(OpenFailed(error))
        finally:
            self._end_work()

    @work(thread=True, exclusive=True, exit_on_error=False, group="generate")
    def _answer(self, start: Start) -> None:
        session = self._session
        try:
            if session is not None:
                self._relay(session, start(session))
        except EdgeSpecError as error:
            self._tell(ReplyFailed(error))
        finally:
            self._end_work()

    @work(thread=True, exclusive=True, exit_on_error=False, group="generate")
    def _close(self) -> None:
        self._end_work()

    def _relay(self, session: SessionLike, events: Iterator[ReplyEvent]) -> None:
        """Tell what happens; text and numbers through the letterbox, for they come with each token."""
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            for event in events:
                # A stop that came before the session began to listen would be lost otherwise.
                if self._stop.is_set() and not isinstance(event, ReplyDone):
                    session.cancel()
                match event:
                    case Prefilled():
                        self._tell(PromptRead(event))
                    case TextDelta():
                        self._mail.put(event)
                    case StatsChanged(stats=stats):
                        self._mail.put(StatsArrived(stats, session.context_used, session.why))
                    case Notice(text=text):
                        self._deliver()
                        self._tell(NoticeArrived(text))
                    case ReplyDone():
                        self._deliver()
                        self._tell(ReplyFinished(event, session.context_used))
                    case _:
                        assert_never(event)
        finally:
            self._deliver()

    def _deliver(self) -> None:
        """Tell what is in the letterbox, the text as one and of the numbers the newest. Any thread."""
        mail = self._mail.take()
        pieces = tuple(item for item in mail if isinstance(item, TextDelta))
        numbers = [item for item in mail if isinstance(item, StatsArrived)]
        if pieces:
            self._tell(TextArrived(pieces))
        if numbers:
            self._tell(numbers[-1])

    @on(MailArrived)
    def _collect_mail(self) -> None:
        """Draw what has come, and hear of more only when there is time for another picture."""
        self._pace.begin()
        self._deliver()
        self.call_after_refresh(self._mail_is_drawn)

    def _mail_is_drawn(self) -> None:
        self._pace.end()
        asyncio.get_running_loop().call_later(self._pace.wait, self._look_for_mail)

    def _look_for_mail(self) -> None:
        if self._mail.rest():
            self._collect_mail()

    def _end_work(self) -> None:
        """The last act of every thread: close the session when the app has left meanwhile."""
        with self._lock:
            if not self._leaving.is_set():
                self._at_work = False
                return
        try:
            self._close_now()
        finally:
            self._at_work = False

    def _close_now(self) -> None:
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def _ring(self) -> None:
        self._tell(MailArrived())

    def _tell(self, message: Message) -> None:
        # Nobody listens to a screen that is leaving, and its event loop may be closed.
        if not self._leaving.is_set():
            self.post_message(message)
