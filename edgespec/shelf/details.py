"""All that is known about a row without asking anybody, as lines. Call it in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgespec.shelf.orders import members
from edgespec.shelf.row import Row

if TYPE_CHECKING:
    from model_registry.catalog import Catalog
    from model_registry.contents import Contents
    from model_registry.records import ModelRecord
    from model_registry.store import Store

_DIGITS = 12
"""Of a digest: enough to compare by eye."""


def details(row: Row, *, store: Store | None = None) -> list[str]:
    """Lines for a person. Raises ModelFileProblem where store or catalogue cannot be read."""
    from model_registry import catalog  # noqa: PLC0415 - the app opens first
    from model_registry.store import Store  # noqa: PLC0415

    store = store or Store.default()
    lines = [row.fit.why] if row.fit.why else []
    if row.where == "hub":
        return [*lines, f"{row.reference}: {row.use}.", "Enter asks the Hub for its files."]
    contents = store.read()
    if row.kind == "pair" and (pair := contents.pair(row.reference)):
        lines += [pair.verdict, ""]
    for model in members(row, store):
        lines += _stored(store, contents, model)
    if row.kind == "builtin":
        lines += _builtin(row)
    elif row.where != "here":
        lines += _known(catalog.load(), row)
    return lines


def _stored(store: Store, contents: Contents, model: ModelRecord) -> list[str]:
    from model_registry.sizes import human_size  # noqa: PLC0415 - the app opens first

    traits = model.traits
    used = store.last_used(model)
    facts = {
        "size": human_size(model.size),
        "quantisation": traits.quant or "not stated",
        "architecture": traits.architecture,
        "context": f"{traits.context or '?'} tokens",
        "vocabulary": f"{traits.tokens or '?'} tokens, {traits.tokenizer}",
        "licence": model.licence or "not stated",
        "source": model.source.command
        if model.source.kind in {"derived", "trained"}
        else model.source.reference,
        "pairs": ", ".join(contents.users(model.id)) or "none",
        "folder": str(store.folder(model)) + (" (linked)" if model.folder else ""),
        "fetched": _day(model.pulled_at),
        "verified": _day(model.verified_at),
        "last used": f"{used.astimezone():%Y-%m-%d %H:%M}" if used else "never",
    }
    lines = [model.name, *(f"  {name}: {text}" for name, text in facts.items())]
    lines += [
        f"  {file.name}: {human_size(file.size)}, SHA-256 {file.sha256[:_DIGITS]}…"
        for file in model.files
    ]
    return [*lines, ""]


def _known(known: Catalog, row: Row) -> list[str]:
    from model_registry.sizes import human_size  # noqa: PLC0415 - the app opens first

    pair = known.pairs.get(row.key)
    lines = [f"{pair.use}. Confirmed: {pair.confirmed}.", ""] if pair else []
    for name in (pair.target, pair.draft) if pair else (row.key,):
        entry = known.models.get(name)
        if entry is None:
            continue
        size = human_size(entry.size) if entry.size else "known when the Hub is asked"
        lines += [
            name,
            f"  size: {size}",
            f"  licence: {entry.licence}",
            f"  source: hf:{entry.repo}" + (f"@{entry.commit[:_DIGITS]}" if entry.commit else ""),
        ]
        if entry.quant:
            lines.append(f"  quantisation: {entry.quant}")
        lines += [
            f"  {file.path}: {human_size(file.size)}"
            + (f", SHA-256 {file.sha256[:_DIGITS]}…" if file.sha256 else "")
            for file in entry.files
        ]
        lines.append("")
    return lines or [f"pull {row.reference}"]


def _builtin(row: Row) -> list[str]:
    from model_registry import locate  # noqa: PLC0415 - the app opens first
    from model_registry.sizes import human_size  # noqa: PLC0415

    path = locate.find(row.reference).target
    return [f"{path.name}: {human_size(row.size or 0)}", f"  licence: {row.licence}", f"  {path}"]


def _day(moment: str) -> str:
    return moment.partition("T")[0]
