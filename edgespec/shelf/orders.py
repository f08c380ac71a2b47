"""What acting on a row would do, in sentences, before it is done; and doing it. Call it in a thread."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgespec.shelf.row import Row
from edgespec.shelf.stock import asked_by, is_here, licences

if TYPE_CHECKING:
    from pathlib import Path

    from model_registry.contents import Contents
    from model_registry.hub import Hub
    from model_registry.pairing import PairVerdict
    from model_registry.pull import Request
    from model_registry.records import ModelRecord
    from model_registry.store import Store
    from model_registry.unfinished import Unfinished
    from model_registry.upkeep import Removal


@dataclass(frozen=True, slots=True)
class Quote:
    """What a pull would bring."""

    row: Row
    """With the sizes and the licence that are known by now."""
    comes: tuple[tuple[str, str, int], ...]
    """Models to fetch: role, name and bytes."""
    there: tuple[str, ...]
    """Models of it that are here already."""
    free: int
    """Bytes that the store's disk has left."""
    gated: bool = False

    @property
    def size(self) -> int:
        """Bytes to fetch."""
        return sum(size for _, _, size in self.comes)

    def lines(self) -> list[str]:
        """For a person to decide by."""
        from model_registry.download import MARGIN  # noqa: PLC0415 - the app opens first
        from model_registry.sizes import human_size  # noqa: PLC0415

        text = [f"{role}: {name}, {human_size(size)}" for role, name, size in self.comes]
        text += [f"here already: {name}" for name in self.there]
        room = f"{human_size(self.size)} to come; the disk has {human_size(self.free)} free"
        enough = self.size + MARGIN <= self.free
        text.append(f"{room}." if enough else f"{room}: not enough.")
        text.append(f"Licence: {self.row.licence or 'not stated'}.")
        if self.gated:
            text.append("Gated: only for those who accepted its terms, with a token (HF_TOKEN).")
        return text


def quote(row: Row, *, store: Store | None = None, hub: Callable[[], Hub] | None = None) -> Quote:
    """What a pull of the row would bring. Asks the Hub for what the catalogue does not know.

    Raises ModelFileProblem.
    """
    from model_registry.hub import Hub  # noqa: PLC0415 - the app opens first
    from model_registry.sources import Finder  # noqa: PLC0415
    from model_registry.store import Store  # noqa: PLC0415

    store = store or Store.default()
    finder = Finder(store, hub or Hub, lambda text: None)
    pair = finder.catalog.pairs.get(row.key)
    names = [pair.target, pair.draft] if pair else [row.key]
    comes: list[tuple[str, str, int]] = []
    there: list[str] = []
    found: list[str | None] = []
    gated = False
    for role, name in zip(("model", "draft"), names, strict=False):
        entry = finder.catalog.models.get(name)
        record = is_here(finder.contents, name, entry) if entry else None
        if entry and record and store.intact(record):
            there.append(record.name)
            found.append(entry.licence)
        elif entry and entry.size:
            comes.append((role, name, entry.size))
            found.append(entry.licence)
        else:
            wanted = finder.from_catalog(name) if entry else finder.find(row.reference, "target")
            gated = gated or wanted.gated
            found.append(wanted.licence)
            if wanted.record:
                there.append(wanted.record.name)
            else:
                comes.append((role, wanted.label, wanted.size))
    sizes = tuple(size for _, _, size in comes) if not there else row.sizes
    known = replace(row, licence=licences(found), sizes=sizes)
    return Quote(known, tuple(comes), tuple(there), _free(store), gated)


def request_of(row: Row) -> Request:
    """What to ask `model_registry.pull` for."""
    from model_registry.pull import Request  # noqa: PLC0415 - the app opens first

    return Request(reference=row.reference, draft=row.draft, name=row.called)


def begun(row: Row, store: Store) -> Unfinished | None:
    """The unfinished pull that this row would go on with."""
    from model_registry import unfinished  # noqa: PLC0415 - the app opens first

    asked = (row.reference, row.draft, row.called)
    same = (pull for pull in unfinished.listed(store) if asked_by(pull.command) == asked)
    return next(same, None)


