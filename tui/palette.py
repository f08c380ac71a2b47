"""The commands of the chat in Textual's command palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.css.query import NoMatches

from tui.commands import COMMANDS, Command
from tui.folding import Written
from tui.widgets.prompt import Prompt


class CommandProvider(Provider):
    """For a screen with `action_run_command(name, argument)`; on another one it offers nothing.

    The action, and not what it starts: a command that opens a screen must run in a worker.
    """

    async def discover(self) -> Hits:
        """All commands, before anything is typed."""
        for command, run in self._runs():
            yield DiscoveryHit(f"/{command.name}", run, help=command.about)

    async def search(self, query: str) -> Hits:
        """The commands whose name or whose help is like `query`."""
        matcher = self.matcher(query)
        for command, run in self._runs():
            name = f"/{command.name}"
            score = max(matcher.match(name), matcher.match(command.about))
            if score > 0:
                yield Hit(score, matcher.highlight(name), run, text=name, help=command.about)

    def _runs(self) -> Iterator[tuple[Command, Callable[[], object]]]:
        run_command = getattr(self.screen, "action_run_command", None)
        if not callable(run_command):
            return
        for command in COMMANDS:
            if command.needs_argument:
                yield command, partial(self._begin, command)
            else:
                yield command, partial(run_command, command.name, "")

    def _begin(self, command: Command) -> None:
        """Let the user write the argument; what is in the prompt comes back with undo."""
        try:
            prompt = self.screen.query_one(Prompt)
        except NoMatches:
            return
        prompt.fill(Written(f"/{command.name} "))
        prompt.focus()
