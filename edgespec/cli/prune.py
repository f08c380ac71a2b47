"""`edgespec prune`: remove unfinished downloads and what crashes left behind."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.cli import output
from edgespec.cli.models import human_size, print_json
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from model_registry.store import Store
from model_registry.upkeep import prune


def main(arguments: Sequence[str]) -> int:
    """Remove and return the exit code."""
    options = parser().parse_args(arguments)
    rubbish = prune(Store.default(), dry_run=options.dry_run)
    freed = sum(piece.size for piece in rubbish)
    if options.json:
        print_json(
            {
                "removed": [
                    {"path": str(one.path), "what": one.what, "size": one.size} for one in rubbish
                ],
                "freed": freed,
                "dry_run": options.dry_run,
            }
        )
        return ExitCode.OK
    for piece in rubbish:
        output.answer(f"{piece.path}: {piece.what}, {human_size(piece.size)}\n")
    verb = "would be freed" if options.dry_run else "freed"
    output.answer(f"{human_size(freed)} {verb}.\n" if rubbish else "There is nothing to remove.\n")
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        "prune", "Remove unfinished downloads, rubbish, and models of pairs that are gone."
    )
    options.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    add_json(options)
    return options
