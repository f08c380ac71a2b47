"""`edgespec chat`: opens the app."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from platformdirs import user_log_path

from edgespec.cli.options import chat_parser, settings_from
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser
from edgespec.errors import UsageError
from edgespec.settings import Load
from model_registry import locate
from model_registry.inspect import check_file


def main(arguments: Sequence[str]) -> int:
    """Chat until the user quits; returns the exit code."""
    settings = settings_from(parser().parse_args(arguments))
    _check_files(settings.load)
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("The chat needs a terminal.", "In a pipe use `edgespec run`.")
    _log_to_file()
    from tui.app import run_chat  # noqa: PLC0415 - Textual is loaded for this command only

    run_chat(settings)
    return ExitCode.OK


def _check_files(load: Load) -> None:
    """Refuse a missing or damaged file here, in the shell, before a screen opens for nothing.

    Reads headers only. Raises ModelFileProblem.
    """
    check_file(locate.find(load.model).target)
    if load.draft not in {None, "none", "lookup"}:
        check_file(locate.find(load.draft, role="draft").target)


def _log_to_file() -> None:
    """Keep log lines off the screen that the app paints."""
    path = user_log_path("edgespec", appauthor=False) / "app.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        logging.basicConfig(filename=path, level=logging.WARNING, encoding="utf-8")
    except OSError:
        logging.basicConfig(handlers=[logging.NullHandler()])


def parser() -> Parser:
    """The options of the command."""
    return chat_parser("chat", "Talk to a model in the terminal.")
