"""The chat: what commands and keys do to the conversation, which is in the screens below this one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.binding import Binding, BindingType

from edgespec.errors import EdgeSpecError
from tui import clipboard
from tui.commands import COMMANDS
from tui.folding import Written
from tui.phase import REFUSALS, Phase
from tui.screens.attaching import AttachingScreen
from tui.widgets.prompt import Prompt
from tui.widgets.readable import ReadableTranscript
from tui.widgets.turn import AnswerTurn, UserTurn

if TYPE_CHECKING:
    from edgespec.settings import Settings
    from tui.services import Services

GUARD_SECONDS = 3.0
"""How long the first Esc waits for the second."""
GUARDED_TOKENS = 200
"""An answer of more tokens is stopped by two presses of Esc: one may be an accident."""
NEEDS_REST = frozenset({"new", "again", "continue", "edit", "branch", "system", "persona", "tune"})
"""Commands that cannot be followed while an answer comes."""
SHOWN = {"again": "Again", "help": "Help", "models": "Models", "history": "History"}
"""Keys that the footer names."""


def _bindings() -> list[Binding]:
    return [
        Binding(
            command.key,
            f"run_command('{command.name}', '')",
            SHOWN.get(command.name, command.about),
            show=command.name in SHOWN,
        )
        for command in COMMANDS
        if command.key and command.name != "quit"  # the app's own
    ]


class ChatScreen(AttachingScreen):
    """The screen that people leave open all day."""

    CSS_PATH = "chat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop"),
        *_bindings(),
        Binding("ctrl+c", "interrupt", "Copy or stop", show=False, priority=True),
        Binding("tab", "look_back", "Select a message", show=False),
    ]

    def __init__(self, settings: Settings, services: Services) -> None:
        super().__init__(settings, services)
        self._guarded_until = 0.0

    @on(Prompt.CommandGiven)
    async def _command_given(self, event: Prompt.CommandGiven) -> None:
        self.action_run_command(event.name, event.argument)

    def action_run_command(self, name: str, argument: str) -> None:
        """Do what a command of `tui.commands` says. A screen that it opens may be waited for."""
        self.run_worker(self.run_command(name, argument), group="command", exit_on_error=False)

    async def run_command(self, name: str, argument: str) -> None:
        """The same, to be waited for; it needs a worker where it opens a screen."""
        if name in NEEDS_REST and self.phase is not Phase.READY:
            self.prompt.hint = REFUSALS[self.phase] or "One moment"
            return
        action = cast("Callable[[str], Awaitable[None]]", getattr(self, f"action_{name}"))
        await action(argument)

    # Answers

    def action_stop(self) -> None:
        """Stop the answer and keep what there is of it; a long one only when asked twice."""
        if self.phase is Phase.ANSWERING:
            self._stop_answer()
        elif self.editing is not None:
            self.stop_editing()
            self.prompt.fill(Written(""))
        self.transcript.select_none()

    def action_interrupt(self) -> None:
        """What Ctrl+C means at this moment: copy what is marked, stop the answer, or tell how to leave."""
        if self.prompt.selected_text:
            self.prompt.action_copy()
        elif self.get_selected_text():
            self.action_copy_text()
        elif self.phase is Phase.ANSWERING:
            self.action_stop()
        else:
            self.app.action_help_quit()

    def _stop_answer(self) -> None:
        now = time.monotonic()
        if self.status.stats.tokens > GUARDED_TOKENS and now > self._guarded_until:
            self._guarded_until = now + GUARD_SECONDS
            self.prompt.hint = "Esc once more stops this answer"
            return
        self.status = replace(self.status, activity="stopping")
        self.stop_reply()

    async def action_again(self, argument: str = "") -> None:
        """Answer again."""
        if self.transcript.has_answer:
            await self.answer_again()

    async def action_continue(self, argument: str = "") -> None:
        """Go on with an answer that was cut."""
        messages = self.session.messages if self.session else ()
        if messages and messages[-1].role == "assistant" and not messages[-1].complete:
            await self.go_on()
        else:
            self.prompt.hint = "The last answer is not cut; ask for more instead"

    async def action_edit(self, argument: str = "") -> None:
        """Change the selected message, or the last one; sending it makes a branch."""
        selected = self.transcript.selected
        turn = selected if isinstance(selected, UserTurn) else self._last_question()
        if turn is None or turn not in self.said:
            self.prompt.hint = "There is no message of yours to change"
            return
        self.prompt.write_again(self.question_of(turn))
        self.editing = turn
        self.prompt.border_title = "changes your message; Esc leaves it as it is"
        self.prompt.focus()

    # Reading

    def action_look_back(self) -> None:
        """Go to the messages with the keyboard."""
        if self.transcript.turns:
            self.transcript.focus()

    def action_write(self) -> None:
        """Go back to the prompt."""
        self.prompt.focus()

    def action_read(self, where: str) -> None:
        """Move through the transcript while the prompt keeps the keyboard."""
        moves: dict[str, Callable[[], None]] = {
            "page_up": self.transcript.scroll_page_up,
            "page_down": self.transcript.scroll_page_down,
            "start": self.transcript.scroll_home,
            "end": self.transcript.follow,
        }
        moves[where]()

    async def action_copy(self, argument: str = "") -> None:
        """Copy the selected message or the last answer; its code; or the whole conversation."""
        turn = self.transcript.selected or self._last_answer()
        if turn is None:
            self.prompt.hint = "There is nothing to copy yet"
            return
        text = turn.copied
        if argument == "code":
            code = clipboard.last_code_block(text)
            if code is None:
                self.prompt.hint = "There is no code in it"
                return
            text = code
        elif argument == "all":
            text = "\n\n".join(one.copied for one in self.transcript.turns)
        try:
            copied = await asyncio.to_thread(clipboard.copy, self.app, text)
        except EdgeSpecError as error:
            await self.say(f"Error: {error}", error=True)
        else:
            await self.say(copied.words)

    async def action_think(self, argument: str = "") -> None:
        """Show or fold the thinking."""
        self.transcript.thinking_open = not self.transcript.thinking_open

    async def action_tint(self, argument: str = "") -> None:
        """Mark the text that came from the draft."""
        self.transcript.tint = not self.transcript.tint
        if self.transcript.tint:
            self.prompt.hint = "Underlined: guessed by the draft and kept"

    async def action_panel(self, argument: str = "") -> None:
        """Show or hide the instruments."""
        self.panel_wanted = self.panel.display = not self.panel.display

    async def action_help(self, argument: str = "") -> None:
        """Keys and commands."""
        from tui.screens.help import HelpScreen  # noqa: PLC0415 - opened seldom

        keys = {
            "Writing": Prompt.BINDINGS,
            "Everywhere": self.BINDINGS,
            "At a message (Tab goes there)": ReadableTranscript.BINDINGS,
        }
        self.app.push_screen(HelpScreen(keys))

    async def action_quit(self, argument: str = "") -> None:
        """Leave."""
        self.leave()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer in the footer only the keys that would do something."""
        if action == "stop":
            return self.phase is Phase.ANSWERING or self.editing is not None
        if action == "run_command" and parameters and parameters[0] == "again":
            return self.phase is Phase.READY and self.transcript.has_answer
        return True

    def complete(self, command: str, begun: str) -> list[str]:
        """What a command's argument can become. Called in a thread."""
        from tui.completing import values  # noqa: PLC0415 - after the first picture

        return values(self.services, command, begun)

    def _last_question(self) -> UserTurn | None:
        turns = [turn for turn in self.transcript.turns if isinstance(turn, UserTurn)]
        return turns[-1] if turns else None

    def _last_answer(self) -> AnswerTurn | None:
        turns = [turn for turn in self.transcript.turns if isinstance(turn, AnswerTurn)]
        return turns[-1] if turns else None
