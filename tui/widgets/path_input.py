"""A line for a path or a pattern that completes itself from the folders on this machine."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.suggester import Suggester
from textual.widgets import Input

from edgespec.attachments import complete


class PathSuggester(Suggester):
    """Shows the first path that begins with what was written."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Look in a thread: a disk may be slow."""
        return next(iter(await asyncio.to_thread(complete, value)), None)


class PathInput(Input):
    """Tab takes the completion; where there is none, it leads on as everywhere."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", "Complete")]

    def __init__(self) -> None:
        super().__init__(
            placeholder="a path, a folder, or a pattern such as src/**/*.py",
            suggester=PathSuggester(),
            select_on_focus=False,
        )

    def action_complete(self) -> None:
        """Look for the completion first: it may be asked for before it is shown."""
        self.run_worker(self._complete(), group="complete", exclusive=True)

    async def _complete(self) -> None:
        written = self.value
        found = await asyncio.to_thread(complete, written)
        if self.value != written:
            return
        if found and found[0] != written:
            self.value = found[0]
            self.cursor_position = len(self.value)
        else:
            self.screen.focus_next()
