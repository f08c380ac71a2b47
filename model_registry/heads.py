"""Head files: what one says about itself, read without the library that reads its numbers.

A drafting head is a safetensors file: eight bytes with the length of a JSON header, the header, numbers.
The key `edgespec` of the header's metadata holds one JSON object as text:

    {"kind": "medusa", "version": 1,
     "targets": [{"digest": "sample:...", "name": "SmolLM2-135M"}],
     "hidden_size": 576, "vocab_size": 49152,
     "training": {...}}

`targets` are the models that the head was trained for, or tried with: it serves no others. The first one
is what it was trained on. `training` is a record for people, of no fixed form. What tensors there are
depends on the kind; see `edgespec.heads.file`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_registry.inspect import check_exists, check_file
from model_registry.problem import ModelFileProblem

KEY = "edgespec"
MEDUSA = "medusa"
EAGLE3 = "eagle3"
"""Such a head is a GGUF model of this architecture, with the same object as text in its metadata."""
KINDS = frozenset({MEDUSA})
"""Of head files; a model's record has the kind as its architecture."""
DRAFTING = KINDS | {EAGLE3}
"""Architectures of records that are drafting heads, whatever their file."""
IN_GGUF = f"{KEY}.head"
"""The key of the object in a GGUF file."""
VERSION = 1
_LONGEST = 16 << 20
"""Bytes of a header; ours have a few thousand."""
_AGAIN = "Train it again, or give another file."


@dataclass(frozen=True, slots=True)
class Trained:
    """A model that a head was trained for."""

    digest: str
    """As `model_registry.identity.content_digest` has it."""
    name: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The metadata of a head file."""

    kind: str
    targets: tuple[Trained, ...]
    hidden_size: int
    """Width of the target's states."""
    vocab_size: int
    """How many ids the target knows."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it was made and what it reached, as JSON can hold it."""

    @property
    def target_names(self) -> str:
        """What it was trained for, in words."""
        return " and ".join(dict.fromkeys(one.name for one in self.targets))

    def serves(self, digest: str) -> bool:
        """Whether it was made for the model with this digest."""
        return any(one.digest == digest for one in self.targets)

    def as_metadata(self) -> dict[str, str]:
        """For the file."""
        data = {
            "kind": self.kind,
            "version": VERSION,
            "targets": [{"digest": one.digest, "name": one.name} for one in self.targets],
            "hidden_size": self.hidden_size,
            "vocab_size": self.vocab_size,
            "training": dict(self.training),
        }
        return {KEY: json.dumps(data, ensure_ascii=False)}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One array of a head file."""

    kind: str
    """`F16`, `F32`, `I32`, ..."""
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """All of a head file but its numbers."""

    about: About
    tensors: Mapping[str, Tensor]


def is_head(path: Path) -> bool:
    """Whether a file looks like one by its first bytes; nothing else is checked."""
    with suppress(OSError), path.open("rb") as file:
        start = file.read(9)
        return start[:4] != b"GGUF" and start[8:] == b"{"
    return False


def read_card(path: Path) -> Card:
    """What a head file says about itself. Raises ModelFileProblem for a file that is none of ours."""
    check_exists(path)
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(min(length, _LONGEST))
        size = path.stat().st_size
    except OSError as error:
        raise ModelFileProblem(
            f"{path} cannot be read: {error.strerror or error}.", "Check the path and the disk."
        ) from error
    if not text.startswith(b"{") or len(text) < length:
        raise ModelFileProblem(f"{path} is no head file, or it is cut off.", _AGAIN)
    try:
        header = _object(json.loads(text), "its header")
        metadata = header.pop("__metadata__", {})
        about = _about(path, _object(metadata, "its metadata").get(KEY))
        tensors, end = _tensors(header)
    except ModelFileProblem:
        raise
    except (ValueError, TypeError) as error:
        raise ModelFileProblem(f"The head {path} is damaged: {error}.", _AGAIN) from error
    if 8 + length + end != size:
        raise ModelFileProblem(
            f"The head {path} is cut off or damaged: it has {size} of {8 + length + end} bytes.",
            _AGAIN,
        )
    return Card(about, tensors)


def about_of(path: Path) -> About | None:
    """What a head file of either form says about itself, as `read_card` and `read_about` do."""
    if is_head(path):
        return read_card(path).about
    return read_about(path, check_file(path).metadata)


def read_about(path: Path, metadata: Mapping[str, object]) -> About | None:
    """What the metadata of a GGUF head say about it; None for one that EdgeSpec has not trained.

    Raises ModelFileProblem.
    """
    if IN_GGUF not in metadata:
        return None
    try:
        return _about(path, metadata[IN_GGUF])
    except (ValueError, TypeError) as error:
        raise ModelFileProblem(f"The head {path} is damaged: {error}.", _AGAIN) from error


def _tensors(header: Mapping[str, Any]) -> tuple[dict[str, Tensor], int]:
    """The tensors, and the length of all their numbers in bytes."""
    found, end = dict[str, Tensor](), 0
    for name, entry in header.items():
        fields = _object(entry, name)
        shape = tuple(_whole(size) for size in _field(fields, "shape", list))
        found[name] = Tensor(_field(fields, "dtype", str), shape)
        end = max(end, *(_whole(place) for place in _field(fields, "data_offsets", list)))
    return found, end


def _about(path: Path, text: object) -> About:
    if not isinstance(text, str):
        raise ModelFileProblem(
            f"{path} is a safetensors file, but no drafting head that EdgeSpec has trained.",
            "Make one with edgespec train, or give a GGUF model.",
        )
    data = _object(json.loads(text), "its card")
    _check_version(path, data.get("version"))
    return About(
        kind=_field(data, "kind", str),
        targets=_targets(_field(data, "targets", list)),
        hidden_size=_positive(data, "hidden_size"),
        vocab_size=_positive(data, "vocab_size"),
        training=_field(data, "training", dict),
    )


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise TypeError("version is no number")
    if version > VERSION:
        raise ModelFileProblem(
            f"The head {path} was written by a newer EdgeSpec (version {version}, this one reads "
            f"{VERSION}).",
            "Use that one, or train the head again.",
        )


def _targets(items: Sequence[object]) -> tuple[Trained, ...]:
    found = []
    for item in items:
        target = _object(item, "a target")
        found.append(Trained(_field(target, "digest", str), _field(target, "name", str)))
    if not found:
        raise ValueError("it names no target")
    return tuple(found)


def _object(data: object, what: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TypeError(f"{what} is no object")
    return data


def _field(data: Mapping[str, Any], key: str, kind: type[Any]) -> Any:  # noqa: ANN401 - JSON
    value = data.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{key} is no {kind.__name__}")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no size")
    return value


def _positive(data: Mapping[str, Any], key: str) -> int:
    value = int(_field(data, key, int))
    if value < 1:
        raise ValueError(f"{key} is {value}")
    return value
