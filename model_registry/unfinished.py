"""Pulls that have begun and not ended: what `list` shows, `rm` removes and `prune` sweeps away.

A journal is written before the first byte and removed after the last record, so that every part in
the store belongs to a pull that can be named, or to none that is still wanted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from model_registry.files import now, write_atomic
from model_registry.records import SCHEMA
from model_registry.store import Store


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One pull that was begun."""

    key: str
    name: str
    """What it would be called."""
    command: str
    """What goes on with it."""
    parts: tuple[tuple[str, str, int], ...]
    """Name of the part, of the file, and bytes of the file."""
    started: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for _, _, size in self.parts)


def journal_key(parts: Sequence[str]) -> str:
    """The name of the pull that fetches these parts."""
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


def begin(
    store: Store, name: str, command: str, parts: Sequence[tuple[str, str, int]]
) -> Unfinished:
    """Note a pull down before its first byte. OSError as the disk has it."""
    key = journal_key([part for part, _, _ in parts])
    pull = Unfinished(key, name, command, tuple(parts), now())
    text = {"schema": SCHEMA, "name": name, "command": command, "parts": pull.parts}
    text["started"] = pull.started
    write_atomic(store.partial / f"{key}.json", json.dumps(text, indent=1) + "\n")
    return pull


def end(store: Store, pull: Unfinished) -> None:
    """Forget a pull whose models are stored, or that is not wanted any more."""
    for part, _, _ in pull.parts:
        (store.partial / part).unlink(missing_ok=True)
    shutil.rmtree(staging(store, pull.key), ignore_errors=True)
    (store.partial / f"{pull.key}.json").unlink(missing_ok=True)


def staging(store: Store, key: str) -> Path:
    """Where whole, verified files of a pull wait until all of them are there."""
    return store.partial / f"{key}.files"


def listed(store: Store) -> list[Unfinished]:
    """All journals that can be read, oldest first."""
    pulls = []
    for path in store.partial.glob("*.json"):
        try:
            data = json.loads(path.read_bytes())
            parts = tuple((str(part), str(name), int(size)) for part, name, size in data["parts"])
            name, command, started = (str(data[key]) for key in ("name", "command", "started"))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # `prune` removes what nobody can read
        pulls.append(Unfinished(path.stem, name, command, parts, started))
    return sorted(pulls, key=lambda pull: pull.started)


def fetched(store: Store, pull: Unfinished) -> int:
    """Bytes that are here already."""
    total = 0
    for part, name, size in pull.parts:
        for path in (store.partial / part, *staging(store, pull.key).glob(f"*/{escape(name)}")):
            try:
                total += min(path.stat().st_size, size)
            except OSError:
                continue
    return total
