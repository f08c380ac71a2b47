"""Files that go with the next message."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from edgespec.errors import EdgeSpecError
from tui.printing import printable
from tui.screens.choosing import ChoosingScreen
from tui.widgets.prompt import Prompt
from tui.widgets.turn import UserTurn

if TYPE_CHECKING:
    from edgespec.attachments import Attachment
    from edgespec.settings import Settings
    from tui.services import Services

ANSWER_ROOM = 8
"""An eighth of the context is left to the answer."""


class AttachingScreen(ChoosingScreen):
    """What is attached is shown above the prompt with its cost, and sent with the next message."""

    def __init__(self, settings: Settings, services: Services) -> None:
        super().__init__(settings, services)
        self._attached: tuple[Attachment, ...] = ()

    async def action_attach(self, argument: str = "") -> None:
        """Add files to the next message."""
        await self._add(argument)

    async def action_detach(self, argument: str = "") -> None:
        """Take the added files away."""
        await self._hold(())

    @on(Prompt.FilesDropped)
    async def _files_dropped(self, event: Prompt.FilesDropped) -> None:
        await self._add("", event.paths)

    async def send(self, text: str) -> None:
        """Send the files with the text; an edited message keeps those that it has."""
        from edgespec.attachments import compose, reword  # noqa: PLC0415 - after the first picture

        if self.editing is not None:
            text = reword(self.editing.text, text)
        taken = self._attached
        await self._hold(())
        await super().send(compose(text, taken))

    def question_of(self, turn: UserTurn) -> str:
        """What was written by hand of a message with files."""
        from edgespec.attachments import split  # noqa: PLC0415 - see above

        return split(turn.text)[0]

    @property
    def room(self) -> int:
        """Tokens that a message may take without older turns having to leave."""
        if self.session is None:
            return 0
        size = self.session.context_size
        return max(size - size // ANSWER_ROOM - self.session.context_used, 0)

    async def _add(self, pattern: str, dropped: tuple[Path, ...] = ()) -> None:
        if self.session is None:
            await self.say("Files are counted in tokens of a model: wait until it is loaded.")
            return
        from tui.screens.attach import AttachScreen  # noqa: PLC0415 - opened seldom

        if pattern and not dropped:
            dropped = await asyncio.to_thread(_one_file, pattern)
        if dropped:
            found = await self._read(dropped)
        else:
            screen = AttachScreen(self.session.count, self.room, pattern)
            chosen = await self.app.push_screen_wait(screen)
            found = chosen or ()
        if found:
            new = {one.path: one for one in (*self._attached, *found)}
            await self._hold(tuple(new.values()))

    async def _read(self, paths: tuple[Path, ...]) -> tuple[Attachment, ...]:
        from edgespec.attachments import read  # noqa: PLC0415 - see above

        found = []
        for path in paths:
            try:
                found.append(await asyncio.to_thread(read, path))
            except EdgeSpecError as error:
                await self.say(f"Error: {error}", error=True)
        return tuple(found)

    async def _hold(self, attached: tuple[Attachment, ...]) -> None:
        """Show what goes with the next message, and what it costs."""
        self._attached = attached
        session = self.session
        self.attached_line.display = bool(attached)
        if not attached or session is None:
            return
        from edgespec.attachments import block  # noqa: PLC0415 - see above

        counts = [await asyncio.to_thread(session.count, block(one)) for one in attached]
        names = ", ".join(
            f"{one.name} ({count} tokens)" for one, count in zip(attached, counts, strict=True)
        )
        tight = "  More than fits!" if sum(counts) > self.room else ""
        self.attached_line.update(
            printable(
                f"with it: {names}; {self.room} tokens are free.{tight}  /detach takes them away"
            )
        )


def _one_file(pattern: str) -> tuple[Path, ...]:
    """The file that is meant, where it is exactly one: nothing is to be chosen then."""
    from edgespec.attachments import expand  # noqa: PLC0415 - see above

    try:
        found = expand(pattern)
    except EdgeSpecError:
        return ()
    return tuple(found) if len(found) == 1 and found[0].is_file() else ()
