"""What a head file says about itself, as JSON in its metadata.

A head file is a safetensors file. The key `edgespec` of its metadata holds one JSON object:

    {"kind": "medusa", "version": 1,
     "targets": [{"digest": "sample:...", "name": "SmolLM2-135M"}],
     "hidden_size": 576, "vocab_size": 49152,
     "training": {...}}

`targets` are the models that the head was trained for, and tried with: a head serves no others. The
first one is what it was trained on. `training` is a record for people, of no fixed form. What tensors
there are depends on the kind; see `edgespec.heads.file`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgespec.errors import ModelFileError, PairError

KEY = "edgespec"
MEDUSA = "medusa"
VERSION = 1
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

    def check_target(self, path: Path, digest: str, name: str) -> None:
        """Raise PairError unless the head in `path` is for the target with this digest."""
        if any(one.digest == digest for one in self.targets):
            return
        own = " and ".join(dict.fromkeys(one.name for one in self.targets))
        raise PairError(
            f"The head {path.name} cannot draft for {name}: it was trained for {own}, and a head serves "
            "no other model, and no other quantisation.",
            f"Train one for it (edgespec train {self.kind}), or use --draft lookup.",
        )

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


def parse(path: Path, metadata: Mapping[str, str] | None) -> About:
    """Read the metadata of `path`. Raises ModelFileError for a file that is none of ours."""
    text = (metadata or {}).get(KEY)
    if text is None:
        raise ModelFileError(
            f"{path} is a safetensors file, but no drafting head that EdgeSpec has trained.",
            "Make one with edgespec train, or give a GGUF model.",
        )
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise TypeError("it is no object")
        _check_version(path, data.get("version"))
        return About(
            kind=_field(data, "kind", str),
            targets=_targets(_field(data, "targets", list)),
            hidden_size=_positive(data, "hidden_size"),
            vocab_size=_positive(data, "vocab_size"),
            training=_field(data, "training", dict),
        )
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"The head {path} is damaged: {error}.", _AGAIN) from error


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise TypeError("version is no number")
    if version > VERSION:
        raise ModelFileError(
            f"The head {path} was written by a newer EdgeSpec (version {version}, this one reads "
            f"{VERSION}).",
            "Use that one, or train the head again.",
        )


def _targets(items: Sequence[object]) -> tuple[Trained, ...]:
    found = []
    for item in items:
        if not isinstance(item, dict):
            raise TypeError("a target is no object")
        found.append(Trained(_field(item, "digest", str), _field(item, "name", str)))
    if not found:
        raise ValueError("it names no target")
    return tuple(found)


def _field(data: Mapping[str, Any], key: str, kind: type[Any]) -> Any:  # noqa: ANN401 - JSON
    value = data.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{key} is no {kind.__name__}")
    return value


def _positive(data: Mapping[str, Any], key: str) -> int:
    value = int(_field(data, key, int))
    if value < 1:
        raise ValueError(f"{key} is {value}")
    return value
