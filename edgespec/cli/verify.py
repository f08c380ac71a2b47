"""`edgespec verify`: compare the stored files with what they were when they came."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.cli import output
from edgespec.cli.models import print_json
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.cli.progress import ProgressView
from edgespec.errors import UsageError
from model_registry.contents import Contents
from model_registry.progress import Meter
from model_registry.records import ModelRecord
from model_registry.store import Store
from model_registry.upkeep import Checked, verify


def main(arguments: Sequence[str]) -> int:
    """Check and return the exit code: 1 if anything is wrong."""
    options = parser().parse_args(arguments)
    store = Store.default()
    contents = store.read()
    chosen = _chosen(contents, options.names)
    with ProgressView.for_terminal(quiet=options.json) as view:
        results = [_check(store, model, options.full, view) for model in chosen]
    if options.json:
        print_json(
            [
                {"name": one.model.name, "ok": not one.problems, "problems": list(one.problems)}
                for one in results
            ]
        )
    elif results or contents.broken:
        _print(results)
    else:
        output.answer("Nothing is stored yet, so there is nothing to verify.\n")
    for problem in contents.broken:
        output.note(f"Not checked: {problem}")
    fine = not contents.broken and not any(one.problems for one in results)
    return ExitCode.OK if fine else ExitCode.ERROR


def parser() -> Parser:
    """The options of the command."""
    options = Parser("verify", "Check stored files: sizes and times, or with --full their digests.")
    options.add_argument("names", nargs="*", metavar="NAME", help="pairs or models (default: all)")
    options.add_argument("--full", action="store_true", help="read every byte and hash it")
    add_json(options)
    return options


def _chosen(contents: Contents, names: Sequence[str]) -> list[ModelRecord]:
    if not names:
        return list(contents.models)
    chosen: dict[str, ModelRecord] = {}
    for name in names:
        pair, model = contents.pair(name), contents.model(name)
        ids = (pair.target, pair.draft) if pair else (model.id,) if model else ()
        if not ids:
            known = contents.names()[:8]
            hint = f"There are {', '.join(known)}." if known else "Nothing is stored yet."
            raise UsageError(f"Nothing called {name} is stored.", hint)
        chosen |= {one: contents.with_id(one) for one in ids}
    return list(chosen.values())


def _check(store: Store, model: ModelRecord, full: bool, view: ProgressView) -> Checked:
    meters = {file.name: Meter(file.name, file.size, view) for file in model.files}

    def tell(name: str, done: int, total: int) -> None:
        meters[name].show("hashing" if done < total else "done", done)

    return verify(store, model, full=full, on_bytes=tell)


def _print(results: Sequence[Checked]) -> None:
    for one in results:
        if not one.problems:
            how = "every byte" if one.hashed else "size and time; --full reads every byte"
            output.answer(f"{one.model.name}: as it came ({how})\n")
            continue
        output.answer(f"{one.model.name}: {'; '.join(one.problems)}\n")
        if one.model.folder is None:
            output.note(
                f"  Replace it: edgespec rm {one.model.name}, then {one.model.source.command}"
            )
