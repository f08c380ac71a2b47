"""Conversations of the history: another one, another branch, a title, a folder, a file."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work

from edgespec.conversation import Message
from edgespec.errors import EdgeSpecError
from tui.messages import BranchesCounted, ConversationFound, Told
from tui.phase import REFUSALS, Phase
from tui.screens.conversation import ConversationScreen

if TYPE_CHECKING:
    from edgespec.history.records import Entry, Summary
    from edgespec.history.store import History

FLUSH_SECONDS = 5.0
NO_HISTORY = "Nothing is kept in this session, so there is no history."


class KeepingScreen(ConversationScreen):
    """Threads of its own read the history; the recorder alone writes what is said now."""

    async def action_new(self, argument: str = "") -> None:
        """Begin another conversation."""
        if self.session is None or self.message_count == 0:
            return
        self.session.restore(())
        self.stop_editing()
        await self.transcript.clear()
        self.said = []
        self.reset_numbers()
        self.begin_record()
        await self.say("A new conversation. The one before is in the history.")

    async def action_history(self, argument: str = "") -> None:
        """Find, open, rename or delete conversations."""
        if self.services.open_history is None:
            await self.say(NO_HISTORY)
            return
        from tui.screens.history import HistoryScreen  # noqa: PLC0415 - opened seldom

        if self.recorder:
            await asyncio.to_thread(self.recorder.flush, FLUSH_SECONDS)
        choice = await self.app.push_screen_wait(HistoryScreen(self.services.open_history))
        if choice is not None:
            self._find(choice.conversation)

    async def action_branch(self, argument: str = "") -> None:
        """Show another version of the selected message, or of the last that has several."""
        selected = self.transcript.selected
        index = self.said.index(selected) if selected in self.said else None
        self._find_branch(-1 if argument == "previous" else 1, index)

    async def action_rename(self, argument: str) -> None:
        """Give the conversation a title."""
        if self.recorder:
            self.recorder.rename(argument)
            await self.say(f"This conversation is called {argument} from now on.")

    async def action_folder(self, argument: str) -> None:
        """Put the conversation into a folder."""
        if self.recorder:
            self.recorder.move(argument)
            await self.say(f"This conversation lies in the folder {argument} from now on.")

    async def action_export(self, argument: str = "") -> None:
        """Write the conversation to a file: Markdown, or JSON by the ending of its name."""
        if self.message_count == 0:
            self.prompt.hint = "There is nothing to export yet"
        else:
            self._export(argument)

    def at_rest(self) -> None:
        """An answer may be another version of one before."""
        super().at_rest()
        if self.recorder and self.message_count:
            self._count_branches()

    @on(ConversationFound)
    async def _conversation_found(self, event: ConversationFound) -> None:
        if self.phase is not Phase.READY or self.session is None:
            await self.say(f"Not opened. {REFUSALS[self.phase]}")
            return
        self.session.restore([_message(entry) for entry in event.entries])
        if self.recorder:
            self.recorder.resume(event.summary, event.entries)
        self.stop_editing()
        await self.transcript.show(event.entries)
        self.match_turns()
        self.reset_numbers()
        self.refresh_bindings()
        await self.resumed(event.summary)
        self._count_branches()

    async def resumed(self, summary: Summary) -> None:
        """A stored conversation is shown now."""

    def not_asked(self) -> None:
        """A conversation of which nothing was ever answered is none."""
        if self.recorder and self.message_count == 0:
            self._forget()

    @work(thread=True, exit_on_error=False, group="history")
    def _forget(self) -> None:
        with self._history() as history:
            conversation, _ = self._shown()
            self.begin_record()
            if conversation is not None:
                history.remove(conversation)

    @on(BranchesCounted)
    def _branches_counted(self, event: BranchesCounted) -> None:
        if self.recorder is None or self.recorder.conversation != event.conversation:
            return
        for turn, place in zip(self.said, event.places, strict=False):
            turn.branch = place if place[1] > 1 else None

    @on(Told)
    async def _told(self, event: Told) -> None:
        await self.say(event.text, error=event.error)

    @work(thread=True, exit_on_error=False, group="history")
    def _find(self, conversation: int) -> None:
        with self._history() as history:
            self._show_stored(history, conversation)

    @work(thread=True, exit_on_error=False, group="history")
    def _find_branch(self, step: int, index: int | None) -> None:
        with self._history() as history:
            conversation, shown = self._shown()
            if conversation is None:
                return
            places = range(len(shown) - 1, -1, -1) if index is None else [index]
            for place in places:
                versions = history.siblings(shown[place]) if place < len(shown) else []
                if len(versions) > 1:
                    other = versions[(versions.index(shown[place]) + step) % len(versions)]
                    history.set_head(conversation, history.leaf_below(other))
                    self._show_stored(history, conversation)
                    return
            self._tell(Told("There is one version only. /edit or /again makes another."))

    @work(thread=True, exit_on_error=False, group="branches", exclusive=True)
    def _count_branches(self) -> None:
        with self._history() as history:
            conversation, shown = self._shown()
            if conversation is not None:
                versions = [history.siblings(message) for message in shown]
                places = tuple(
                    (own.index(message) + 1, len(own))
                    for own, message in zip(versions, shown, strict=True)
                )
                self._tell(BranchesCounted(conversation, places))

    @work(thread=True, exit_on_error=False, group="history")
    def _export(self, name: str) -> None:
        from edgespec.history.transfer import to_json, to_markdown  # noqa: PLC0415 - used seldom

        with self._history() as history:
            conversation, _ = self._shown()
            if conversation is None:
                self._tell(Told("The conversation is not in the history yet.", error=True))
                return
            title = re.sub(r"[^\w.-]+", "-", history.summary(conversation).title).strip("-.")
            path = Path(name).expanduser() if name else _free(Path.cwd(), title or "conversation")
            as_json = path.suffix.lower() == ".json"
            text = (to_json if as_json else to_markdown)(history, conversation)
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                reason = (
                    "it is there already" if isinstance(error, FileExistsError) else error.strerror
                )
                self._tell(Told(f"Error: {path} cannot be written: {reason}.", error=True))
            else:
                self._tell(Told(f"Written to {path.absolute()}"))

    def _show_stored(self, history: History, conversation: int) -> None:
        entries = tuple(history.path(conversation))
        self._tell(ConversationFound(history.summary(conversation), entries))

    def _shown(self) -> tuple[int | None, list[int]]:
        """The running conversation and its messages, system text not counted; waits until they are
        written.
        """
        if self.recorder is None or not self.recorder.flush(FLUSH_SECONDS):
            return None, []
        ids = [message for message in self.recorder.shown if message is not None]
        return self.recorder.conversation, ids[max(len(ids) - self.message_count, 0) :]

    @contextmanager
    def _history(self) -> Iterator[History]:
        """The history, opened for a thread; what goes wrong is told."""
        open_history: Callable[[], History] | None = self.services.open_history
        try:
            if open_history is None:
                raise EdgeSpecError(NO_HISTORY)
            with closing(open_history()) as history:
                yield history
        except EdgeSpecError as error:
            self._tell(Told(f"Error: {error}", error=True))


def _message(entry: Entry) -> Message:
    return Message(entry.role, entry.content, complete=entry.complete)


def _free(folder: Path, title: str) -> Path:
    """A name that no file has."""
    path, number = folder / f"{title}.md", 2
    while path.exists():
        path, number = folder / f"{title}-{number}.md", number + 1
    return path
