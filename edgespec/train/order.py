"""What a training is asked for, and the folder in which it can be stopped and gone on with."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError, UsageError
from edgespec.settings import Load
from edgespec.train.prompts import Prompt, gathered
from edgespec.train.shards import Shards
from model_registry.files import explained
from model_registry.gguf import GGUFHeader
from model_registry.identity import content_digest
from model_registry.inspect import check_file
from model_registry.problem import ModelFileProblem
from model_registry.store import Store

_T = TypeVar("_T", bound=np.generic)

Kind = Literal["medusa", "eagle3"]
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Order:
    """What to train, and with what."""

    kind: Kind
    target: Path
    load: Load = Load()
    """Its threads and GPU layers are used."""
    data: tuple[str, ...] = ("self",)
    """`self` for the prompts that come along, `history` for past questions, or files."""
    minutes: float = 30.0
    """Of collecting and training, in all sessions."""
    rows: int = 250_000
    """States to collect at most."""
    size: int = 4 << 30
    """Bytes of them on the disk at most."""
    steps: int = 1 << 30
    """Of training, at most."""
    heads: int = 4
    """Of Medusa; of EAGLE-3 the steps that it is unrolled in training."""
    vocabulary: int = 8192
    """Tokens that it can guess: the most frequent ones."""
    length: int = 192
    """Tokens of an answer at most."""
    at_once: int = 32
    """Answers that are computed together."""
    seed: int = 0


class Workplace:
    """The folder of one training; found again by the same order, whatever its limits."""

    def __init__(self, store: Store, order: Order) -> None:
        """Raises ModelFileError for a target that cannot be trained for."""
        self.kind = order.kind
        self.digest = _digest(order.target)
        self.header: GGUFHeader = _checked(order)
        self.layers = layers_read(self.header)
        """Whose inputs are collected; none where llama.cpp does not hand them out."""
        what = [self.digest, *order.data, order.length, order.seed, *self.layers]
        name = hashlib.sha256("\n".join(map(str, what)).encode()).hexdigest()[:12]
        self.folder = store.home / "training" / name
        self.shards = Shards(self.folder)
        size = [order.kind, order.heads, order.vocabulary]
        self.state = self.folder / f"{'-'.join(map(str, size))}.pt"
        """Of the training itself; another size of head learns anew from the same texts."""
        self._store, self._name = store, name

    @property
    def width(self) -> int:
        """Numbers in a state of one layer."""
        return self.header.number("embedding_length") or 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes away. Raises StoreProblem."""
        with self._store.lock(f"training-{self._name}", patience=0), explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            yield

    @property
    def bytes(self) -> int:
        """What the folder takes on the disk: texts, states, and what was learnt."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def forget(self) -> None:
        """Begin anew."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)

    def array(self, name: str, make: Callable[[], NDArray[_T]]) -> NDArray[_T]:
        """What was made the first time: weights that were trained with it go on with it."""
        path = self.folder / f"{name}.npz"
        with suppress(FileNotFoundError), np.load(path, allow_pickle=False) as kept:
            found: NDArray[_T] = kept["found"]
            return found
        made = make()
        partial = path.with_suffix(".part")
        with partial.open("wb") as file:
            np.savez(file, found=made)
        os.replace(partial, path)
        return made

    def prompts(self, order: Order) -> list[Prompt]:
        """Those that it began with, or else those that the order names. Raises UsageError."""
        path = self.folder / "prompts.json"
        with suppress(FileNotFoundError, ValueError, TypeError):
            kept = json.loads(path.read_bytes())
            if kept["format"] == _FORMAT:
                return [Prompt(text, group) for text, group in kept["prompts"]]
        found = gathered(order.data)
        partial = path.with_suffix(".part")
        data = {"format": _FORMAT, "prompts": [(one.text, one.group) for one in found]}
        partial.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        os.replace(partial, path)
        return found


def layers_read(header: GGUFHeader) -> tuple[int, ...]:
    """The three layers whose inputs an EAGLE-3 head reads: early, middle and late, as in the paper.

    None where llama.cpp does not hand them out, or the model has too few.
    """
    from edgespec.llama.states import GIVES_LAYERS, gives_layers  # noqa: PLC0415 - loads llama.cpp

    count = header.number("block_count") or 0
    if count < 3 or header.architecture not in GIVES_LAYERS or not gives_layers():
        return ()
    return min(2, count - 3), count // 2, max(count - 3, count // 2 + 1)


def _checked(order: Order) -> GGUFHeader:
    try:
        header = check_file(order.target)
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    if order.kind == "eagle3" and not layers_read(header):
        raise UsageError(
            f"llama.cpp does not hand out the layers of this {header.architecture} model, which an "
            "EAGLE-3 head reads.",
            "Train a Medusa head: edgespec train medusa NAME.",
        )
    return header


def _digest(path: Path) -> str:
    try:
        return content_digest(path)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}.", "Check the path.") from error
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
