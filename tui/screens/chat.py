"""The conversation: the transcript, the prompt below it and the numbers below that."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerState

from edgespec.stats import Stats
from tui.messages import (
    NoticeArrived,
    OpenFailed,
    PromptRead,
    ReplyFailed,
    ReplyFinished,
    SessionReady,
    StatsArrived,
    TextArrived,
)
from tui.phase import REFUSALS, Phase
from tui.session_like import Opener, Start
from tui.widgets.prompt import Prompt
from tui.widgets.status_line import Status, StatusLine
from tui.widgets.transcript import Transcript
from tui.widgets.turn import NoticeLine, UserTurn
from tui.worker import SessionScreen

if TYPE_CHECKING:
    from edgespec.settings import Settings

MEMORY_SECONDS = 1.0
LEAVE_SECONDS = 5.0
"""How long a running answer may take to end before the app leaves without it."""

log = logging.getLogger(__name__)


def model_title(model: str | None) -> str:
    """A short name for what will be loaded: a file's name, or the part after `package:`."""
    if model is None:
        return "the built-in model"
    if model.endswith(".gguf"):
        return PurePath(model).stem
    return model.rpartition(":")[2] or model


class ChatScreen(SessionScreen):
    """Owns what is on the screen; only its message handlers change it."""

    CSS_PATH = "chat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop"),
        Binding("ctrl+r", "regenerate", "Answer again"),
    ]

    def __init__(self, settings: Settings, opener: Opener) -> None:
        super().__init__(settings, opener)
        self.phase = Phase.LOADING
        self._waiting: UserTurn | None = None
        """A message that was sent before the model was ready."""
        self._asked: UserTurn | None = None
        """The message that the running answer is for; None when it is given again."""
        self._headline = Static(id="headline", markup=False)
        self._transcript = Transcript()
        self._prompt = Prompt()
        self._status_line = StatusLine()
        self._loading_line: NoticeLine | None = None

    def compose(self) -> ComposeResult:
        """Headline, transcript, prompt, numbers, keys."""
        yield self._headline
        yield self._transcript
        yield self._prompt
        yield self._status_line
        yield Footer()

    async def on_mount(self) -> None:
        """Draw first, then load."""
        name = model_title(self.settings.load.model)
        self._headline.update(f"EdgeSpec  loading {name}…")
        self._loading_line = await self._transcript.add_notice(
            f"loading {name}… You can write your first message already."
        )
        self.status = replace(self.status, activity="loading")
        self._prompt.focus()
        self.set_interval(MEMORY_SECONDS, self._poll_memory)
        self.call_after_refresh(self.open_session)

    @property
    def status(self) -> Status:
        """What the status line shows."""
        return self._status_line.status

    @status.setter
    def status(self, status: Status) -> None:
        self._status_line.status = status

    # What the user does

    @on(Prompt.Submitted)
    async def _submit(self, event: Prompt.Submitted) -> None:
        if self.phase is Phase.READY:
            await self._ask(await self._transcript.add_question(event.text))
            return
        self._prompt.refusal = REFUSALS[self.phase]
        if self.phase is Phase.LOADING and self._waiting is None:
            self._waiting = await self._transcript.add_question(event.text)
            self._waiting.mark("sent when the model is ready")
        else:
            # The phase changed while the message was on its way here.
            self._prompt.hint = self._prompt.refusal
            self._prompt.put_back(event.text)

    def action_stop(self) -> None:
        """Stop the running answer and keep what there is of it."""
        if self.phase is Phase.ANSWERING:
            self.status = replace(self.status, activity="stopping")
            self.stop_reply()

    async def action_regenerate(self) -> None:
        """Put another answer in the place of the last one."""
        if self.phase is Phase.READY and self._transcript.has_answer:
            self._asked = None
            await self._start_answer(lambda session: session.regenerate())

    def action_read(self, where: str) -> None:
        """Move through the transcript while the prompt keeps the keyboard."""
        moves: dict[str, Callable[[], None]] = {
            "page_up": self._transcript.scroll_page_up,
            "page_down": self._transcript.scroll_page_down,
            "start": self._transcript.scroll_home,
            "end": self._transcript.follow,
        }
        moves[where]()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer in the footer only the keys that would do something."""
        if action == "stop":
            return self.phase is Phase.ANSWERING
        if action == "regenerate":
            return self.phase is Phase.READY and self._transcript.has_answer
        return True

    def leave(self) -> None:
        """End the app once the session is closed; at once when asked again."""
        asked_again = self.phase is Phase.LEAVING
        failed = self.phase is Phase.FAILED
        self._set_phase(Phase.LEAVING)
        self.status = replace(self.status, activity="closing")
        if self.leave_session() or asked_again:
            self.app.exit(return_code=1 if failed else 0)
        else:
            self.set_timer(LEAVE_SECONDS, self.app.exit)

    # What the worker thread tells

    @on(SessionReady)
    async def _ready(self) -> None:
        session = self.session
        if session is None:
            return
        pair = f" with {session.draft_name}" if session.draft_name else ""
        self._headline.update(f"EdgeSpec  {session.target_name}{pair}")
        if self._loading_line is not None:
            self._loading_line.update(f"{session.target_name} is ready.")
        for notice in session.notices:
            await self._transcript.add_notice(notice, before=self._waiting)
        self.status = replace(
            self.status,
            activity="",
            method=session.method,
            draft_length=session.draft_length,
            context_used=session.context_used,
            context_size=session.context_size,
        )
        self._poll_memory()

    @on(OpenFailed)
    async def _open_failed(self, event: OpenFailed) -> None:
        await self._show_no_model(f"Error: {event.error}")

    @on(PromptRead)
    def _prompt_read(self, event: PromptRead) -> None:
        progress = event.progress
        self.status = replace(self.status, activity=f"reading {progress.done}/{progress.total}")

    @on(TextArrived)
    def _text_arrived(self, event: TextArrived) -> None:
        self._transcript.write(event.text)

    @on(StatsArrived)
    def _stats_arrived(self, event: StatsArrived) -> None:
        self.status = replace(
            self.status, activity="", stats=event.stats, context_used=event.context_used
        )

    @on(NoticeArrived)
    async def _notice_arrived(self, event: NoticeArrived) -> None:
        await self._transcript.add_notice(event.text)

    @on(ReplyFinished)
    async def _reply_finished(self, event: ReplyFinished) -> None:
        done = event.done
        self.status = replace(
            self.status, activity="", stats=done.stats, context_used=event.context_used
        )
        await self._transcript.finish_answer(done.text, done.reason)

    @on(ReplyFailed)
    async def _reply_failed(self, event: ReplyFailed) -> None:
        await self._show_no_answer(f"Error: {event.error}")

    @on(Worker.StateChanged)
    async def _worker_changed(self, event: Worker.StateChanged) -> None:
        """The thread is free again: only now may the next work begin."""
        if event.worker.group != "generate" or not event.worker.is_finished:
            return
        if event.state is WorkerState.ERROR:
            await self._show_unexpected(event.worker.error)
        if self.phase is Phase.LEAVING:
            if not self.thread_at_work:
                self.app.exit()
        elif self.session is not None:
            self._set_phase(Phase.READY)
            await self._send_waiting()

    # What follows from it

    async def _send_waiting(self) -> None:
        turn, self._waiting = self._waiting, None
        if turn is not None:
            turn.mark("")
            await self._ask(turn)

    async def _ask(self, turn: UserTurn) -> None:
        self._asked = turn
        await self._start_answer(lambda session: session.reply(turn.text))

    async def _start_answer(self, start: Start) -> None:
        self._set_phase(Phase.ANSWERING)
        self.status = replace(self.status, activity="reading", stats=Stats())
        await self._transcript.begin_answer(again=self._asked is None)
        self.start_reply(start)

    async def _show_no_model(self, reason: str) -> None:
        self._set_phase(Phase.FAILED)
        self.status = replace(self.status, activity="no model")
        self._headline.update("EdgeSpec  no model")
        if self._loading_line is not None:
            await self._loading_line.remove()
        await self._transcript.add_notice(reason, error=True)
        turn, self._waiting = self._waiting, None
        if turn is not None:
            await self._give_back(turn)

    async def _show_no_answer(self, reason: str) -> None:
        """Show why the answer ended; what was written is not lost, neither text nor question."""
        self.status = replace(self.status, activity="")
        answered = await self._transcript.break_answer()
        await self._transcript.add_notice(reason, error=True)
        self._transcript.follow()
        if self._asked is not None and not answered:
            await self._give_back(self._asked)

    async def _give_back(self, turn: UserTurn) -> None:
        """Let the user send the message again, without taking what they write meanwhile."""
        if self._prompt.put_back(turn.text):
            await turn.remove()
        else:
            turn.mark("not answered: Up at the start of the prompt brings it back")

    async def _show_unexpected(self, error: BaseException | None) -> None:
        log.error("unexpected error in the worker thread", exc_info=error)
        reason = f"Unexpected error: {error or type(error).__name__}; details in the log."
        if self.phase is Phase.LOADING:
            await self._show_no_model(reason)
        elif self.phase is Phase.ANSWERING:
            await self._show_no_answer(reason)

    def _set_phase(self, phase: Phase) -> None:
        self.phase = phase
        self._prompt.hint = ""
        self._prompt.refusal = REFUSALS[phase]
        self.refresh_bindings()

    def _poll_memory(self) -> None:
        session = self.session
        if session is not None and self.phase is not Phase.LEAVING:
            self.status = replace(self.status, memory=session.memory())
