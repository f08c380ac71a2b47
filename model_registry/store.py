"""The models and pairs on this machine. Nothing counts as stored before its record is written.

    models/<id>/<files under their own names> + model.json
    pairs/<name>.json
    partial/   unfinished downloads: parts, staged files, one journal a pull
    locks/     between processes

A record is written last and removed first, so a crash leaves rubbish for `prune`, never a half model.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from model_registry.contents import RECORD, Contents, read_contents
from model_registry.files import BusyProblem, StoreProblem, explained, now, write_atomic
from model_registry.records import (
    ModelRecord,
    PairRecord,
    Source,
    StoredFile,
    Traits,
    dump,
)
from model_registry.reference import check_name

_USED = "last-used"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A complete, verified model that is to be stored."""

    files: tuple[tuple[Path, str], ...]
    """Files and their SHA-256; parts in order, all in one folder if linked."""
    linked: bool
    """Leave the files where they are."""
    source: Source
    traits: Traits
    licence: str | None = None
    gated: bool = False


class Store:
    """A folder of models and pairs. Reading needs no lock; every change takes it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.models = home / "models"
        self.pairs = home / "pairs"
        self.partial = home / "partial"
        self.locks = home / "locks"

    @classmethod
    def default(cls) -> Store:
        """The folder that EDGESPEC_HOME names, or else the platform's for a program's data."""
        given = os.environ.get("EDGESPEC_HOME", "").strip()
        if given:
            return cls(Path(os.path.expanduser(given)).absolute())
        from platformdirs import user_data_path  # noqa: PLC0415 - not needed with EDGESPEC_HOME

        return cls(user_data_path("edgespec", appauthor=False))

    def read(self) -> Contents:
        """Everything that is stored, by name. Raises StoreProblem if the folder cannot be read."""
        with explained(self.home):
            return read_contents(self.models, self.pairs)

    def folder(self, model: ModelRecord) -> Path:
        """Where the files of a model lie."""
        return Path(model.folder) if model.folder else self.models / model.id

    def path(self, model: ModelRecord) -> Path:
        """The file that stands for a model: its only one, or the first part."""
        return self.folder(model) / model.files[0].name

    def intact(self, model: ModelRecord) -> bool:
        """Whether all files are there in full length."""
        folder = self.folder(model)
        try:
            return all((folder / one.name).stat().st_size == one.size for one in model.files)
        except OSError:
            return False

    def add(
        self,
        incoming: Incoming,
        *,
        name: str | None = None,
        alone: bool,
        suggested: str | None = None,
    ) -> ModelRecord:
        """Take a model in, or find it here already. Its files are moved unless they are linked.

        `name` is what the user wants it to be called; StoreProblem if that is taken. `suggested`
        is the name of a new one otherwise, by default made of the file's.
        """
        identity = model_id([digest for _, digest in incoming.files])
        with self.locked(), explained(self.home):
            contents = self.read()
            old = contents.model(identity)
            if old and self.intact(old):
                record = replace(old, alone=old.alone or alone)
                if name:
                    record = replace(record, name=_free_name(contents, name, identity, insist=True))
                self._discard(incoming, old)
            else:
                wanted = name or suggested or stem_of(incoming.files[0][0].name)
                free = _free_name(contents, wanted, identity, insist=name is not None)
                record = self._take(incoming, identity, free, alone or bool(old and old.alone))
            self.write(record)
            return record

    def add_pair(
        self,
        name: str,
        target: ModelRecord,
        draft: ModelRecord,
        *,
        verdict: str,
        alias: str | None = None,
    ) -> PairRecord:
        """Store a pair that was checked. Raises StoreProblem if the name means another pair."""
        check_name(name)
        with self.locked(), explained(self.home):
            contents = self.read()
            old = check_pair_name(contents, name, target.id, draft.id, alias)
            same = old and (old.target, old.draft) == (target.id, draft.id)
            record = PairRecord(
                name=old.name if old else name,
                target=target.id,
                draft=draft.id,
                alias=alias,
                verdict=verdict,
                created_at=old.created_at if old and same else now(),
            )
            write_atomic(self.pairs / f"{record.name}.json", dump(record))
            return record

    def write(self, model: ModelRecord) -> None:
        """Write a model's record; the lock must be held."""
        write_atomic(self.models / model.id / RECORD, dump(model))

    def forget_pair(self, pair: PairRecord) -> None:
        """Remove a pair's record; the lock must be held."""
        (self.pairs / f"{pair.name}.json").unlink(missing_ok=True)
        self._pair_mark(pair).unlink(missing_ok=True)

    def forget_model(self, model: ModelRecord) -> None:
        """Remove a model's record and then its own files; the lock must be held."""
        folder = self.models / model.id
        (folder / RECORD).unlink(missing_ok=True)
        shutil.rmtree(folder)

    def mark_used(self, record: ModelRecord | PairRecord) -> None:
        """Remember that it was used now. A store that may not be written to does not mind."""
        with suppress(OSError):
            self._mark(record).touch()

    def last_used(self, record: ModelRecord | PairRecord) -> datetime | None:
        """When it was last loaded; None for never."""
        try:
            return datetime.fromtimestamp(self._mark(record).stat().st_mtime, tz=UTC)
        except OSError:
            return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the store meanwhile. May be nested."""
        with self.lock("store", patience=60):
            yield

    @contextmanager
    def lock(self, name: str, *, patience: float) -> Iterator[None]:
        """A lock between processes; waits `patience` seconds, -1 for ever. Raises StoreProblem."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 - slow to import, lists need none

        with explained(self.locks):
            self.locks.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.locks / f"{name}.lock", is_singleton=True)
        try:
            lock.acquire(timeout=patience)
        except Timeout as error:
            raise BusyProblem(
                "Another EdgeSpec is at work on this.", "Wait until it is done, then try again."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _mark(self, record: ModelRecord | PairRecord) -> Path:
        if isinstance(record, PairRecord):
            return self._pair_mark(record)
        return self.models / record.id / _USED

    def _pair_mark(self, pair: PairRecord) -> Path:
        return self.pairs / f"{pair.name}.{_USED}"

    def _take(self, incoming: Incoming, identity: str, name: str, alone: bool) -> ModelRecord:
        folder = self.models / identity
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RECORD).unlink(missing_ok=True)
        files = []
        for path, digest in incoming.files:
            place = path if incoming.linked else folder / path.name
            if place != path:
                os.replace(path, place)
            facts = place.stat()
            files.append(
                StoredFile(
                    name=path.name, size=facts.st_size, sha256=digest, mtime_ns=facts.st_mtime_ns
                )
            )
        return ModelRecord(
            id=identity,
            name=name,
            folder=str(incoming.files[0][0].parent.absolute()) if incoming.linked else None,
            files=tuple(files),
            source=incoming.source,
            traits=incoming.traits,
            licence=incoming.licence,
            gated=incoming.gated,
            alone=alone,
            pulled_at=now(),
            verified_at=now(),
        )

    def _discard(self, incoming: Incoming, old: ModelRecord) -> None:
        for path, _ in incoming.files:
            if not incoming.linked and path.parent != self.folder(old):
                path.unlink(missing_ok=True)