def removal(row: Row, *, store: Store | None = None) -> list[str]:
    """What removing the row would take and leave. Raises StoreProblem where it cannot be removed."""
    from model_registry.files import StoreProblem  # noqa: PLC0415 - the app opens first
    from model_registry.sizes import human_size  # noqa: PLC0415
    from model_registry.store import Store  # noqa: PLC0415

    store = store or Store.default()
    if row.where == "unfinished":
        return [f"{human_size(row.done)} that have come are thrown away."]
    contents = store.read()
    if row.kind == "pair" and (pair := contents.pair(row.reference)):
        ids = dict.fromkeys((pair.target, pair.draft))
        return [_goes(contents, contents.with_id(one), pair.name) for one in ids]
    model = contents.model(row.reference)
    if model is None:
        raise StoreProblem(f"{row.name} is not in the store.", "Nothing has to be removed.")
    if users := contents.users(model.id):
        raise StoreProblem(
            f"{model.name} stays: it belongs to the pair {', '.join(users)}.",
            "Remove the pair instead.",
        )
    return [_goes(contents, model, "")]


def remove(row: Row, *, store: Store | None = None) -> Removal:
    """Remove a stored pair or model, or what has come of an unfinished pull. Raises StoreProblem."""
    from model_registry import upkeep  # noqa: PLC0415 - the app opens first
    from model_registry.store import Store  # noqa: PLC0415

    store = store or Store.default()
    if row.where == "here":
        return upkeep.remove(store, row.reference)
    pull = begun(row, store)
    return upkeep.remove(store, pull.key) if pull else upkeep.Removal()


def verify(row: Row, on_share: Callable[[float], None], *, store: Store | None = None) -> list[str]:
    """Read every byte and compare; what is wrong, nothing if all is as it came.

    `on_share` is told how much of it is done, from 0 to 1, and may raise to stop. Raises StoreProblem.
    """
    from model_registry import upkeep  # noqa: PLC0415 - the app opens first
    from model_registry.store import Store  # noqa: PLC0415

    store = store or Store.default()
    models = members(row, store)
    whole = max(sum(one.size for one in models), 1)
    before = 0
    problems: list[str] = []
    for model in models:
        done: dict[str, int] = {}

        def tell(
            name: str, count: int, _size: int, done: dict[str, int] = done, before: int = before
        ) -> None:
            done[name] = count
            on_share((before + sum(done.values())) / whole)

        problems += upkeep.verify(store, model, full=True, on_bytes=tell).problems
        before += model.size
    return problems


def members(row: Row, store: Store) -> list[ModelRecord]:
    """The stored models of a row. Raises StoreProblem."""
    contents = store.read()
    if row.kind == "pair" and (pair := contents.pair(row.reference)):
        return [contents.with_id(one) for one in dict.fromkeys((pair.target, pair.draft))]
    model = contents.model(row.reference)
    return [model] if model else []


def can_draft(target: str | None, row: Row) -> PairVerdict:
    """Whether a model that is here can draft for another, by their headers. Raises ModelFileProblem."""
    from model_registry import locate, vocabulary  # noqa: PLC0415 - the app opens first
    from model_registry.gguf import GGUFError  # noqa: PLC0415
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415

    main = locate.find(target, with_draft=False).target
    draft = locate.find(row.reference, role="draft").target
    if main.resolve() == draft.resolve():
        raise ModelFileProblem(f"{row.name} is the model that answers.", "Choose a smaller one.")
    try:
        return vocabulary.check_pair(vocabulary.read(main), vocabulary.read(draft))
    except (GGUFError, OSError, ValueError) as error:
        raise ModelFileProblem(f"{row.name} cannot be compared: {error}", "Verify it.") from error


def _goes(contents: Contents, model: ModelRecord, pair: str) -> str:
    """What becomes of a model when `pair`, or it alone, is removed."""
    from model_registry.sizes import human_size  # noqa: PLC0415 - the app opens first

    others = [name for name in contents.users(model.id) if name != pair]
    if others:
        return f"{model.name} stays: the pair {', '.join(others)} uses it."
    if pair and model.alone:
        return f"{model.name} stays: it was fetched by itself."
    if model.folder:
        return f"{model.name} is forgotten; its files in {model.folder} stay."
    return f"{model.name} goes: {human_size(model.size)}."


def _free(store: Store) -> int:
    place: Path = store.home
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free
