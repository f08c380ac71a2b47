"""`edgespec personas`: who can answer, where each comes from, and what each sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgespec.cli import output
from edgespec.cli.models import print_json, table
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.errors import UsageError
from edgespec.persona_file import dump
from edgespec.personas import Persona, Personas, load_all, user_folder


def main(arguments: Sequence[str]) -> int:
    """Print and return the exit code."""
    options = parser().parse_args(arguments)
    if options.what != "show" and options.name is not None:
        raise UsageError(
            f"`{options.what}` takes no name.",
            f"Did you mean: edgespec personas show {options.name}",
        )
    if options.what == "path":
        _print_path(as_json=options.json)
    elif options.what == "show":
        _print_one(load_all(), options.name, as_json=options.json)
    else:
        _print_all(load_all(), names_only=options.names, as_json=options.json)
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        "personas",
        "list: who can answer; `--persona NAME` of run and chat takes one. show NAME: all of one, as "
        "the file that a persona of your own is. path: the folder for those, NAME.yaml each.",
    )
    options.add_argument(
        "what",
        nargs="?",
        choices=("list", "show", "path"),
        default="list",
        metavar="list|show|path",
        help="what to print",
    )
    options.add_argument("name", nargs="?", metavar="NAME", help="which one to show")
    options.add_argument("--names", action="store_true", help="print names only")
    add_json(options)
    return options


def _print_path(*, as_json: bool) -> None:
    folder = user_folder()
    if as_json:
        print_json({"path": str(folder), "exists": folder.is_dir()})
    else:
        output.answer(f"{folder}\n")


def _print_one(personas: Personas, name: str | None, *, as_json: bool) -> None:
    if name is None:
        raise UsageError("No persona is named.", f"Choose one of {', '.join(personas.found)}.")
    persona = personas.named(name)
    if as_json:
        print_json(_facts(persona))
    else:
        output.answer(f"# {persona.name}, from: {persona.source}\n{dump(persona)}")


def _print_all(personas: Personas, *, names_only: bool, as_json: bool) -> None:
    found = personas.found.values()
    if names_only:
        output.answer("".join(f"{persona.name}\n" for persona in found))
        return
    if as_json:
        facts = [_facts(persona) for persona in found]
        print_json({"personas": facts, "problems": list(personas.problems)})
    else:
        rows = [(one.name, one.about, one.pair or "", one.source) for one in found]
        output.answer(table([("NAME", "ABOUT", "PREFERS", "FROM"), *rows]))
    for problem in personas.problems:
        output.note(f"Left out: {problem}")


def _facts(persona: Persona) -> dict[str, Any]:
    """For JSON. The keys are a published format."""
    return {
        "name": persona.name,
        "title": persona.title,
        "about": persona.about,
        "system": persona.system,
        "sampling": dict(persona.sampling),
        "pair": persona.pair,
        "source": persona.source,
    }
