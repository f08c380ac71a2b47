"""`edgespec pair`: check that a draft fits a target, and store the two as a pair."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.cli.pull import carry_out
from edgespec.errors import UsageError
from model_registry import locate
from model_registry.problem import ModelFileProblem
from model_registry.pull import Request
from model_registry.store import Store


def main(arguments: Sequence[str]) -> int:
    """Check, store and return the exit code."""
    options = parser().parse_args(arguments)
    if options.draft in {"auto", "none", "lookup"}:
        raise UsageError(f"{options.draft!r} is no model.", "Name the draft to store.")
    with suppress(ModelFileProblem):  # what is wrong with a model is told below
        if locate.find(options.draft, role="draft").head:
            raise UsageError(
                f"{options.draft} is a drafting head, which `pair` does not store.",
                "Use it with --draft; `edgespec train` stores a head with its target.",
            )
    request = Request(reference=options.target, draft=options.draft, name=options.name)

    def elsewhere() -> NoReturn:
        raise UsageError(
            "Both models of a pair must be on this machine.",
            f"Fetch them: edgespec pull {options.target} --draft {options.draft}",
        )

    carry_out(Store.default(), request, as_json=options.json, hub=elsewhere)
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("pair", "Check that a draft fits a target, and store the two as a pair.")
    options.add_argument("target", metavar="TARGET", help="stored model, GGUF file or package:NAME")
    options.add_argument("draft", metavar="DRAFT", help="the same, of the same vocabulary")
    options.add_argument("--as", dest="name", metavar="NAME", help="what to call the pair")
    add_json(options)
    return options
