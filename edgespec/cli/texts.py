"""Options that name texts to copy from."""

from __future__ import annotations

import argparse
from dataclasses import replace

from edgespec.settings import Load


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """`--corpus` and `--learn-from-history`."""
    group = parser.add_argument_group("texts to draft from")
    group.add_argument(
        "--corpus",
        action="append",
        metavar="FILE|FOLDER",
        default=argparse.SUPPRESS,
        help="let suffix, cascade and auto copy from these texts too; may be repeated",
    )
    group.add_argument(
        "--learn-from-history",
        action="store_true",
        help="let them copy from your past conversations too; nothing leaves this machine",
    )


def with_texts(load: Load, options: argparse.Namespace) -> Load:
    """`load`, and what the options say."""
    return replace(
        load,
        corpus=tuple(vars(options).get("corpus", ())),
        from_history=options.learn_from_history,
    )
