"""The conversation: what is sent, and what comes back. `ChatScreen` adds the commands."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual import on
from textual.worker import Worker, WorkerState

from edgespec.events import Reason
from edgespec.stats import Stats
from tui.messages import (
    NoticeArrived,
    OpenFailed,
    PromptRead,
    RecorderTold,
    ReplyFailed,
    ReplyFinished,
    SessionReady,
    StatsArrived,
    SwitchFailed,
    TextArrived,
)
from tui.phase import REFUSALS, Phase
from tui.screens.picture import PictureScreen, model_title, title_of
from tui.session_like import Start
from tui.widgets.prompt import Prompt
from tui.widgets.turn import AnswerTurn, Turn, UserTurn

if TYPE_CHECKING:
    from edgespec.history.recorder import Recorder
    from edgespec.settings import Settings
    from tui.services import Services

FREE_SECONDS = 0.1
LEAVE_SECONDS = 5.0
"""How long a running answer may take to end before the app leaves without it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shown:
    """A message for the transcript."""

    id: int
    role: str
    content: str
    complete: bool


class ConversationScreen(PictureScreen):
    """Only its message handlers change what was said."""

    def __init__(self, settings: Settings, services: Services) -> None:
        super().__init__(settings, services)
        self.recorder: Recorder | None = None
        self.editing: UserTurn | None = None
        """The message that the prompt's text will take the place of."""
        self.said: list[Turn] = []
        """What stands in the transcript for each message of the session, system text not counted."""
        self._waiting: UserTurn | None = None
        """A message that was sent before the model was ready."""
        self._asked: UserTurn | None = None
        """The message that the running answer is for; None when it is given again."""
        self._reopened = False
        """Whether the models are the ones from before, because others could not be loaded."""
        self._edits = False
        """Whether that message takes the place of another, which comes back if nothing is answered."""

    async def on_mount(self) -> None:
        """Draw first, then load."""
        self._start_recorder()
        await self.show_loading(model_title(self.settings.load.model))
        self.call_after_refresh(self.open_session)

    @property
    def message_count(self) -> int:
        """Messages of the conversation, system text not counted."""
        messages = self.session.messages if self.session else ()
        return sum(message.role != "system" for message in messages)

    # Sending

    @on(Prompt.Submitted)
    async def _submit(self, event: Prompt.Submitted) -> None:
        if self.phase is Phase.READY:
            await self.send(event.text)
            return
        self.prompt.refusal = REFUSALS[self.phase]
        if self.phase is Phase.LOADING and self._waiting is None:
            self._waiting = await self.transcript.add_question(event.text)
            self._waiting.mark("sent when the model is ready")
        else:
            # The phase changed while the message was on its way here.
            self.prompt.put_back(event.text)
            self.prompt.hint = self.prompt.refusal

    async def send(self, text: str) -> None:
        """Ask, or put another question in the place of the one that is edited."""
        index = self.message_count
        if self.editing is not None and self.editing in self.said:
            index = self.said.index(self.editing)
            await self.transcript.cut(self.editing)
        self.stop_editing()
        turn = await self.transcript.add_question(text)
        await self._ask(turn, index)

    def stop_editing(self) -> None:
        """What is sent next is a new message."""
        self.editing = None
        self.prompt.border_title = ""

    async def _ask(self, turn: UserTurn, index: int) -> None:
        self._asked = turn
        count = self.message_count
        self._edits = index < count
        head = len(self.session.messages) - count if self.session else 0
        if self.recorder:
            keep = index if index < count else None
            if count == 0 and (title := title_of(turn.text)):
                self.recorder.rename(title)
            self.recorder.begin(turn.text, keep=keep, model=self._model_name)
        if index < count:
            await self._start_answer(lambda session: session.edit(head + index, turn.text))
        else:
            await self._start_answer(lambda session: session.reply(turn.text))

    async def answer_again(self) -> None:
        """Put another answer in the place of the last one, which stays in the history."""
        self._asked, self._edits = None, False
        if self.recorder:
            self.recorder.begin(None, model=self._model_name)
        await self._start_answer(lambda session: session.regenerate(), again=True)

    async def go_on(self) -> None:
        """Let a cut answer go on."""
        self._asked, self._edits = None, False
        if self.recorder:
            self.recorder.begin(None, more=True, model=self._model_name)
        await self._start_answer(lambda session: session.continue_answer(), again=True)

    async def _start_answer(self, start: Start, *, again: bool = False) -> None:
        self.set_phase(Phase.ANSWERING)
        self.status = replace(self.status, activity="reading", stats=Stats())
        self.panel.begin()
        thinking = self.session is not None and self.session.opens_thought
        await self.transcript.begin_answer(again=again, thinking=thinking)
        self.start_reply(start)

    # What the worker thread tells

    @on(SessionReady)
    async def _ready(self) -> None:
        session = self.session
        if session is None:
            return
        self.name_models()
        if self.loading_line is not None:
            again = " again" if self._reopened else ""
            self.loading_line.update(f"{session.target_name} is ready{again}.")
        # Of models that are only open again everything was said.
        for notice in () if self._reopened else session.notices:
            await self.transcript.add_notice(notice, before=self._waiting)
        self.status = replace(
            self.status,
            activity="",
            method=session.method,
            draft_length=session.draft_length,
            context_used=session.context_used,
            context_size=session.context_size,
        )
        self.panel.forget()
        self.panel.show_context(session.context_used, session.context_size)
        self.panel.show_why(session.why)
        if self.recorder and self.recorder.conversation is None:
            self.begin_record()
        self._reopened = False
        self.poll_memory()

    @on(OpenFailed)
    async def _open_failed(self, event: OpenFailed) -> None:
        await self._show_no_model(f"Error: {event.error}")

    @on(SwitchFailed)
    async def _switch_failed(self, event: SwitchFailed) -> None:
        self._reopened = True
        await self.say(f"Error: {event.error}", error=True)

    @on(PromptRead)
    def _prompt_read(self, event: PromptRead) -> None:
        progress = event.progress
        self.status = replace(self.status, activity=f"reading {progress.done}/{progress.total}")

    @on(TextArrived)
    def _text_arrived(self, event: TextArrived) -> None:
        for piece in event.pieces:
            self.transcript.write(piece.text, piece.drafted)
            if self.recorder:
                self.recorder.grow(piece.text)
        self.transcript.draw()

    @on(StatsArrived)
    def _stats_arrived(self, event: StatsArrived) -> None:
        self.show_numbers(event.stats, event.context_used)
        self.panel.show_why(event.why)

    @on(NoticeArrived)
    async def _notice_arrived(self, event: NoticeArrived) -> None:
        await self.say(event.text)

    @on(ReplyFinished)
    async def _reply_finished(self, event: ReplyFinished) -> None:
        done = event.done
        if self.recorder:
            complete = done.reason in {Reason.END, Reason.STOP}
            self.recorder.finish(done.text, complete, done.stats.figures)
        self.show_numbers(done.stats, event.context_used)
        await self.transcript.finish_answer(done.text, done.reason)
        if self._edits and not done.text:
            await self.show_conversation()
        self.match_turns()

    @on(ReplyFailed)
    async def _reply_failed(self, event: ReplyFailed) -> None:
        await self._show_no_answer(f"Error: {event.error}")

    @on(RecorderTold)
    async def _recorder_told(self, event: RecorderTold) -> None:
        if event.text:
            await self.say(event.text, error=event.error)
        else:
            await self.say("The history is written again.")

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
            self.set_phase(Phase.READY)
            self.at_rest()
            await self._send_waiting()

    def not_asked(self) -> None:
        """The last question is back in the prompt, and never was a message."""

    def at_rest(self) -> None:
        """No work runs; called before a waiting message is sent."""

    # What follows from it

    async def show_conversation(self) -> None:
        """Draw the session's conversation anew."""
        messages = self.session.messages if self.session else ()
        await self.transcript.show(
            [Shown(0, one.role, one.content, one.complete) for one in messages]
        )
        self.match_turns()

    def match_turns(self) -> None:
        """Find out anew which turn stands for which message: the session's texts, in their order."""
        messages = [
            one for one in (self.session.messages if self.session else ()) if one.role != "system"
        ]
        turns = iter(self.transcript.turns)
        self.said = []
        for message in messages:
            for turn in turns:
                kind = UserTurn if message.role == "user" else AnswerTurn
                if isinstance(turn, kind) and turn.text == message.content:
                    self.said.append(turn)
                    break

    def begin_record(self, folder: str = "") -> None:
        """What is asked from now on is another conversation."""
        if self.recorder:
            self.recorder.new(
                model=self._model_name,
                persona=self.settings.persona,
                system=self.settings.system or "",
                folder=folder,
            )

    def leave(self) -> None:
        """End the app once the session is closed; at once when asked again."""
        asked_again = self.phase is Phase.LEAVING
        failed = self.phase is Phase.FAILED
        self.set_phase(Phase.LEAVING)
        self.status = replace(self.status, activity="closing")
        if self.leave_session() or asked_again:
            self.app.exit(return_code=1 if failed else 0)
        else:
            self.set_timer(LEAVE_SECONDS, self.app.exit)
            self.set_interval(FREE_SECONDS, self._leave_when_free)

    def _leave_when_free(self) -> None:
        if not self.thread_at_work:
            self.app.exit()

    @property
    def _model_name(self) -> str:
        return self.session.target_name if self.session else ""

    def _start_recorder(self) -> None:
        if self.services.open_history is None:
            return
        from edgespec.history.recorder import Recorder  # noqa: PLC0415 - brings SQLite along

        self.recorder = Recorder(
            self.services.open_history,
            lambda text: self._tell(RecorderTold(text, error=True)),
            lambda text: self._tell(RecorderTold(text, error=False)),
        )

    async def _send_waiting(self) -> None:
        turn, self._waiting = self._waiting, None
        if turn is not None:
            turn.mark("")
            await self._ask(turn, self.message_count)

    async def _show_no_model(self, reason: str) -> None:
        self.set_phase(Phase.FAILED)
        self.status = replace(self.status, activity="no model")
        self.headline.update("EdgeSpec  no model")
        if self.loading_line is not None:
            await self.loading_line.remove()
        await self.say(reason, error=True)
        turn, self._waiting = self._waiting, None
        if turn is not None:
            await self._give_back(turn)

    async def _show_no_answer(self, reason: str) -> None:
        """Show why the answer ended; what was written is not lost, neither text nor question."""
        if self.recorder:
            self.recorder.fail()
        self.status = replace(self.status, activity="")
        answered = await self.transcript.break_answer()
        if self._edits:
            await self.show_conversation()
        await self.say(reason, error=True)
        self.transcript.follow()
        if self._asked is not None and not answered:
            await self._give_back(self._asked)
            self.not_asked()

    async def _give_back(self, turn: UserTurn) -> None:
        """Let the user send the message again, without taking what they write meanwhile."""
        there = turn.is_attached  # an edited one has gone with its branch
        if self.prompt.put_back(turn.text):
            if there:
                await turn.remove()
        elif there:
            turn.mark("not answered: Up at the start of the prompt brings it back")

    async def _show_unexpected(self, error: BaseException | None) -> None:
        log.error("unexpected error in the worker thread", exc_info=error)
        reason = f"Unexpected error: {error or type(error).__name__}; details in the log."
        if self.phase is Phase.LOADING:
            await self._show_no_model(reason)
        elif self.phase is Phase.ANSWERING:
            await self._show_no_answer(reason)
