"""`edgespec show`: all that is known about a stored pair or model, or about one in the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgespec.cli import output
from edgespec.cli.models import human_size, model_facts, pair_facts, print_json
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from model_registry import catalog
from model_registry.catalog import Catalog
from model_registry.contents import Contents
from model_registry.embedded import BUILTIN, EMBEDDED, is_builtin, locate
from model_registry.heads import DRAFTING, about_of
from model_registry.inspect import check_file
from model_registry.locate import unknown_name
from model_registry.problem import ModelFileProblem
from model_registry.records import ModelRecord, Traits
from model_registry.reference import NameRef
from model_registry.store import Store


def main(arguments: Sequence[str]) -> int:
    """Print and return the exit code."""
    options = parser().parse_args(arguments)
    facts = _facts(options.name)
    if options.json:
        print_json(facts)
    else:
        output.answer("\n".join(_lines(facts, "")) + "\n")
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("show", "Show all that is known about a pair or a model.")
    options.add_argument("name", metavar="NAME", help="stored or in the catalogue")
    add_json(options)
    return options


def _facts(name: str) -> dict[str, Any]:
    store = Store.default()
    contents = store.read()
    if pair := contents.pair(name):
        members = [contents.with_id(model) for model in (pair.target, pair.draft)]
        facts = {"kind": "pair", "stored": True, **pair_facts(store, contents, pair)}
        return facts | {"models": [_model(store, contents, model) for model in members]}
    if model := contents.model(name):
        kind = "head" if model.traits.architecture in DRAFTING else "model"
        return {"kind": kind, "stored": True, **_model(store, contents, model)}
    known = catalog.load()
    folded = name.casefold()
    if entry := known.pairs.get(folded):
        return {
            "kind": "pair",
            "stored": False,
            "name": folded,
            **entry.model_dump(),
            "pull": f"edgespec pull {folded}",
            "models": [_entry(known, one) for one in (entry.target, entry.draft)],
        }
    if folded in known.models:
        return {"kind": "model", "stored": False, **_entry(known, folded)}
    if is_builtin(name):
        return _builtin()
    raise unknown_name(NameRef(name), contents)


def _builtin() -> dict[str, Any]:
    """The model that comes with the installation, which no record is about."""
    path = locate(EMBEDDED)
    traits = Traits.of(check_file(path), path.name)
    return {
        "kind": "model",
        "stored": False,
        "name": BUILTIN,
        "size": path.stat().st_size,
        "quant": traits.quant,
        "architecture": traits.architecture,
        "context": traits.context,
        "vocabulary": {"tokenizer": traits.tokenizer, "tokens": traits.tokens},
        "path": str(path),
    }


def _model(store: Store, contents: Contents, model: ModelRecord) -> dict[str, Any]:
    """A model's facts; of a head also what its file says."""
    facts = model_facts(store, contents, model)
    if model.traits.architecture not in DRAFTING:
        return facts
    try:
        about = about_of(store.path(model))
    except ModelFileProblem:
        return facts  # `complete` says that files are gone
    if about is None:
        return facts
    return {**facts, "targets": [one.name for one in about.targets], "training": {**about.training}}


def _entry(known: Catalog, name: str) -> dict[str, Any]:
    model = known.models[name]
    return {"name": name, "size": model.size, **model.model_dump(exclude_none=True)}


def _lines(facts: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in facts.items():
        label = f"{indent}{key.replace('_', ' ')}:"
        match value:
            case dict():
                lines += [label, *_lines(value, indent + "  ")]
            case [dict(), *_]:
                for number, item in enumerate(value, start=1):
                    lines += [f"{label[:-1]} {number}:", *_lines(item, indent + "  ")]
            case list() | tuple():
                lines.append(f"{label} {', '.join(map(str, value)) or '-'}")
            case _:
                lines.append(f"{label} {_value(key, value)}")
    return lines


def _value(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "size" and isinstance(value, int):
        return f"{human_size(value)} ({value} bytes)"
    return "-" if value is None or value == "" else str(value)