def check_pair_name(
    contents: Contents, name: str, target: str, draft: str, alias: str | None
) -> PairRecord | None:
    """The pair that one of these models would replace, if any. Raises StoreProblem if the name is
    another's.
    """
    old = contents.pair(name)
    if old and (old.target, old.draft) != (target, draft) and not (alias and old.alias == alias):
        raise StoreProblem(
            f"There is another pair called {old.name}.",
            f"Choose a name with --as, or remove it: edgespec rm {old.name}",
        )
    other = contents.model(name)
    if other and other.id != target:
        raise StoreProblem(
            f"{name} is the name of a model that is not this pair's target.",
            "Choose another name with --as.",
        )
    return old


def free_pair_name(contents: Contents, target: str, own: str, ending: str) -> str:
    """For a pair of a target: its name, or that with `-ending`, or with a number behind. `own` is the
    target's id, empty where it is not stored.
    """
    names = (target, *(f"{target}-{ending}{number}" for number in ("", *range(2, 1000))))

    def free(name: str) -> bool:
        model = contents.model(name)
        return contents.pair(name) is None and (model is None or model.id == own)

    return next(name for name in names if free(name))


def model_id(digests: Sequence[str]) -> str:
    """The id of the model that consists of files with these SHA-256 digests."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


def stem_of(name: str) -> str:
    """A name for a model, made of its file's."""
    stem = re.sub(r"(-00001-of-\d{5})?(\.gguf|\.safetensors)?$", "", name, flags=re.IGNORECASE)
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:90] or "model"


def _free_name(contents: Contents, wanted: str, identity: str, *, insist: bool) -> str:
    """`wanted`, or with the id behind it where another model has that name."""
    if insist:
        check_name(wanted)
    other = contents.model(wanted)
    if other is None or other.id == identity:
        return wanted
    if insist:
        raise StoreProblem(
            f"There is another model called {other.name}.",
            f"Choose another name with --as, or remove it: edgespec rm {other.name}",
        )
    return f"{wanted}-{identity[:4]}"
