"""The conversation as it is read: grows at its end, follows it only while the reader is there."""

from __future__ import annotations

from textual import events
from textual.containers import VerticalScroll
from textual.widget import Widget

from edgespec.events import Reason
from tui.widgets.turn import AnswerTurn, NoticeLine, UserTurn


class Transcript(VerticalScroll, can_focus=False):
    """Turns and notices, oldest first. The keyboard stays with the prompt."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._width = 0
        self._answer: AnswerTurn | None = None
        self._growing = False
        self._before: AnswerTurn | None = None
        """The answer that was the last one before the growing one began."""
        self._again = False
        """Whether the growing answer is to take the place of the one before."""

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer that could be given again."""
        return self._answer is not None

    def on_mount(self) -> None:
        """Stay at the end until the reader scrolls away; back at the end, stay again."""
        self.anchor()

    def on_resize(self, event: events.Resize) -> None:
        """Another width gives other heights: measure all anew."""
        if event.size.width == self._width:
            return
        self._width = event.size.width
        for turn in self.query_children(AnswerTurn):
            turn.wake()
        self.call_after_refresh(self._rest_far_turns)

    def on_answer_turn_settled(self) -> None:
        """What was read before may be far away by now."""
        self.call_after_refresh(self._rest_far_turns)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Wake what comes near the view."""
        super().watch_scroll_y(old_value, new_value)
        self._rest_far_turns()

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.anchor()

    async def add_question(self, text: str) -> UserTurn:
        """Append what the user asks."""
        turn = UserTurn(text)
        await self.mount(turn)
        return turn

    async def add_notice(
        self, text: str, *, error: bool = False, before: Widget | None = None
    ) -> NoticeLine:
        """Add a line that stays: at the end, or in front of `before` or of a growing answer."""
        line = NoticeLine(text, error=error)
        await self.mount(line, before=before or (self._answer if self._growing else None))
        return line

    async def begin_answer(self, *, again: bool) -> None:
        """Append an empty answer; with `again` it hides the one before."""
        self._before, self._answer = self._answer, AnswerTurn()
        self._again, self._growing = again, True
        if again and self._before is not None:
            self._before.display = False
        await self.mount(self._answer)
        self.follow()

    def write(self, text: str) -> None:
        """Let the answer grow."""
        if self._answer is not None:
            self._answer.write(text)

    async def finish_answer(self, text: str, reason: Reason) -> None:
        """Show the final text of the answer."""
        if self._answer is not None:
            self._answer.finish(text, reason)
        await self._end(keep=True)

    async def break_answer(self) -> bool:
        """End the answer after an error; False when nothing of it had come, so that it is gone."""
        if self._answer is None or not self._growing:
            return True
        answered = bool(self._answer.text)
        if answered:
            self._answer.break_off()
        await self._end(keep=answered)
        return answered

    async def _end(self, *, keep: bool) -> None:
        self._growing = False
        loser = self._before if keep else self._answer
        if not keep:
            self._answer = self._before
            if self._answer is not None:
                self._answer.display = True
        self._before = None
        if loser is not None and (self._again or not keep):
            await loser.remove()

    def _rest_far_turns(self) -> None:
        """Keep in the layout only what is at most a screen away from the view."""
        height = self.size.height
        top, bottom = self.scroll_y - height, self.scroll_y + 2 * height
        for turn in self.query_children(AnswerTurn):
            if turn.virtual_region.bottom > top and turn.virtual_region.y < bottom:
                turn.wake()
            else:
                turn.rest()
