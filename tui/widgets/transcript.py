"""The conversation as it is read: grows at its end, follows it only while the reader is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from textual.widget import Widget

from edgespec.events import Reason
from tui.widgets.turn import AnswerTurn, Describe, NoticeLine, Turn, UserTurn
from tui.widgets.turn_list import Gap, TurnList

RECENT_ROWS = 120
"""Rows that are made at once of a restored conversation; the rest when it is read."""


class EntryLike(Protocol):
    """What is shown of an entry of the history."""

    @property
    def id(self) -> int:
        """Its id in the history."""
        ...

    @property
    def role(self) -> str:
        """`user`, `assistant` or `system`; what the system says is not shown."""
        ...

    @property
    def content(self) -> str:
        """The message."""
        ...

    @property
    def complete(self) -> bool:
        """Whether it came to its end."""
        ...


class Transcript(TurnList):
    """Turns and notices, oldest first. The keyboard stays with the prompt."""

    def __init__(self, describe: Describe = str) -> None:
        super().__init__()
        self._describe = describe
        self._answer: AnswerTurn | None = None
        self._growing = False
        self._before: AnswerTurn | None = None
        """The answer that was the last one before the growing one began."""
        self._again = False
        """Whether the growing answer is to take the place of the one before."""
        self._tint = False
        self._thinking_open = False

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer that could be given again."""
        return self._answer is not None

    @property
    def tint(self) -> bool:
        """Whether what was drafted is marked."""
        return self._tint

    @tint.setter
    def tint(self, tint: bool) -> None:
        self._tint = tint
        for turn in self._answers():
            turn.tint = tint

    @property
    def thinking_open(self) -> bool:
        """Whether thoughts are shown."""
        return self._thinking_open

    @thinking_open.setter
    def thinking_open(self, thinking_open: bool) -> None:
        self._thinking_open = thinking_open
        for turn in self._answers():
            turn.thinking_open = thinking_open

    async def show(self, entries: Iterable[EntryLike]) -> None:
        """Show a whole conversation in the place of this one, at its end."""
        await self.clear()
        turns = [self._restored(entry) for entry in entries if entry.role != "system"]
        last = turns[-1] if turns else None
        self._answer = last if isinstance(last, AnswerTurn) else None
        width, rows, recent = self.size.width or 80, 0, len(turns)
        while recent and rows < RECENT_ROWS:
            recent -= 1
            rows += turns[recent].likely_height(width)
        older = [Gap(turns[:recent])] if recent else []
        await self.mount_all([*older, *turns[recent:]])
        self.follow()

    async def clear(self) -> None:
        """Take everything away."""
        self._answer = self._before = None
        self._growing = False
        await self.empty()

    async def cut(self, turn: Turn) -> None:
        """Take away a turn and all that comes after it, to go on differently from there."""
        self._growing, self._before = False, None
        await self.remove_from(turn)
        left = self.turns
        last = left[-1] if left else None
        self._answer = last if isinstance(last, AnswerTurn) else None

    async def add_question(self, text: str) -> UserTurn:
        """Append what the user asks."""
        turn = UserTurn(text, self._describe)
        await self.mount(turn)
        self.note_more()
        return turn

    async def add_notice(
        self, text: str, *, error: bool = False, before: Widget | None = None
    ) -> NoticeLine:
        """Add a line that stays: at the end, or in front of `before` or of a growing answer."""
        line = NoticeLine(text, error=error)
        await self.mount(line, before=before or (self._answer if self._growing else None))
        self.note_more()
        return line

    async def begin_answer(self, *, again: bool, thinking: bool = False) -> None:
        """Append an empty answer; with `again` it hides the one before.

        `thinking` says that the prompt ends inside a thought, as some templates have it.
        """
        self._before, self._answer = self._answer, self._prepared(AnswerTurn(thinking=thinking))
        self._again, self._growing = again, True
        if again and self._before is not None:
            self._before.display = False
        await self.mount(self._answer)
        self.follow()

    def continue_answer(self) -> bool:
        """Let the last answer grow again; False when there is none."""
        if self._answer is None or self._growing:
            return False
        self._before, self._again, self._growing = None, False, True
        self._answer.go_on()
        self.follow()
        return True

    def write(self, text: str, drafted: int = 0) -> None:
        """Let the answer grow; the first `drafted` characters come from accepted draft tokens."""
        if self._answer is not None:
            self._answer.write(text, drafted)
            self.note_more()

    def draw(self) -> None:
        """Draw what was written without waiting, so that it is one picture with what follows."""
        if self._answer is not None:
            self._answer.draw()

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

    def _restored(self, entry: EntryLike) -> Turn:
        if entry.role == "user":
            return UserTurn(entry.content, self._describe, message=entry.id)
        return self._prepared(
            AnswerTurn.restored(entry.content, complete=entry.complete, message=entry.id)
        )

    def _prepared(self, turn: AnswerTurn) -> AnswerTurn:
        turn.tint, turn.thinking_open = self._tint, self._thinking_open
        return turn

    def _answers(self) -> Iterator[AnswerTurn]:
        return (turn for turn in self.turns if isinstance(turn, AnswerTurn))
