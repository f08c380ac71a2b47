"""How a trained head gets into the store, as its target's draft, or into a file."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from edgespec.derive.keeping import Target, workspace
from edgespec.errors import EdgeSpecError
from edgespec.train.order import Kind
from model_registry.files import explained, sha256_of
from model_registry.inspect import check_file
from model_registry.progress import Progress
from model_registry.pull import Pull, Request
from model_registry.records import ModelRecord, PairRecord, Source, Traits
from model_registry.reference import check_name
from model_registry.store import Incoming, Store, check_pair_name, free_pair_name
from model_registry.trained import keep_head

Watch = Callable[[Progress], None]


def pair_name(store: Store, target: Target, kind: Kind, wanted: str | None) -> str:
    """What the pair is to be called: `wanted`, or the target's name, or that with something behind it.

    The name of a pair with an elder head of the kind is free: that is replaced. Raises ModelFileProblem
    where `wanted` is taken or cannot be a name.
    """
    contents = store.read()
    own = target.record.id if target.record else ""
    elder = _elder(store, own, kind)
    if wanted:
        check_name(wanted)
        if not elder or elder.name.casefold() != wanted.casefold():
            check_pair_name(contents, wanted, own, "", None)
        return wanted
    if elder:
        return elder.name
    return free_pair_name(contents, target.name, own, kind)


def keep(
    store: Store,
    target: Target,
    kind: Kind,
    path: Path,
    name: str,
    on_progress: Watch = lambda progress: None,
) -> PairRecord:
    """Store a copy of a head and the pair with its target, in place of an elder head of the kind.

    Raises ModelFileProblem; what was stored before is then as it was.
    """
    record = target.record or _linked(store, target, on_progress)
    with workspace(store) as folder, explained(store.home), ExitStack() as undo:
        file = folder / f"{target.name[:60]}-{kind}{path.suffix}"
        shutil.copyfile(path, file)
        with store.locked():
            elder = _elder(store, record.id, kind)
            if elder and elder.name.casefold() == name.casefold():
                store.forget_pair(elder)
                undo.callback(_put_back, store, elder)
            reference = shlex.quote(target.name if target.record else target.reference)
            if kind == "medusa":
                made = f"{kind} {reference}"
                pair = keep_head(store, record.id, file, reference=made, name=name)
            else:
                pair = _keep_gguf(store, record, file, f"{kind} {reference}", name)
            undo.pop_all()
            if elder and elder.draft != pair.draft:
                _forget_unused(store, elder.draft)
            return pair


def copied(path: Path, output: Path) -> None:
    """Bring a copy of a head to its place, whole or not at all. Raises EdgeSpecError."""
    partial = output.with_name(f".{output.name}.part")
    try:
        try:
            shutil.copyfile(path, partial)
            os.replace(partial, output)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise EdgeSpecError(
            f"{output} cannot be written: {error.strerror or error}.", "Name a file elsewhere."
        ) from error


def _linked(store: Store, target: Target, on_progress: Watch) -> ModelRecord:
    """A target that is only a file is known to the store from now on."""
    request = Request(reference=target.reference, draft="none")
    return Pull(store, on_progress=on_progress).run(request).models[0]


def _keep_gguf(
    store: Store, target: ModelRecord, path: Path, reference: str, name: str
) -> PairRecord:
    """An EAGLE-3 head is a GGUF file, with its target's own vocabulary."""
    incoming = Incoming(
        files=((path, sha256_of(path)),),
        linked=False,
        source=Source(kind="trained", reference=reference, revision=target.id),
        traits=Traits.of(check_file(path), path.name),
        licence=target.licence,
        gated=target.gated,
    )
    check_pair_name(store.read(), name, target.id, "", None)
    head = store.add(incoming, alone=False)
    verdict = "The eagle3 head was trained for exactly this model."
    return store.add_pair(name, target, head, verdict=verdict)


def _elder(store: Store, target: str, kind: Kind) -> PairRecord | None:
    """The pair of a target with a head of the kind that was trained here."""
    contents = store.read()
    for pair in contents.pairs:
        source = contents.with_id(pair.draft).source
        if pair.target == target and source.kind == "trained" and source.reference.startswith(kind):
            return pair
    return None


def _put_back(store: Store, pair: PairRecord) -> None:
    contents = store.read()
    target, draft = contents.with_id(pair.target), contents.with_id(pair.draft)
    store.add_pair(pair.name, target, draft, verdict=pair.verdict, alias=pair.alias)


def _forget_unused(store: Store, model: str) -> None:
    """Take a head out that no pair uses any more."""
    contents = store.read()
    if not contents.users(model):
        store.forget_model(contents.with_id(model))
