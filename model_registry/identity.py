"""Which model a file is, told in milliseconds: whoever measured it wants to know it again.

Reading gigabytes for a digest takes longer than what is to be remembered took to measure. A stored
model has a digest already. Of another file, the size, the first bytes and blocks spread over the
rest are enough to tell models, quantisations and new versions apart; it is no protection against
somebody who wants to deceive.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from model_registry.contents import Contents
from model_registry.files import StoreProblem
from model_registry.gguf import read_header
from model_registry.inspect import split_parts
from model_registry.records import ModelRecord
from model_registry.store import Store

_HEAD = 4 << 20
"""Bytes from the start: metadata and the beginning of the vocabulary, or all of it."""
_BLOCK = 64 << 10
_BLOCKS = 24


def identify(path: Path, store: Store | None = None) -> str:
    """A digest of the model that begins with `path`: another for other weights, the same for a copy.

    `store:ID` for files of the store that are as they were recorded, else `sample:...`. Raises
    GGUFError, ModelFileProblem for a set of parts that is not one, OSError as `open` does.
    """
    record = _stored(path, store or Store.default())
    return f"store:{record.id}" if record else content_digest(path)


def content_digest(path: Path) -> str:
    """The `sample:...` of `identify`, whether the file is in the store or not.

    For what travels with a file, as a head that was trained for it. Raises as `identify`.
    """
    digest = hashlib.sha256()
    for part in split_parts(path, read_header(path)):
        digest.update(_sample(part))
    return f"sample:{digest.hexdigest()[:32]}"


def _stored(path: Path, store: Store) -> ModelRecord | None:
    try:
        contents: Contents = store.read()
    except StoreProblem:
        return None  # a store that cannot be read has no say in what a file is
    real = path.resolve()
    for record in contents.models:
        if store.path(record).resolve() == real and _unchanged(store.folder(record), record):
            return record
    return None


def _unchanged(folder: Path, record: ModelRecord) -> bool:
    """Whether all files have the size and the time that they were recorded with."""
    try:
        found = [(folder / file.name).stat() for file in record.files]
    except OSError:
        return False
    return all(
        (one.st_size, one.st_mtime_ns) == (file.size, file.mtime_ns)
        for one, file in zip(found, record.files, strict=True)
    )


def _sample(path: Path) -> bytes:
    digest = hashlib.sha256()
    size = path.stat().st_size
    digest.update(size.to_bytes(8, "little"))
    with path.open("rb") as file:
        digest.update(file.read(_HEAD))
        for number in range(1, _BLOCKS + 1):
            # The last block ends with the file.
            file.seek(max(_HEAD, (size - _BLOCK) * number // _BLOCKS))
            digest.update(file.read(_BLOCK))
    return digest.digest()
