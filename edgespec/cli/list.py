"""`edgespec list`: the pairs and models on this machine. Reads records only, no model file."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.cli import output
from edgespec.cli.models import human_size, model_facts, pair_facts, print_json, table, when
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from model_registry import unfinished
from model_registry.contents import Contents
from model_registry.heads import DRAFTING
from model_registry.records import ModelRecord, PairRecord
from model_registry.store import Store

_HEAD = ("NAME", "KIND", "SIZE", "QUANT", "CONTEXT", "LICENCE", "PAIR", "LAST USED")
_RIGHT = frozenset({2, 4})


def main(arguments: Sequence[str]) -> int:
    """Print and return the exit code."""
    options = parser().parse_args(arguments)
    store = Store.default()
    contents = store.read()
    pulls = [
        (pull, here)
        for pull in unfinished.listed(store)
        if (here := unfinished.fetched(store, pull))
    ]
    if options.names:
        output.answer("".join(f"{name}\n" for name in dict.fromkeys(contents.names())))
    elif options.json:
        print_json(
            {
                "store": str(store.home),
                "pairs": [pair_facts(store, contents, pair) for pair in contents.pairs],
                "models": [model_facts(store, contents, model) for model in contents.models],
                "unfinished": [
                    {"name": pull.name, "size": pull.size, "fetched": here, "command": pull.command}
                    for pull, here in pulls
                ],
            }
        )
    else:
        output.answer(_table(store, contents))
        for pull, here in pulls:
            output.note(
                f"Unfinished: {pull.name}, {human_size(here)} of {human_size(pull.size)}. "
                f"Go on with: {pull.command}"
            )
    for problem in contents.broken:
        output.note(f"Left out: {problem}")
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("list", "Show the pairs and models on this machine.")
    options.add_argument("--names", action="store_true", help="print names only")
    add_json(options)
    return options


def _table(store: Store, contents: Contents) -> str:
    if not contents.models:
        return (
            "Nothing is stored yet: the small model that comes with EdgeSpec answers. "
            "`edgespec search` shows what can be pulled.\n"
        )
    rows: list[tuple[str, ...]] = [_HEAD]
    rows += [_pair_row(store, contents, pair) for pair in contents.pairs]
    rows += [_model_row(store, contents, model) for model in contents.models]
    return table(rows, right=_RIGHT)


def _pair_row(store: Store, contents: Contents, pair: PairRecord) -> tuple[str, ...]:
    target, draft = contents.with_id(pair.target), contents.with_id(pair.draft)
    return (
        pair.name,
        "pair" if store.intact(target) and store.intact(draft) else "pair (files gone)",
        human_size(target.size + draft.size),
        " + ".join(one.traits.quant or "?" for one in (target, draft)),
        str(target.traits.context or "?"),
        " + ".join(dict.fromkeys(one.licence or "?" for one in (target, draft))),
        f"{target.name} + {draft.name}",
        when(store.last_used(pair)),
    )


def _model_row(store: Store, contents: Contents, model: ModelRecord) -> tuple[str, ...]:
    head = model.traits.architecture in DRAFTING
    kind = "head" if head else "linked" if model.folder else "model"
    return (
        model.name,
        kind if store.intact(model) else f"{kind} (files gone)",
        human_size(model.size),
        model.traits.quant or "?",
        "-" if head else str(model.traits.context or "?"),
        model.licence or "?",
        "in " + ", ".join(users) if (users := contents.users(model.id)) else "-",
        when(store.last_used(model)),
    )
