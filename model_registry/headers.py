"""Headers of models that are not here yet: the first megabytes of a file, asked for by Range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model_registry import vocabulary
from model_registry.gguf import GGUFError, GGUFHeader, GGUFTruncatedError, parse_header, read_header
from model_registry.pairing import Vocabulary
from model_registry.problem import ModelFileProblem
from model_registry.shape import Shape, shape_of
from model_registry.sources import Wanted
from model_registry.store import Store

if TYPE_CHECKING:
    from model_registry.hub import Hub, RemoteFile

Head = tuple[GGUFHeader, Vocabulary]

_FIRST = 8 << 20
"""Bytes; a vocabulary of 150 000 tokens with its merges takes six million."""
_MOST = 64 << 20
_PART = 1 << 20
"""Bytes; later parts of a model have no vocabulary."""


def head_of(wanted: Wanted, store: Store, hub: Hub | None) -> Head | None:
    """Header and vocabulary of a model, wherever it is; None if the server gives no first bytes.

    Raises ModelFileProblem for a file that is no model.
    """
    if wanted.remote:
        return None if hub is None else _remote(hub, wanted.remote[0])
    path = store.path(wanted.record) if wanted.record else wanted.local[0]
    try:
        return vocabulary.read(path)
    except GGUFError as error:
        raise ModelFileProblem(f"{path} cannot be used. {error}", "Give another file.") from error
    except OSError as error:
        raise ModelFileProblem(
            f"{path} cannot be read: {error.strerror or error}.", "Check the path and the disk."
        ) from error


def shape_at(wanted: Wanted, store: Store, hub: Hub | None) -> Shape | None:
    """The numbers that a model's memory follows from; None if the server gives no first bytes.

    Raises ModelFileProblem for a file that is no model.
    """
    head = head_of(wanted, store, hub)
    if head is None:
        return None
    label = wanted.label.removesuffix(".gguf")
    if wanted.remote and hub is not None:
        later = [parse_header(hub.head_bytes(file, _PART)) for file in wanted.remote[1:]]
        return shape_of([head[0], *later], [file.size for file in wanted.remote], label)
    paths = wanted.local
    if wanted.record:
        folder = store.folder(wanted.record)
        paths = tuple(folder / file.name for file in wanted.record.files)
    headers = [head[0], *(read_header(path) for path in paths[1:])]
    return shape_of(headers, [path.stat().st_size for path in paths], label)


def _remote(hub: Hub, file: RemoteFile) -> Head | None:
    length = min(_FIRST, file.size)
    while True:
        data = hub.head_bytes(file, length)
        try:
            header = parse_header(data)
            return header, vocabulary.of(header, data)
        except GGUFTruncatedError as error:
            if len(data) < length:
                return None
            if length >= min(file.size, _MOST):
                raise _no_model(file, error) from error
            length = min(2 * length, file.size, _MOST)
        except GGUFError as error:
            raise _no_model(file, error) from error


def _no_model(file: RemoteFile, error: GGUFError) -> ModelFileProblem:
    return ModelFileProblem(
        f"{file.path} in {file.repo} is no model that can be used. {error}",
        "Choose another file or another repository.",
    )
