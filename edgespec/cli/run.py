"""`edgespec run`: one prompt, one answer on stdout, everything else on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from edgespec.attachments import compose, gather
from edgespec.cli import output
from edgespec.cli.background import in_background, loaded
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
    prompt = _prompt(options.prompt, vars(options).get("file", ()))
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
    options.add_argument(
        "--file",
        action="append",
        metavar="PATH|GLOB",
        default=argparse.SUPPRESS,
        help="put a file, the texts of a folder or what a pattern matches before the prompt; "
        "may be repeated",
    )
    options.add_argument("--stats", action="store_true", help="print the numbers on stderr")
    return options


def _prompt(words: list[str], files: Iterable[str]) -> str:
    """The files, what was typed, what came through a pipe. Raises UsageError, AttachmentProblem."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else _read_stdin()
    prompt = "\n\n".join(part for part in (" ".join(words), piped.strip("\n")) if part.strip())
    found = gather(files)
    for text in found.notes:
        output.note(text)
    if not prompt and not found.attachments:
        raise UsageError("There is no prompt.", 'Give one: edgespec run "Why is the sky blue?"')
    return compose(prompt, found.attachments)


def _read_stdin() -> str:
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def _answer(settings: Settings, prompt: str) -> tuple[ReplyDone, str | None]:
    """Stream the answer to stdout; why it was drafted as it was comes with its numbers."""
    with closing(loaded(lambda: Session.open(settings))) as session:
        # Asked for first: that takes back a cancel that came before it.
        answer = session.reply(prompt)
        with in_background(answer, session.cancel) as events:
            return _print(events, session), session.why


def _print(events: Iterator[ReplyEvent], session: Session) -> ReplyDone:
    for text in session.notices:
        output.note(text)
    for event in events:
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
