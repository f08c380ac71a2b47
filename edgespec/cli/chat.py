"""`edgespec chat`: opens the app, or with `--plain` the chat in lines."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence

from platformdirs import user_log_path

from edgespec.cli.options import chat_parser, settings_from
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser
from edgespec.cli.pieces import PIECES
from edgespec.cli.terminal import require_screen
from edgespec.settings import Load, Settings
from model_registry import locate


def main(arguments: Sequence[str]) -> int:
    """Chat until the user quits; returns the exit code."""
    options = parser().parse_args(arguments)
    settings = settings_from(options)
    piece = vars(options).get("plain")
    _check_files(settings.load)
    if piece is None:
        require_screen(os.environ)
    _log_to_file()
    if piece is not None:
        return _plainly(settings, piece)
    from tui.app import run_chat  # noqa: PLC0415 - Textual is loaded for this command only

    run_chat(settings)
    return ExitCode.OK


def _plainly(settings: Settings, piece: str) -> int:
    # Imported here, because the plain chat loads the runtime, and the app before its first picture not.
    from edgespec.cli.keeping import News  # noqa: PLC0415
    from edgespec.cli.plain import chat_plainly  # noqa: PLC0415
    from edgespec.history.recorder import Recorder  # noqa: PLC0415
    from edgespec.history.store import History  # noqa: PLC0415

    news = News()
    keeper = Recorder(
        History.open, lambda text: news.put(text or "The history is written again."), news.put
    )
    return chat_plainly(settings, piece, keeper, news)


def _check_files(load: Load) -> None:
    """Refuse a missing or damaged file here, in the shell, before a screen opens for nothing.

    Reads headers only. Raises ModelFileProblem.
    """
    locate.check_files(load.model, load.draft)


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
    options = chat_parser("chat", "Talk to a model in the terminal.")
    options.add_argument(
        "--plain",
        nargs="?",
        choices=PIECES,
        const="paragraph",
        default=argparse.SUPPRESS,
        help="line by line without a screen, for screen readers, simple terminals and pipes; an answer "
        "is written by paragraphs, or by what is named",
    )
    return options
