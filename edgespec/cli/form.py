"""The options that say what form an answer has."""

from __future__ import annotations

import argparse
from collections.abc import Mapping


def add_form_options(group: argparse._ArgumentGroup) -> None:
    """`--json-schema` or `--grammar`."""
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json-schema",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="answer in JSON that this JSON schema is true of",
    )
    form.add_argument(
        "--grammar",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="answer in a text that this grammar (GBNF) describes",
    )


def grammar_from(given: Mapping[str, str]) -> str | None:
    """The grammar that the options ask for, read and checked. Raises UsageError."""
    if not {"json_schema", "grammar"} & given.keys():
        return None
    from edgespec.grammar.files import read_grammar, read_schema  # noqa: PLC0415 - slow to import

    if "json_schema" in given:
        return read_schema(given["json_schema"])
    return read_grammar(given["grammar"])
