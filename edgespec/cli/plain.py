"""`edgespec chat --plain`: the chat in lines, for screen readers, simple terminals and pipes.

What is written stays: no cursor is moved, nothing is painted over, there are no colours. As in
`edgespec run`, answers go to stdout and all else to stderr; in a terminal the two meet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol

from edgespec.cli import output
from edgespec.cli.background import in_background, loaded
from edgespec.cli.keeping import Keeper, Kept, News
from edgespec.cli.output import ExitCode
from edgespec.cli.pieces import Pieces
from edgespec.cli.plain_input import Ask, asker, read_message
from edgespec.cli.terminal import encoding_problem, remedy
from edgespec.conversation import Message
from edgespec.errors import EdgeSpecError
from edgespec.events import Prefilled, Reason
from edgespec.printable import printable
from edgespec.reply import Notice, ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.session import Session
from edgespec.settings import Settings
from edgespec.stats import Stats

HELP = """\
Write a message and press Enter. A line that ends in a backslash goes on in the next one, and so do all
lines between two lines of three quotation marks.
/again      another answer to the last message
/continue   go on with an answer that was stopped or cut
/new        a new conversation
/help       this
/quit       leave; Ctrl+D does the same
Ctrl+C stops the answer and keeps what there is of it. A space in front sends a line that begins with a
slash."""
_LONG_PROMPT = 256
"""Tokens to read that are worth a word: on a slow machine nothing else is heard for a while."""


class Talk(Protocol):
    """What is used of `Session`."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user must know before the first message."""
        ...

    @property
    def target_name(self) -> str:
        """Short name of the target."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation."""
        ...

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        """Answer a message."""
        ...

    def regenerate(self) -> Iterator[ReplyEvent]:
        """Answer again."""
        ...

    def continue_answer(self) -> Iterator[ReplyEvent]:
        """Go on with a cut answer."""
        ...

    def restore(self, messages: Sequence[Message]) -> None:
        """Another conversation."""
        ...

    def cancel(self) -> None:
        """Stop the answer."""
        ...


def chat_plainly(
    settings: Settings, piece: str, keeper: Keeper | None = None, news: News | None = None
) -> int:
    """Chat until the user leaves or the input ends; returns the exit code.

    `piece` is one of PIECES: how much of an answer is written at a time. The keeper is closed at the end.
    """
    problem = encoding_problem()
    if problem:
        output.note(f"{problem} What it lacks becomes a question mark. {remedy(os.environ)}.")
    output.note("Loading the model.")
    with closing(loaded(lambda: Session.open(settings))) as session:
        interactive = sys.stdin is not None and sys.stdin.isatty()
        chat = Chat(
            session,
            piece,
            interactive=interactive,
            persona=settings.persona,
            keeper=keeper,
            news=news,
        )
        try:
            return chat.run(asker())
        finally:
            chat.close()


