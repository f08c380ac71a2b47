"""`edgespec rm`: remove pairs, models and unfinished pulls, and say what stays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from edgespec.cli import output
from edgespec.cli.models import human_size, print_json
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from model_registry.store import Store
from model_registry.upkeep import Removal, remove


def main(arguments: Sequence[str]) -> int:
    """Remove and return the exit code; the first name that fails ends it."""
    options = parser().parse_args(arguments)
    store = Store.default()
    total = Removal()
    try:
        for name in options.names:
            done = remove(store, name)
            total.removed += done.removed
            total.kept += done.kept
            total.freed += done.freed
            if not options.json:
                _print(done)
    finally:
        if options.json:
            print_json(dataclasses.asdict(total))
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("rm", "Remove a pair and what only it uses, a model, or an unfinished pull.")
    options.add_argument("names", nargs="+", metavar="NAME", help="as `edgespec list` shows it")
    add_json(options)
    return options


def _print(done: Removal) -> None:
    output.answer(f"Removed {', '.join(done.removed)}: {human_size(done.freed)} freed.\n")
    output.answer("".join(f"{sentence}\n" for sentence in done.kept))
