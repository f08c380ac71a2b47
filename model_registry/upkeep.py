"""Checking what is stored, and removing it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from model_registry import unfinished
from model_registry.contents import Contents
from model_registry.files import StoreProblem, explained, now, sha256_of
from model_registry.records import (
    ModelRecord,
    NewerRecordProblem,
    RecordProblem,
    StoredFile,
    load_model,
)
from model_registry.store import Store
from model_registry.unfinished import Unfinished


@dataclass(slots=True)
class Removal:
    """What `rm` did."""

    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Sentences on what stays, and why."""
    freed: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What `verify` found out about a model."""

    model: ModelRecord
    problems: tuple[str, ...]
    hashed: bool


@dataclass(frozen=True, slots=True)
class Rubbish:
    """Something that `prune` removes."""

    path: Path
    what: str
    size: int


def remove(store: Store, name: str) -> Removal:
    """Remove a pair and what only it used, a model, or an unfinished pull. Raises StoreProblem."""
    done = Removal()
    with store.locked(), explained(store.home):
        contents = store.read()
        if pair := contents.pair(name):
            store.forget_pair(pair)
            done.removed.append(f"pair {pair.name}")
            after = store.read()
            for model in dict.fromkeys((pair.target, pair.draft)):
                _remove_unused(store, after, after.with_id(model), done)
        elif found := contents.model(name):
            if users := contents.users(found.id):
                raise StoreProblem(
                    f"{found.name} stays: it belongs to the pair {', '.join(users)}.",
                    f"Remove the pair: edgespec rm {users[0]}",
                )
            _remove(store, found, done)
        elif pulls := [one for one in unfinished.listed(store) if _means(one, name)]:
            for pull in pulls:
                _remove_pull(store, pull, done)
        else:
            known = contents.names() + [pull.name for pull in unfinished.listed(store)]
            hint = f"There are {', '.join(known[:8])}." if known else "Nothing is stored yet."
            raise StoreProblem(f"Nothing called {name} is stored.", hint)
    return done


def verify(
    store: Store,
    model: ModelRecord,
    *,
    full: bool,
    on_bytes: Callable[[str, int, int], None] | None = None,
) -> Checked:
    """Compare a model's files with its record: sizes and times, or their digests if `full`.

    `on_bytes` is told a file's name, bytes hashed and its size. A digest that is right is noted in
    the record with the date.
    """
    folder = store.folder(model)
    problems: list[str] = []
    files = []
    for file in model.files:
        path = folder / file.name
        try:
            facts = path.stat()
            if facts.st_size != file.size:
                problems.append(f"{path} has {facts.st_size} bytes instead of {file.size}")
            elif full:
                tell = partial(_tell, on_bytes, file) if on_bytes else None
                if sha256_of(path, tell) != file.sha256:
                    problems.append(f"{path} does not have the content it was stored with")
            elif facts.st_mtime_ns != file.mtime_ns:
                problems.append(f"{path} was written to since it was checked (try --full)")
            files.append(replace(file, mtime_ns=facts.st_mtime_ns))
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror or error}")
    if full and not problems:
        with store.locked(), explained(store.home):
            current = store.read().model(model.id)
            if current:
                store.write(replace(current, files=tuple(files), verified_at=now()))
    return Checked(model, tuple(problems), full)


def prune(store: Store, *, dry_run: bool = False) -> list[Rubbish]:
    """Remove parts, rubbish of crashes, and models that were pulled for pairs which are gone.

    What a running pull works on is left alone.
    """
    with ExitStack() as stack, explained(store.home):
        stack.enter_context(store.locked())
        busy = _busy(store, stack)
        rubbish = [*_parts(store, busy), *_crashed(store), *_orphans(store)]
        for piece in () if dry_run else rubbish:
            if piece.path.is_dir():
                shutil.rmtree(piece.path)
            else:
                piece.path.unlink(missing_ok=True)
    return rubbish


def _tell(on_bytes: Callable[[str, int, int], None], file: StoredFile, done: int) -> None:
    on_bytes(file.name, done, file.size)


def part_lock(part: str) -> str:
    """Name of the lock that whoever writes to a part holds."""
    return part.removesuffix(".part")[:80]


def _remove_unused(store: Store, contents: Contents, model: ModelRecord, done: Removal) -> None:
    if users := contents.users(model.id):
        done.kept.append(f"{model.name} stays: the pair {', '.join(users)} uses it.")
    elif model.alone:
        done.kept.append(f"{model.name} stays: it was pulled by itself. (edgespec rm {model.name})")
    else:
        _remove(store, model, done)


def _remove(store: Store, model: ModelRecord, done: Removal) -> None:
    store.forget_model(model)
    done.removed.append(f"model {model.name}")
    if model.folder is None:
        done.freed += model.size
    else:
        done.kept.append(f"The files in {model.folder} stay: the store only linked to them.")


def _remove_pull(store: Store, pull: Unfinished, done: Removal) -> None:
    with ExitStack() as stack:
        for part, _, _ in pull.parts:
            stack.enter_context(store.lock(part_lock(part), patience=0))
        done.freed += unfinished.fetched(store, pull)
        unfinished.end(store, pull)
    done.removed.append(f"unfinished pull {pull.name}")


def _means(pull: Unfinished, name: str) -> bool:
    return name.casefold() in (pull.name.casefold(), pull.key)


def _busy(store: Store, stack: ExitStack) -> set[str]:
    """Parts that another process writes to; the locks of all others are taken."""
    busy: set[str] = set()
    parts = {path.name for path in store.partial.glob("*.part")}
    parts |= {part for pull in unfinished.listed(store) for part, _, _ in pull.parts}
    for part in sorted(parts):
        try:
            stack.enter_context(store.lock(part_lock(part), patience=0))
        except StoreProblem:
            busy.add(part)
    return busy


def _parts(store: Store, busy: set[str]) -> Iterator[Rubbish]:
    working = {
        pull.key
        for pull in unfinished.listed(store)
        if any(part in busy for part, _, _ in pull.parts)
    }
    for path in _inside(store.partial):
        if path.name in busy or path.name.partition(".")[0] in working:
            continue
        what = "unfinished download" if path.suffix == ".part" else "left of a pull"
        if path.is_dir() and path.name.startswith("derive-"):
            what = "left of a draft that was being derived"
        yield Rubbish(path, what, _size(path))


def _crashed(store: Store) -> Iterator[Rubbish]:
    for folder in _inside(store.models):
        try:
            load_model(folder / "model.json")
            broken = False
        except NewerRecordProblem:
            continue
        except (RecordProblem, OSError):
            broken = True
        if broken:
            yield Rubbish(folder, "model without a record", _size(folder))
            continue
        yield from (Rubbish(path, "left of a crash", _size(path)) for path in folder.glob(".*.tmp"))
    contents = store.read()
    kept = {f"{pair.name}.json" for pair in contents.pairs}
    kept |= {f"{pair.name}.last-used" for pair in contents.pairs}
    newer = {problem.path for problem in contents.broken if isinstance(problem, NewerRecordProblem)}
    for path in _inside(store.pairs):
        if path.name not in kept and path not in newer:
            yield Rubbish(path, "pair without its models", _size(path))


def _orphans(store: Store) -> Iterator[Rubbish]:
    contents = store.read()
    if any(isinstance(problem, NewerRecordProblem) for problem in contents.broken):
        return  # a pair that cannot be read may use any of them
    for model in contents.models:
        if not model.alone and not contents.users(model.id):
            folder = store.models / model.id
            yield Rubbish(folder, f"{model.name}, pulled for a pair that is gone", _size(folder))


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
