"""Get the files of a pull: keep others away, note down what has begun, take up what was left."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path, PurePosixPath

from model_registry import unfinished
from model_registry.files import explained
from model_registry.hub import Hub, RemoteFile
from model_registry.problem import ModelFileProblem
from model_registry.store import Store
from model_registry.transfer import Progress, fetch, part_name
from model_registry.upkeep import part_lock

Places = dict[RemoteFile, tuple[Path, str]]
"""Where fetched files lie, and their digests."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be fetched."""

    name: str
    """What the pull is called while it is not finished."""
    command: str
    """What goes on with it."""
    models: tuple[tuple[RemoteFile, ...], ...]
    """Files to fetch, by model."""

    @property
    def files(self) -> list[RemoteFile]:
        """All of them, each once."""
        return list(dict.fromkeys(file for model in self.models for file in model))


@contextmanager
def fetched(
    store: Store,
    hub: Hub,
    order: Order,
    on_progress: Callable[[Progress], None],
    cancelled: threading.Event,
    workers: int = 4,
) -> Iterator[Places]:
    """Fetch; inside, the files wait in a folder of the store until their records are written.

    Raises ModelFileProblem, and whatever ends the body; then what has come stays for the next try.
    """
    parts = [(part_name(file), _name(file), file.size) for file in order.files]
    with ExitStack() as stack:
        for part in sorted({part for part, _, _ in parts}):
            stack.enter_context(store.lock(part_lock(part), patience=0))
        with explained(store.home):
            pull = unfinished.begin(store, order.name, order.command, parts)
        try:
            folder = unfinished.staging(store, pull.key)
            places: Places = {}
            for number, files in enumerate(_batches(order)):
                place = folder / str(number)
                with explained(store.home):
                    _gather(store, files, place)
                got = fetch(
                    hub,
                    files,
                    store.partial,
                    place,
                    on_progress=on_progress,
                    cancelled=cancelled,
                    workers=workers,
                )
                places |= {file: (one.path, one.sha256) for file, one in got.items()}
        except ModelFileProblem:
            if not unfinished.fetched(store, pull):
                unfinished.end(store, pull)
            raise
        yield places
        unfinished.end(store, pull)


def _gather(store: Store, files: Sequence[RemoteFile], folder: Path) -> None:
    """Move here what other pulls got whole before they were stopped; digests are checked later."""
    folder.mkdir(parents=True, exist_ok=True)
    pulls = unfinished.listed(store)
    for file in files:
        place, part = folder / _name(file), part_name(file)
        for pull in pulls:
            if not any(part == one for one, _, _ in pull.parts):
                continue  # only the lock of this part says that nobody else is at work
            for path in unfinished.staging(store, pull.key).glob(f"*/{escape(place.name)}"):
                if not place.exists() and path.stat().st_size == file.size:
                    os.replace(path, place)


def _batches(order: Order) -> list[list[RemoteFile]]:
    """Files that can lie in one folder: all, unless two models have files of one name."""
    names = [_name(file).casefold() for file in order.files]
    if len(set(names)) == len(names):
        return [order.files]
    return [list(model) for model in order.models]


def _name(file: RemoteFile) -> str:
    return PurePosixPath(file.path).name
