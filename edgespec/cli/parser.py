"""The parser that all commands share. Loads nothing but argparse."""

from __future__ import annotations

import argparse
from typing import NoReturn

from edgespec.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse whose errors are ours, and which takes no abbreviations: they break with new options."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(
            prog=f"edgespec {command}",
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and leaving."""
        raise UsageError(
            f"{message[:1].upper()}{message[1:]}.", f"`{self.prog} --help` lists the options."
        )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, which all commands on models have."""
    parser.add_argument("--json", action="store_true", help="print JSON")
