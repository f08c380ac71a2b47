"""What the store knows about a model and about a pair, and how that stands in JSON.

Read by hand instead of with a schema library: listing fifty models must take no time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from model_registry.gguf import GGUFHeader
from model_registry.problem import ModelFileProblem
from model_registry.quants import tag_of
from model_registry.vocabulary import rolls_back

SCHEMA = 1

SourceKind = Literal["hub", "package", "file", "derived", "trained"]
_T = TypeVar("_T")

# llama.cpp's enum llama_ftype (include/llama.h), for files whose name says nothing.
# fmt: off
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 25: "IQ4_NL", 30: "IQ4_XS", 32: "BF16", 38: "MXFP4",
}
# fmt: on


class RecordProblem(ModelFileProblem):
    """A record in the store that cannot be used; the message names file and key."""


class NewerRecordProblem(RecordProblem):
    """A record that a newer EdgeSpec wrote; it must not be thrown away."""

    def __init__(self, path: Path, schema: int) -> None:
        super().__init__(
            f"{path} has the schema {schema}; this EdgeSpec knows {SCHEMA}.",
            "Use the EdgeSpec that wrote it, or pull the model again.",
        )
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of a model, as it was when its digest was last computed."""

    name: str
    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a model came from."""

    kind: SourceKind
    reference: str
    """What pulls, derives or trains these files again."""
    repo: str = ""
    """The Hub's repository, or the distribution."""
    revision: str = ""
    """The commit, the distribution's version, or the id of the target that it was made for."""
    paths: tuple[str, ...] = ()
    """Of the files in the repository, parts in order."""

    @property
    def command(self) -> str:
        """What a person types to have these files again."""
        verb = {"derived": "derive", "trained": "train"}.get(self.kind, "pull")
        return f"edgespec {verb} {self.reference}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What the header says, for lists and for finding drafts."""

    architecture: str
    quant: str
    context: int | None
    """Tokens the model was trained for."""
    tokens: int | None
    """Size of the vocabulary."""
    tokenizer: str
    """`tokenizer.ggml.model` and `.pre`, as in `gpt2/qwen2`."""
    rolls_back: bool

    @classmethod
    def of(cls, header: GGUFHeader, name: str) -> Traits:
        """Read off a header; `name` is the file's, which says the quantisation."""
        model = header.metadata.get("tokenizer.ggml.model", "")
        pre = header.metadata.get("tokenizer.ggml.pre", "")
        kind = header.metadata.get("general.file_type")
        return cls(
            architecture=plain(header.architecture) or "",
            quant=tag_of(name).upper()
            or (_FILE_TYPES.get(kind, "") if isinstance(kind, int) else ""),
            context=header.context_length,
            tokens=header.token_count,
            tokenizer=plain(f"{model}/{pre}" if pre else str(model)) or "",
            rolls_back=rolls_back(header),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """A model in the store: its own files, or a link to files elsewhere."""

    id: str
    """First 16 hexadecimal digits of SHA-256 over the sorted digests of the files."""
    name: str
    folder: str | None
    """Where linked files lie; None for files of the store. Linked files are never deleted."""
    files: tuple[StoredFile, ...]
    """Parts in order."""
    source: Source
    traits: Traits
    licence: str | None
    gated: bool
    alone: bool
    """Pulled by itself: it stays when the last pair that uses it goes."""
    pulled_at: str
    """ISO 8601, UTC."""
    verified_at: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord:
    """A target with the draft that was found to fit it."""

    name: str
    target: str
    """Id of a model."""
    draft: str
    alias: str | None
    """The catalogue's name for it, if it came from there."""
    verdict: str
    """What the check of the vocabularies said."""
    created_at: str


def plain(text: str | None) -> str | None:
    """A short text of others that can be printed: no control characters; None where it is empty."""
    return "".join(sign for sign in (text or "")[:80] if sign.isprintable()).strip() or None


def dump(record: ModelRecord | PairRecord) -> str:
    """The record as JSON."""
    return json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1, ensure_ascii=False) + "\n"


def load_model(path: Path) -> ModelRecord:
    """Read model.json. Raises RecordProblem, and OSError as `open` does."""
    data = _Fields.read(path)
    source, traits = data.inner("source"), data.inner("traits")
    return ModelRecord(
        id=data.get("id", str),
        name=data.get("name", str),
        folder=data.maybe("folder", str),
        files=tuple(
            StoredFile(
                name=file.get("name", str),
                size=file.get("size", int),
                sha256=file.get("sha256", str),
                mtime_ns=file.get("mtime_ns", int),
            )
            for file in data.items("files")
        ),
        source=Source(
            kind=source.get("kind", str),  # type: ignore[arg-type] # an unknown one counts as fetched
            reference=source.get("reference", str),
            repo=source.get("repo", str),
            revision=source.get("revision", str),
            paths=tuple(str(path) for path in source.get("paths", list)),
        ),
        traits=Traits(
            architecture=traits.get("architecture", str),
            quant=traits.get("quant", str),
            context=traits.maybe("context", int),
            tokens=traits.maybe("tokens", int),
            tokenizer=traits.get("tokenizer", str),
            rolls_back=traits.get("rolls_back", bool),
        ),
        licence=data.maybe("licence", str),
        gated=data.get("gated", bool),
        alone=data.get("alone", bool),
        pulled_at=data.get("pulled_at", str),
        verified_at=data.get("verified_at", str),
    )


def load_pair(path: Path) -> PairRecord:
    """Read a pair's file. Raises RecordProblem, and OSError as `open` does."""
    data = _Fields.read(path)
    return PairRecord(
        name=data.get("name", str),
        target=data.get("target", str),
        draft=data.get("draft", str),
        alias=data.maybe("alias", str),
        verdict=data.get("verdict", str),
        created_at=data.get("created_at", str),
    )


class _Fields:
    """A JSON object whose keys are asked for by type."""

    def __init__(self, path: Path, where: str, data: object) -> None:
        self._path, self._where = path, where
        if not isinstance(data, Mapping):
            raise self._problem("", "is no object")
        self._data: Mapping[str, Any] = data

    @classmethod
    def read(cls, path: Path) -> _Fields:
        try:
            fields = cls(path, "", json.loads(path.read_bytes()))
        except ValueError as error:
            if isinstance(error, RecordProblem):
                raise
            raise RecordProblem(f"{path} is not JSON: {error}.", _REPAIR) from error
        if (schema := fields.get("schema", int)) != SCHEMA:
            raise NewerRecordProblem(path, schema)
        return fields

    def get(self, key: str, kind: type[_T]) -> _T:
        value = self._data.get(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._problem(key, f"should be of the type {kind.__name__}")
        return value

    def maybe(self, key: str, kind: type[_T]) -> _T | None:
        return None if self._data.get(key) is None else self.get(key, kind)

    def inner(self, key: str) -> _Fields:
        return _Fields(self._path, f"{self._where}{key}.", self._data.get(key))

    def items(self, key: str) -> list[_Fields]:
        values = self.get(key, list)
        if not values:
            raise self._problem(key, "is empty")
        return [
            _Fields(self._path, f"{self._where}{key}.{number}.", value)
            for number, value in enumerate(values)
        ]

    def _problem(self, key: str, what: str) -> RecordProblem:
        name = f"{self._where}{key}".strip(".") or "the whole file"
        return RecordProblem(f"{self._path}: {name} {what}.", _REPAIR)


_REPAIR = "Run `edgespec prune`, then pull the model again."