class Chat:
    """The conversation as it is read and written."""

    def __init__(
        self,
        session: Talk,
        piece: str,
        *,
        interactive: bool,
        persona: str = "",
        keeper: Keeper | None = None,
        news: News | None = None,
    ) -> None:
        self._session = session
        self._piece = piece
        self._interactive = interactive
        self._persona = persona
        self._keeper = keeper
        self._news = news or News()
        self._at_start = True
        """Of a line, on stdout."""
        self._code = ExitCode.OK
        self._commands: dict[str, Callable[[], None]] = {
            "/again": lambda: self._answer(session.regenerate, None),
            "/continue": self._go_on,
            "/new": self._begin_anew,
            "/help": lambda: self._note(HELP),
        }

    def run(self, ask: Ask) -> int:
        """Until the end of the input, or `/quit`; returns the exit code.

        Where nobody sits at the keyboard, Ctrl-C raises KeyboardInterrupt.
        """
        for text in self._session.notices:
            self._note(text)
        self._note(f"{self._session.target_name} is ready. /help lists what you can do.")
        self._open()
        while True:
            for text in self._news.take():
                self._note(text)
            try:
                text = read_message(ask)
            except EOFError:
                if self._interactive:
                    self._write("\n")  # Ctrl-D leaves the cursor behind the prompt
                return self._code
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                self._note("\nCtrl+D or /quit leaves.")
                continue
            if text.rstrip() == "/quit":
                return self._code
            self._take(text)

    def close(self) -> None:
        """Have the rest of the conversation written."""
        if self._keeper:
            self._keeper.close()
        for text in self._news.take():
            self._note(text)

    def _take(self, text: str) -> None:
        command = text.rstrip()
        if not command:
            return
        if command in self._commands:
            self._commands[command]()
        elif command.startswith("/") and command[1:].isalpha():
            self._note(f"There is no command {command}. /help lists those there are.")
        else:
            self._answer(lambda: self._session.reply(text), text)

    def _open(self) -> None:
        """Have a conversation of its own in the history, with the system text of the session's."""
        if self._keeper:
            first = self._session.messages[:1]
            system = "".join(one.content for one in first if one.role == "system")
            self._keeper.new(model=self._session.target_name, persona=self._persona, system=system)

    def _begin_anew(self) -> None:
        self._session.restore(())
        self._open()
        self._note("A new conversation.")

    def _go_on(self) -> None:
        last = self._session.messages[-1:]
        self._answer(
            self._session.continue_answer,
            None,
            more=True,
            already=len(last[0].content) if last else 0,
        )

    def _answer(
        self,
        start: Callable[[], Iterator[ReplyEvent]],
        question: str | None,
        *,
        more: bool = False,
        already: int = 0,
    ) -> None:
        """With `more` an answer goes on, of which `already` characters in front are on the screen."""
        model = self._session.target_name
        try:
            answer = start()
            with (
                closing(Kept(self._keeper, question, more=more, model=model)) as kept,
                in_background(answer, self._session.cancel) as events,
            ):
                self._show(events, kept, already)
        except EdgeSpecError as problem:
            self._end_line()
            output.error(problem)
            self._code = ExitCode.ERROR
        except KeyboardInterrupt:  # the second one: the first has its end as any other answer
            if not self._interactive:
                raise
            self._end_line()
            output.note("(stopped)")

    def _show(self, events: Iterator[ReplyEvent], kept: Kept, already: int) -> None:
        pieces = Pieces(self._piece)
        label = "Answer goes on: " if already else "Answer: "
        for event in events:
            if isinstance(event, Prefilled):
                self._announce(event)
            self._write(label)
            label = ""
            match event:
                case TextDelta(text=text):
                    kept.grow(text)
                    new, already = text[already:], max(0, already - len(text))
                    self._write(printable(pieces.feed(new)))
                case Notice(text=text):
                    self._note(text)
                case Prefilled() | StatsChanged():
                    pass
                case ReplyDone():
                    self._write(printable(pieces.finish()))
                    kept.finish(event)
                    self._explain(event)

    def _announce(self, reading: Prefilled) -> None:
        """Say before the first piece of a long prompt that it will take a while."""
        left = reading.total - reading.done
        if reading.done == reading.reused and left > _LONG_PROMPT:
            self._note(f"Reading {left} tokens first.")

    def _explain(self, done: ReplyDone) -> None:
        """What must be said after an answer. Raises KeyboardInterrupt where that ends the chat."""
        more = "; /continue goes on" if done.text else ""
        if done.reason is Reason.CANCELLED:
            self._note(f"(stopped{more})")
            if not self._interactive:
                raise KeyboardInterrupt
        elif done.reason is Reason.LENGTH:
            self._note(f"(cut at --max-tokens{more})")
        self._note(f"({words(done.stats)})")

    def _write(self, text: str) -> None:
        if text:
            output.answer(text)
            self._at_start = text.endswith("\n")

    def _end_line(self) -> None:
        if not self._at_start:
            self._write("\n")

    def _note(self, text: str) -> None:
        self._end_line()
        output.note(printable(text))


def words(stats: Stats) -> str:
    """The numbers of an answer as they are said."""
    parts = [f"{stats.tokens} token{'' if stats.tokens == 1 else 's'}"]
    if stats.tokens_per_second is not None:
        parts.append(f"{stats.tokens_per_second:.1f} tokens a second")
    if stats.speed_up is not None:
        parts.append(f"{stats.speed_up:.2f} times plain decoding")
    if stats.ttft_seconds:
        parts.append(f"the first after {stats.ttft_seconds:.1f} seconds")
    if stats.acceptance is not None:
        parts.append(f"{stats.acceptance:.0%} of {stats.tested} tested guesses accepted")
    return ", ".join(parts).replace("%", " percent")
