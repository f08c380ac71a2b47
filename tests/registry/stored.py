"""Put small models into a store without a pull."""

from __future__ import annotations

import hashlib
from pathlib import Path

from model_registry.inspect import check_file
from model_registry.records import ModelRecord, Source, Traits
from model_registry.store import Incoming, Store
from tests.gguf_files import byte_vocab, random_llama


def model_file(path: Path, *, seed: int = 0) -> Path:
    """A model of a few kilobytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return random_llama(path, seed=seed, vocab=byte_vocab())


def put(
    store: Store,
    path: Path,
    *,
    linked: bool = False,
    alone: bool = True,
    name: str | None = None,
    repo: str = "owner/name",
) -> ModelRecord:
    """Store a file; it is moved unless `linked`."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    commit = "c" * 40
    source = Source(
        kind="file" if linked else "hub",
        reference=str(path) if linked else f"hf:{repo}@{commit}/{path.name}",
        repo="" if linked else repo,
        revision="" if linked else commit,
        paths=(path.name,),
    )
    incoming = Incoming(
        files=((path, digest),),
        linked=linked,
        source=source,
        traits=Traits.of(check_file(path), path.name),
        licence="mit",
    )
    return store.add(incoming, name=name, alone=alone)
