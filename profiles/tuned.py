"""The store of what was measured on this machine: one JSON file for each pair and way to run it.

A leaf: knows files, nothing of models. Beside a result lie what an interrupted measurement has so far
and what was learnt in use, each in a file of its own. A damaged file is set aside and told of once;
it never keeps anybody from chatting.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

SCHEMA = 1

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class Key(BaseModel):
    """What a result holds for. Everything is compared as text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hardware: str
    """Digest of processor, memory and devices."""
    build: str
    """llama.cpp's version and build options."""
    target: str
    """Digest of the target's files."""
    draft: str | None
    setup: str
    """Threads as they were asked for, and where weights and caches are."""

    @property
    def name(self) -> str:
        """The file's name, without its ending."""
        text = json.dumps(self.model_dump(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class Table(BaseModel):
    """What passes cost with `depth` tokens in the caches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    depth: int = Field(ge=0)
    verify: dict[Count, Seconds]
    """By rows of one pass of the target; 1 is a token of plain decoding."""
    draft: dict[Count, Seconds] = {}
    """By tokens fed to the draft in one pass; 1 is a draft step. Empty without a draft model."""

    @model_validator(mode="after")
    def _has_a_row(self) -> Self:
        if 1 not in self.verify or (self.draft and 1 not in self.draft):
            raise ValueError("the cost of 1 is missing")
        return self


class Gain(BaseModel):
    """The draft length that is best at some acceptance, and the speed-up it is predicted to bring."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: int = Field(ge=0)
    speedup: Seconds


class Recommendation(BaseModel):
    """What to do with this pair."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    """`auto`, or `none` for a draft that cannot pay."""
    why: str
    """A sentence or two."""
    pays_from: Share | None
    """The acceptance from which drafting is worth it; None where it never is."""
    gains: dict[Count, Gain]
    """By acceptance in percent."""


class Tuned(BaseModel):
    """One result."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Key
    target_name: str
    """The file's name, to find what a changed file had before."""
    draft_name: str | None
    measured_at: str
    """ISO 8601, UTC."""
    quick: bool
    """Measured within seconds at the first use, not by `edgespec tune`."""
    tables: tuple[Table, ...] = Field(min_length=1)
    """Ascending by depth, all with the same keys."""
    prefill: Seconds | None = None
    """Seconds a token of reading a prompt."""
    draft_prefill: Seconds | None = None
    threads: Count
    """What was quickest for a single row, or what was asked for."""
    batch_threads: Count
    exact_rows: dict[int, Count] | None = None
    """By depth: up to how many rows of a pass are bit for bit what single passes give; None where
    that was not looked at."""
    busy: str = ""
    """Why the figures are not to be believed; empty when the machine was quiet."""
    acceptance: dict[str, Share] = {}
    """Of the draft, by kind of text, at the built-in prompts."""
    recommendation: Recommendation

    @property
    def scant(self) -> bool:
        """Whether there was time for single rows only, so that what a check costs is not known."""
        return max(self.tables[0].verify) == 1

    @model_validator(mode="after")
    def _tables_go_together(self) -> Self:
        depths = [table.depth for table in self.tables]
        if depths != sorted(set(depths)):
            raise ValueError("the tables are not in order of depth")
        if len({(frozenset(t.verify), frozenset(t.draft)) for t in self.tables}) > 1:
            raise ValueError("the tables differ in their rows")
        return self


def stale_reasons(stored: Key, key: Key) -> tuple[str, ...]:
    """Why a result for `stored` does not hold for `key`; empty when it does."""
    pairs = {
        "another processor or other devices": (stored.hardware, key.hardware),
        "llama.cpp was rebuilt": (stored.build, key.build),
        "the target's file changed": (stored.target, key.target),
        "the draft's file changed": (stored.draft, key.draft),
        "threads, devices or the cache's type are others": (stored.setup, key.setup),
    }
    return tuple(reason for reason, (before, now) in pairs.items() if before != now)


_M = TypeVar("_M", bound=BaseModel)


class _File(BaseModel):
    """The frame of every file."""

    model_config = ConfigDict(extra="forbid")

    format: int = Field(alias="schema")
    content: dict[str, Any]


@dataclass(slots=True)
class TunedStore:
    """A folder of results. `notices` gathers what a person should know of files set aside."""

    folder: Path
    notices: list[str] = field(default_factory=list)

    @classmethod
    def default(cls) -> TunedStore:
        """In the platform's folder for a program's data."""
        return cls(user_data_path("edgespec", appauthor=False) / "tuned")

    def load(self, key: Key) -> Tuned | None:
        """The result for exactly this key."""
        return self._tuned(self._path(key, "json"))

    def all(self) -> list[Tuned]:
        """Every result, the latest first."""
        paths = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        plain = (path for path in paths if "." not in path.stem)
        found = [tuned for path in plain if (tuned := self._tuned(path))]
        return sorted(found, key=lambda one: one.measured_at, reverse=True)

    def save(self, tuned: Tuned) -> None:
        """Keep a result, in the place of an older one for the same key. OSError as `open`."""
        self._write(self._path(tuned.key, "json"), tuned.model_dump(mode="json"))

    def remove(self, key: Key) -> None:
        """Forget a result and all that lies beside it."""
        for kind in ("json", "partial.json", "learned.json"):
            self._path(key, kind).unlink(missing_ok=True)

    def load_learned(self, key: Key) -> dict[str, Any] | None:
        """What was learnt in use; its meaning is the caller's."""
        return self._read(self._path(key, "learned.json"))

    def save_learned(self, key: Key, learned: Mapping[str, Any]) -> None:
        """Keep what was learnt in use: anything that JSON can hold. OSError as `open`."""
        self._write(self._path(key, "learned.json"), learned)

    def load_partial(self, key: Key) -> dict[str, list[float]]:
        """What an interrupted measurement has so far, seconds by name; empty for nothing."""
        path = self._path(key, "partial.json")
        content = self._read(path) or {}
        numbers = (
            isinstance(row, list) and all(isinstance(one, int | float) for one in row)
            for row in content.values()
        )
        if not all(numbers):
            self._set_aside(path, "it holds something else than lists of numbers")
            return {}
        return {name: [float(one) for one in row] for name, row in content.items()}

    def save_partial(self, key: Key, samples: Mapping[str, list[float]]) -> None:
        """Keep what there is so far; nothing removes the file. OSError as `open`."""
        path = self._path(key, "partial.json")
        if samples:
            self._write(path, samples)
        else:
            path.unlink(missing_ok=True)

    def _path(self, key: Key, kind: str) -> Path:
        return self.folder / f"{key.name}.{kind}"

    def _tuned(self, path: Path) -> Tuned | None:
        content = self._read(path)
        if content is None:
            return None
        try:
            tuned = Tuned.model_validate(content)
        except ValidationError as error:
            self._set_aside(path, _first(error))
            return None
        if tuned.key.name != path.stem:
            self._set_aside(path, "it was measured for something else than its name says")
            return None
        return tuned

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.notices.append(f"{path} cannot be read: {error.strerror or error}.")
            return None
        try:
            file = _File.model_validate_json(text)
        except ValidationError as error:
            self._set_aside(path, _first(error))
            return None
        if file.format > SCHEMA:
            self.notices.append(f"{path} was written by a newer EdgeSpec and is not used.")
            return None
        return file.content

    def _set_aside(self, path: Path, why: str) -> None:
        self.notices.append(f"{path} is damaged ({why}); it was set aside and is measured anew.")
        try:
            os.replace(path, path.with_name(f"{path.name}.damaged"))
        except OSError:
            return  # a folder that cannot be written to: it is told again next time

    def _write(self, path: Path, content: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": SCHEMA, "content": content}, indent=1) + "\n"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)


def _first(error: ValidationError) -> str:
    """Where the first thing wrong is, and what."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"]) or "the whole file"
    return f"{key}: {first['msg']}"
