"""`edgespec run`: one prompt, one answer on stdout, everything else on stderr."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from edgespec.cli import output
from edgespec.cli.options import chat_parser, settings_from
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser
from edgespec.errors import UsageError
from edgespec.events import Prefilled, Reason
from edgespec.reply import Notice, ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.session import Session
from edgespec.settings import Settings
from edgespec.stats import Stats


def main(arguments: Sequence[str]) -> int:
    """Answer and return the exit code."""
    options = parser().parse_args(arguments)
    settings = settings_from(options)
    prompt = _prompt(options.prompt)
    done, why = _answer(settings, prompt)
    if options.stats:
        output.note(describe(done.stats))
        if why:
            output.note(why)
    return ExitCode.INTERRUPTED if done.reason is Reason.CANCELLED else ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = chat_parser("run", "Answer one prompt. What comes on stdin is added to it.")
    options.add_argument(
        "prompt", nargs="*", metavar="PROMPT", help="the prompt, or its first part"
    )
    options.add_argument("--stats", action="store_true", help="print the numbers on stderr")
    return options


def _prompt(words: list[str]) -> str:
    piped = "" if sys.stdin is None or sys.stdin.isatty() else _read_stdin()
    prompt = "\n\n".join(part for part in (" ".join(words), piped.strip("\n")) if part.strip())
    if not prompt:
        raise UsageError("There is no prompt.", 'Give one: edgespec run "Why is the sky blue?"')
    return prompt


def _read_stdin() -> str:
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def _answer(settings: Settings, prompt: str) -> tuple[ReplyDone, str | None]:
    """Stream the answer to stdout; why it was drafted as it was comes with its numbers.

    The models work in a thread of their own: Python handles Ctrl-C only between native calls, and
    one of those can take seconds.
    """
    events: queue.SimpleQueue[ReplyEvent | BaseException | Session] = queue.SimpleQueue()
    worker = threading.Thread(target=_work, args=(settings, prompt, events), daemon=True)
    worker.start()
    try:
        session = _take_session(events)
    except KeyboardInterrupt:
        # Loading cannot be stopped half-way, and there is nothing to lose.
        os._exit(ExitCode.INTERRUPTED)
    try:
        with _cancelled_by_interrupt(session):
            return _print(events, session), session.why
    finally:
        session.cancel()  # whatever went wrong: nobody waits for the rest
        worker.join()
        session.close()


@contextmanager
def _cancelled_by_interrupt(session: Session) -> Iterator[None]:
    """The first Ctrl-C cancels the answer, whose end is then printed as any other's.

    An exception would arise wherever the main thread is, also in the midst of printing. A second
    Ctrl-C does raise, for the case that nobody reads what is printed.
    """

    def cancel(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        session.cancel()

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(
    settings: Settings, prompt: str, events: queue.SimpleQueue[ReplyEvent | BaseException | Session]
) -> None:
    try:
        session = Session.open(settings)
        answer = session.reply(prompt)  # first: it takes back a cancel that came before it
        events.put(session)
        for event in answer:
            events.put(event)
    except BaseException as problem:  # noqa: BLE001 - raised again in the main thread
        events.put(problem)


def _take_session(events: queue.SimpleQueue[ReplyEvent | BaseException | Session]) -> Session:
    match events.get():
        case Session() as session:
            return session
        case BaseException() as problem:
            raise problem
        case event:
            raise TypeError(f"{event} before the session was open")


def _print(
    events: queue.SimpleQueue[ReplyEvent | BaseException | Session], session: Session
) -> ReplyDone:
    for text in session.notices:
        output.note(text)
    for event in _until_done(events):
        match event:
            case TextDelta(text=text):
                output.answer(text)
            case Notice(text=text):
                output.note(text)
            case ReplyDone():
                output.answer("" if event.text.endswith("\n") else "\n")
                _explain(event.reason)
                return event
            case Prefilled() | StatsChanged():
                pass
    raise TypeError("the answer had no end")


def _until_done(
    events: queue.SimpleQueue[ReplyEvent | BaseException | Session],
) -> Iterator[ReplyEvent]:
    while True:
        event = events.get()
        if isinstance(event, BaseException):
            raise event
        if not isinstance(event, Session):
            yield event


def _explain(reason: Reason) -> None:
    match reason:
        case Reason.LENGTH:
            output.note("(cut at --max-tokens)")
        case Reason.CANCELLED:
            output.note("(stopped)")
        case Reason.CONTEXT | Reason.END | Reason.STOP:
            pass


def describe(stats: Stats) -> str:
    """The numbers of one answer as a line."""
    speed, acceptance, per_round = stats.tokens_per_second, stats.acceptance, stats.tokens_per_round
    parts = [
        f"{stats.tokens} tokens",
        "- tok/s" if speed is None else f"{speed:.1f} tok/s",
        f"first token after {stats.ttft_seconds:.2f} s",
        f"prompt {stats.prompt_tokens} tokens ({stats.reused_tokens} reused)",
        f"{stats.rounds} rounds" + ("" if per_round is None else f" of {per_round:.2f} tokens"),
    ]
    if len(stats.rounds_by) > 1:
        parts[-1] += f" ({', '.join(f'{count} {source}' for source, count in stats.rounds_by)})"
    if acceptance is not None:
        parts.append(f"acceptance {acceptance:.0%} ({stats.accepted} of {stats.tested} tested)")
    return ", ".join(parts)
