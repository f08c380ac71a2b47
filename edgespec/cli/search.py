"""`edgespec search`: the catalogue, and the Hub when it can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgespec.cli import output
from edgespec.cli.models import human_size, print_json, table
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.shelf.row import has
from model_registry import catalog
from model_registry.catalog import Catalog, CatalogModel, CatalogPair
from model_registry.hub import Hub, HubProblem

if TYPE_CHECKING:
    from model_registry.hub import Found


def main(arguments: Sequence[str]) -> int:
    """Print and return the exit code. A Hub that cannot be asked is no failure."""
    options = parser().parse_args(arguments)
    text = options.text
    known = catalog.load()
    pairs = {name: one for name, one in known.pairs.items() if _matches(text, known, name, one)}
    models = {
        name: one
        for name, one in known.models.items()
        if text and has(text, name, one.repo, one.licence)
    }
    found, problem = _ask_hub(text, options.limit)
    if options.json:
        print_json(
            {
                "pairs": [_pair(known, name, one) for name, one in pairs.items()],
                "models": [
                    {"name": name, "repo": one.repo, "size": one.size, "licence": one.licence}
                    for name, one in models.items()
                ],
                "hub": [
                    {"repo": one.repo, "downloads": one.downloads, "gated": one.gated}
                    for one in found
                ],
                "gpus": {f"{memory}GB": name for memory, name in known.gpus.items()},
            }
        )
    else:
        output.answer(_text(known, pairs, models, found) or f"Nothing is known as {text!r}.\n")
    if problem:
        output.note(f"No answer from the Hub: {problem.message}")
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("search", "Look for pairs and models, here and on the Hugging Face Hub.")
    options.add_argument(
        "text", nargs="?", default="", metavar="TEXT", help="part of a name (default: all pairs)"
    )
    options.add_argument("--limit", type=int, default=10, metavar="N", help="results of the Hub")
    add_json(options)
    return options


def _ask_hub(text: str, limit: int) -> tuple[list[Found], HubProblem | None]:
    if not text or limit < 1:
        return [], None
    try:
        found = Hub().search(text, limit)
        return [one for one in found if one.repo.isprintable()], None
    except HubProblem as problem:
        return [], problem


def _matches(text: str, known: Catalog, name: str, pair: CatalogPair) -> bool:
    target, draft = known.models[pair.target], known.models[pair.draft]
    return has(text, name, target.repo, draft.repo, target.licence, pair.use)


def _pair(known: Catalog, name: str, pair: CatalogPair) -> dict[str, Any]:
    sizes = [known.models[one].size for one in (pair.target, pair.draft)]
    licences = dict.fromkeys(known.models[one].licence for one in (pair.target, pair.draft))
    return {
        "name": name,
        "target": pair.target,
        "draft": pair.draft,
        "size": sum(size for size in sizes if size) if all(sizes) else None,
        "licences": list(licences),
        "use": pair.use,
        "confirmed": pair.confirmed,
        "gpu_gb": [memory for memory, one in known.gpus.items() if one == name],
    }


def _text(
    known: Catalog,
    pairs: dict[str, CatalogPair],
    models: dict[str, CatalogModel],
    found: Sequence[Found],
) -> str:
    blocks = []
    if pairs:
        rows = [("PAIR", "SIZE", "LICENCE", "FOR", "GPU")]
        for name, pair in pairs.items():
            facts = _pair(known, name, pair)
            size = human_size(facts["size"]) if facts["size"] else "?"
            gpu = ", ".join(f"{memory} GB" for memory in facts["gpu_gb"])
            rows.append((name, size, " + ".join(facts["licences"]), pair.use, gpu))
        blocks.append(table(rows, right=frozenset({1})))
    if models:
        rows_of_models = [("MODEL", "SIZE", "LICENCE", "REPOSITORY")]
        for name, model in models.items():
            size = human_size(model.size) if model.size else "?"
            rows_of_models.append((name, size, model.licence, model.repo))
        blocks.append(table(rows_of_models, right=frozenset({1})))
    if found:
        hub = [("ON THE HUB", "DOWNLOADS", "")]
        hub += [(f"hf:{one.repo}", str(one.downloads), "gated" * one.gated) for one in found]
        blocks.append(table(hub, right=frozenset({1})))
    return "\n".join(blocks)
