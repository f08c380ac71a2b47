"""From what a person writes as a model to the files it means, without ever asking the network."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from model_registry import catalog
from model_registry.contents import Contents
from model_registry.embedded import BUILTIN, EMBEDDED, is_builtin, locate
from model_registry.heads import is_head, read_card
from model_registry.inspect import check_exists, check_file
from model_registry.problem import ModelFileProblem
from model_registry.quants import Role
from model_registry.records import ModelRecord, PairRecord
from model_registry.reference import HubRef, NameRef, PackageRef, PathRef, parse
from model_registry.store import Store, model_id


@dataclass(frozen=True, slots=True)
class Located:
    """Files of a model, and of what is stored to draft for it."""

    target: Path
    draft: Path | None = None
    """A draft model; None unless a pair was named that has one."""
    head: Path | None = None
    """A drafting head: of the pair that was named, or the file itself that was."""
    used: tuple[ModelRecord | PairRecord, ...] = ()
    store: Store | None = None

    def mark_used(self) -> None:
        """Note down in the store that it was loaded now."""
        for record in self.used:
            if self.store:
                self.store.mark_used(record)


def find(
    text: str | None,
    *,
    role: Role = "target",
    with_draft: bool = True,
    store: Store | None = None,
) -> Located:
    """What a reference means on this machine; None stands for the embedded model.

    As a target, a name means a pair before a model; as a draft, the other way round. The files are
    there, the pair's own draft only if `with_draft`; what they hold is not looked at. Raises
    ModelFileProblem.
    """
    if text is None or text.casefold() == BUILTIN:
        return Located(locate(EMBEDDED))
    reference = parse(text)
    match reference:
        case PathRef(path):
            check_exists(path)
            return _located(path)
        case PackageRef(name):
            return Located(locate(name))
    store = store or Store.default()
    contents = store.read()
    if isinstance(reference, HubRef):
        return _models(store, _from_hub(contents, reference))
    name = reference.name
    pair, model = contents.pair(name), contents.model(name)
    if pair and (role == "target" or model is None):
        return _pair(store, contents, pair, with_draft)
    model = model or _under_another_name(contents, name.casefold())
    # A pair or a model that is stored under the embedded one's name comes before it.
    if not model and not is_builtin(name):
        raise unknown_name(reference, contents)
    return _models(store, model) if model else Located(locate(EMBEDDED))


def check_files(model: str | None, draft: str | None) -> None:
    """Raise ModelFileProblem where the files of a target or of its draft are missing or damaged, by their
    headers. None stands for the embedded model, and for the draft that is stored with the target.
    """
    check_file(find(model, with_draft=draft is None).target)
    if draft in {None, "none", "lookup"}:
        return
    found = find(draft, role="draft")
    if found.head:
        read_card(found.head)
    else:
        check_file(found.target)


def matching(contents: Contents, reference: HubRef) -> list[ModelRecord]:
    """Stored models that came from where a reference points to."""
    return [
        model
        for model in contents.models
        if model.source.kind == "hub"
        and model.source.repo.casefold() == reference.repo.casefold()
        and (not reference.revision or model.source.revision.startswith(reference.revision))
        and (not reference.quant or _same_quant(model.traits.quant, reference.quant))
        and (
            not reference.file
            or any(_same_file(path, reference.file) for path in model.source.paths)
        )
    ]


def unknown_name(reference: NameRef, contents: Contents) -> ModelFileProblem:
    """Why a name leads to nothing in the store, and what to do."""
    known = catalog.load()
    name = reference.name.casefold()
    if name in known.pairs or name in known.models:
        return ModelFileProblem(
            f"{reference.name} is in the catalogue, but not on this machine yet.",
            f"Fetch it first: edgespec pull {name}",
        )
    names = {one.casefold(): one for one in [*contents.names(), *known.pairs, *known.models]}
    near = [names[one] for one in get_close_matches(name, names, n=3)]
    return ModelFileProblem(
        f"Nothing here is called {reference.name}: no stored pair or model, no catalogue entry, "
        "and no file.",
        f"Did you mean {' or '.join(near)}?"
        if near
        else "`edgespec list` shows what is stored, `edgespec search` what can be pulled.",
    )


def _under_another_name(contents: Contents, name: str) -> ModelRecord | None:
    """A model of the catalogue that is stored, but was given a name of its own."""
    entry = catalog.load().models.get(name)
    return contents.model(model_id(entry.digests)) if entry and entry.digests else None


def _from_hub(contents: Contents, reference: HubRef) -> ModelRecord:
    found = matching(contents, reference)
    if len(found) == 1:
        return found[0]
    if found:
        raise ModelFileProblem(
            f"{len(found)} stored models come from {reference}.",
            f"Name one of them: {', '.join(model.name for model in found)}.",
        )
    raise ModelFileProblem(
        f"{reference} is not on this machine yet.", f"Fetch it first: edgespec pull {reference}"
    )


def _same_quant(stored: str, wanted: str) -> bool:
    return stored.casefold().removeprefix("ud-") == wanted.casefold().removeprefix("ud-")


def _same_file(stored: str, wanted: str) -> bool:
    return wanted.casefold() in (stored.casefold(), stored.rpartition("/")[2].casefold())


def _pair(store: Store, contents: Contents, pair: PairRecord, with_draft: bool) -> Located:
    target, draft = contents.with_id(pair.target), contents.with_id(pair.draft)
    if not with_draft:
        return Located(_file(store, target), used=(pair, target), store=store)
    path = _file(store, draft)
    head = path if is_head(path) else None
    return Located(
        _file(store, target),
        None if head else path,
        head,
        used=(pair, target, draft),
        store=store,
    )


def _models(store: Store, model: ModelRecord) -> Located:
    return _located(_file(store, model), (model,), store)


def _located(path: Path, used: tuple[ModelRecord, ...] = (), store: Store | None = None) -> Located:
    return Located(path, head=path if is_head(path) else None, used=used, store=store)


def _file(store: Store, model: ModelRecord) -> Path:
    path = store.path(model)
    if store.intact(model):
        return path
    linked = f"The store only links to it. Put it back, or run: edgespec rm {model.name}"
    verb = "Make" if model.source.kind in {"derived", "trained"} else "Fetch"
    again = f"{verb} it again: {model.source.command}"
    raise ModelFileProblem(
        f"{model.name} is in the store, but its file {path} is gone or has another size.",
        linked if model.folder else again,
    )
