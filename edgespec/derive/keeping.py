"""Where a derived draft is made, and how it gets into the store, or into a file."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from edgespec.derive.recipes import Recipe
from edgespec.errors import EdgeSpecError, UsageError
from model_registry import locate
from model_registry.embedded import EMBEDDED, is_builtin
from model_registry.files import explained, sha256_of
from model_registry.inspect import check_file
from model_registry.progress import Progress
from model_registry.pull import Pull, Request
from model_registry.records import ModelRecord, PairRecord, Source, Traits, plain
from model_registry.reference import check_name
from model_registry.store import Incoming, Store, check_pair_name, free_pair_name, stem_of


@dataclass(frozen=True, slots=True)
class Target:
    """What a draft is derived from."""

    path: Path
    reference: str
    """What finds exactly it again: an id in the store, a package or a path."""
    name: str
    """For people."""
    record: ModelRecord | None


def find_target(store: Store, text: str) -> Target:
    """The target that is meant; of a pair, its target. Raises ModelFileProblem."""
    text = EMBEDDED if is_builtin(text) else text
    found = locate.find(text, with_draft=False, store=store)
    records = [one for one in found.used if isinstance(one, ModelRecord)]
    record = records[0] if records else None
    if record:
        return Target(found.target, record.id, record.name, record)
    return Target(found.target, text, stem_of(found.target.name), None)


@contextmanager
def workspace(store: Store) -> Iterator[Path]:
    """A folder for unfinished files, which goes in the end. Raises StoreProblem.

    `prune` leaves it alone as long as the lock is held, and removes it after a crash.
    """
    name = f"derive-{secrets.token_hex(4)}"
    folder = store.partial / f"{name}.part"
    try:
        with store.lock(name, patience=0):
            try:
                with explained(store.home):
                    folder.mkdir(parents=True)
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        with suppress(OSError):
            (store.locks / f"{name}.lock").unlink(missing_ok=True)


def pair_name(store: Store, target: Target, wanted: str | None) -> str:
    """What the pair is to be called: `wanted`, or the target's name, or that with something behind it.

    Raises ModelFileProblem where `wanted` is taken or cannot be a name.
    """
    contents = store.read()
    if wanted:
        check_name(wanted)
        check_pair_name(contents, wanted, target.record.id if target.record else "", "", None)
        return wanted
    own = target.record.id if target.record else ""
    return free_pair_name(contents, target.name, own, "derived")


def keep(
    store: Store,
    target: Target,
    recipe: Recipe,
    path: Path,
    name: str,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> PairRecord:
    """Store a draft, and the pair with its target; the file is moved. Raises ModelFileProblem."""
    with explained(path.parent):
        digest = sha256_of(path)
    draft = store.add(_incoming(target, recipe, path, digest), alone=False)
    for pair in store.read().pairs:
        if target.record and (pair.target, pair.draft) == (target.record.id, draft.id):
            return pair
    try:
        request = Request(reference=target.reference, draft=draft.id, name=name)
        pulled = Pull(store, hub=_no_hub, on_progress=on_progress).run(request)
        if pulled.pair is None:
            raise TypeError("a target and a draft made no pair")
        if draft.source.kind == "derived":
            # A target that was only a file has an id since it was linked.
            source = replace(draft.source, revision=pulled.pair.target)
            with store.locked(), explained(store.home):
                store.write(replace(draft, source=source))
    except BaseException:
        _forget(store, draft)
        raise
    return pulled.pair


def _incoming(target: Target, recipe: Recipe, path: Path, digest: str) -> Incoming:
    header, record = check_file(path), target.record
    licence = header.metadata.get("general.license")
    reference = shlex.quote(target.name if record else target.reference)
    return Incoming(
        files=((path, digest),),
        linked=False,
        source=Source(kind="derived", reference=f"{reference} {recipe.options}"),
        traits=Traits.of(header, path.name),
        licence=record.licence if record else plain(licence if isinstance(licence, str) else None),
        gated=record is not None and record.gated,
    )


def _forget(store: Store, draft: ModelRecord) -> None:
    """Take a draft out again that came into no pair."""
    with store.locked(), explained(store.home):
        if not store.read().users(draft.id) and not draft.alone:
            store.forget_model(draft)


def check_output(path: Path) -> Path:
    """Where a file is to be written, if it can be. Raises UsageError."""
    path = path.expanduser().absolute()
    if path.exists():
        raise UsageError(f"{path} exists already.", "Name another file, or remove it first.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}.", "Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path.parent} may not be written to.", "Name a file elsewhere.")
    return path


def deliver(path: Path, output: Path) -> None:
    """Bring a finished file to its place, whole or not at all. Raises EdgeSpecError."""
    try:
        try:
            os.replace(path, output)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            partial = output.with_name(f".{output.name}.part")
            try:
                shutil.copyfile(path, partial)
                os.replace(partial, output)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise EdgeSpecError(
            f"{output} cannot be written: {error.strerror or error}.", "Name a file elsewhere."
        ) from error


def _no_hub() -> NoReturn:
    raise TypeError("both models are here, and nothing is fetched")
