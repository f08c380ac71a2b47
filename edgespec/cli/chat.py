"""`edgespec chat`: opens the app."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from edgespec.cli.options import chat_parser, settings_from
from edgespec.cli.output import ExitCode
from edgespec.errors import UsageError


def main(arguments: Sequence[str]) -> int:
    """Chat until the user quits; returns the exit code."""
    parser = chat_parser("chat", "Talk to a model in the terminal.")
    settings = settings_from(parser.parse_args(arguments))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("The chat needs a terminal.", "In a pipe use `edgespec run`.")
    from tui.app import run_chat  # noqa: PLC0415 - Textual is loaded for this command only

    run_chat(settings)
    return ExitCode.OK
