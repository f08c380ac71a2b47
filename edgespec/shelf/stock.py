"""The list: what is here, what was begun, the catalogue. Reads small files; only `hub_rows` asks a network.

The registry is imported where it is needed, since the schemas of the catalogue take longer to load than
the app may take to open.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgespec.shelf.row import Kind, Row

if TYPE_CHECKING:
    from model_registry.catalog import Catalog, CatalogModel
    from model_registry.contents import Contents
    from model_registry.hub import Hub
    from model_registry.records import ModelRecord, PairRecord
    from model_registry.store import Store
    from model_registry.unfinished import Unfinished

BUILTIN = "built-in"
"""What the model that comes along is called in the list."""
_NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class Stock:
    """The list, and what kept some of it out."""

    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()


def rows(text: str = "", *, store: Store | None = None) -> list[Row]:
    """What is here, then what was begun, then the catalogue, if `text` is in it. Never raises."""
    return list(stock(text, store=store).rows)


def stock(text: str = "", *, store: Store | None = None) -> Stock:
    """As `rows`, with what is wrong with the store or the user's catalogue."""
    from model_registry.store import Store  # noqa: PLC0415 - see above

    store = store or Store.default()
    problems: list[str] = []
    contents, known = _read(store, problems)
    everything = [
        *(_pair(store, contents, known, pair) for pair in contents.pairs),
        *(_model(store, contents, one) for one in contents.models if not _is_head(one)),
        *_builtin(),
        *_begun(store, known),
        *_catalogued(contents, known),
    ]
    by_key: dict[str, Row] = {}
    for row in everything:
        by_key.setdefault(row.key, row)
    return Stock(tuple(row for row in by_key.values() if row.matches(text)), tuple(problems))


def hub_rows(text: str, limit: int = 20, *, hub: Hub | None = None) -> list[Row]:
    """What the Hub knows. Asks the network; raises HubProblem."""
    from model_registry.hub import Hub  # noqa: PLC0415 - see above

    found = (hub or Hub()).search(text, limit)
    return [
        Row(
            name=one.repo,
            kind="hub",
            where="hub",
            reference=f"hf:{one.repo}",
            use=f"{one.downloads} downloads" + (", gated" if one.gated else ""),
        )
        for one in found
        if one.repo.isprintable()
    ]


def asked_by(command: str) -> tuple[str, str | None, str | None] | None:
    """Reference, draft and name that a command to pull asks for; None for another command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[:2] != ["edgespec", "pull"] or len(words) < 3:
        return None
    options = dict(zip(words[3::2], words[4::2], strict=False))
    return words[2], options.get("--draft"), options.get("--as")


def pair_row(known: Catalog, name: str) -> Row:
    """A pair of the catalogue. Raises KeyError."""
    pair = known.pairs[name]
    return _entry(name, "pair", [known.models[one] for one in (pair.target, pair.draft)], pair.use)


def is_here(contents: Contents, name: str, entry: CatalogModel) -> ModelRecord | None:
    """A model of the catalogue in the store, under whatever name."""
    from model_registry.store import model_id  # noqa: PLC0415 - see above

    by_content = contents.model(model_id(entry.digests)) if entry.digests else None
    return by_content or contents.model(name)


def licences(texts: Iterable[str | None]) -> str:
    """Those of several models as one text."""
    return " + ".join(dict.fromkeys(text or _NOT_STATED for text in texts))


def _read(store: Store, problems: list[str]) -> tuple[Contents, Catalog | None]:
    from model_registry import catalog  # noqa: PLC0415 - see above
    from model_registry.contents import Contents  # noqa: PLC0415
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415

    contents, known = Contents((), (), ()), None
    try:
        contents = store.read()
    except ModelFileProblem as problem:
        problems.append(str(problem))
    problems += [str(one) for one in contents.broken]
    try:
        known = catalog.load()
    except ModelFileProblem as problem:
        problems.append(str(problem))
    return contents, known


def _pair(store: Store, contents: Contents, known: Catalog | None, pair: PairRecord) -> Row:
    members = [contents.with_id(one) for one in (pair.target, pair.draft)]
    entry = known.pairs.get(pair.alias or "") if known else None
    return Row(
        name=pair.name,
        kind="pair",
        where="here",
        reference=pair.name,
        sizes=tuple(one.size for one in members),
        use=entry.use if entry else " + ".join(one.name for one in members),
        licence=licences(one.licence for one in members),
        whole=all(map(store.intact, members)),
    )


def _is_head(model: ModelRecord) -> bool:
    """Whether it is nothing to talk to, and of use with its target only."""
    from model_registry.heads import DRAFTING  # noqa: PLC0415 - see above

    return model.traits.architecture in DRAFTING


def _model(store: Store, contents: Contents, model: ModelRecord) -> Row:
    pairs = ", ".join(contents.users(model.id))
    return Row(
        name=model.name,
        kind="model",
        where="here",
        # As a name it would mean the pair that is called the same.
        reference=model.id if contents.pair(model.name) else model.name,
        sizes=(model.size,),
        use=", ".join(filter(None, [model.traits.quant, f"in {pairs}" if pairs else ""])),
        licence=model.licence or _NOT_STATED,
        whole=store.intact(model),
    )


def _builtin() -> Iterator[Row]:
    from model_registry.embedded import EMBEDDED, locate  # noqa: PLC0415 - see above
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415

    try:
        path = locate(EMBEDDED)
        size = path.stat().st_size
    except (ModelFileProblem, OSError):
        return
    yield Row(
        name=BUILTIN,
        kind="builtin",
        where="here",
        reference=EMBEDDED,
        sizes=(size,),
        use="quick, knows little",
        licence="apache-2.0",
    )


def _begun(store: Store, known: Catalog | None) -> Iterator[Row]:
    """Pulls that were begun and not ended, by this program or another."""
    from model_registry import unfinished  # noqa: PLC0415 - see above

    for pull in unfinished.listed(store):
        asked, here = asked_by(pull.command), unfinished.fetched(store, pull)
        if asked and here:
            yield _unfinished(pull, asked, here, known)


def _unfinished(
    pull: Unfinished, asked: tuple[str, str | None, str | None], here: int, known: Catalog | None
) -> Row:
    reference, draft, called = asked
    entry = known.pairs.get(reference.casefold()) if known else None
    sizes: tuple[int | None, ...] = (pull.size,)
    if known and entry:
        both = tuple(known.models[one].size for one in (entry.target, entry.draft))
        sizes = both if all(both) else sizes
    return Row(
        name=pull.name,
        kind="pair" if entry else "model",
        where="unfinished",
        reference=reference,
        sizes=sizes,
        use=entry.use if entry else "",
        draft=draft,
        called=called,
        done=here,
    )


def _catalogued(contents: Contents, known: Catalog | None) -> Iterator[Row]:
    """What the catalogue has and the store has not."""
    if known is None:
        return
    aliases = {pair.alias for pair in contents.pairs}
    yield from (pair_row(known, name) for name in known.pairs if name not in aliases)
    for name, model in known.models.items():
        if not is_here(contents, name, model):
            yield _entry(name, "model", [model], model.family or "")


def _entry(name: str, kind: Kind, models: list[CatalogModel], use: str) -> Row:
    return Row(
        name=name,
        kind=kind,
        where="catalogue",
        reference=name,
        sizes=tuple(one.size for one in models),
        use=use,
        licence=licences(one.licence for one in models),
    )
