"""A look at everything that is stored, taken without a lock: each record is whole or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from model_registry.records import ModelRecord, PairRecord, RecordProblem, load_model, load_pair

RECORD = "model.json"
_PRUNE = "Run `edgespec prune`, then pull again."


@dataclass(frozen=True, slots=True)
class Contents:
    """What the store held when it was read."""

    models: tuple[ModelRecord, ...]
    pairs: tuple[PairRecord, ...]
    broken: tuple[RecordProblem, ...]

    def model(self, name: str) -> ModelRecord | None:
        """A model by name or id; case does not matter."""
        folded = name.casefold()
        found = (one for one in self.models if folded in (one.name.casefold(), one.id))
        return next(found, None)

    def pair(self, name: str) -> PairRecord | None:
        """A pair by name; case does not matter."""
        return next((one for one in self.pairs if one.name.casefold() == name.casefold()), None)

    def with_id(self, model: str) -> ModelRecord:
        """The model of a pair; such exist for all of `pairs`."""
        return next(one for one in self.models if one.id == model)

    def users(self, model: str) -> list[str]:
        """Names of the pairs that a model is in."""
        return [pair.name for pair in self.pairs if model in (pair.target, pair.draft)]

    def names(self) -> list[str]:
        """All that can be named, pairs first."""
        return [one.name for one in self.pairs] + [one.name for one in self.models]


def read_contents(models_folder: Path, pairs_folder: Path) -> Contents:
    """Read all records. OSError if a folder is there and cannot be read."""
    broken: list[RecordProblem] = []
    models: list[ModelRecord] = []
    pairs: list[PairRecord] = []
    for path in _sorted(models_folder, f"*/{RECORD}"):
        with _noted(broken):
            model = load_model(path)
            if model.id != path.parent.name:
                raise RecordProblem(f"{path}: id is not the folder's name.", _PRUNE)
            models.append(model)
    known = {model.id for model in models}
    for path in _sorted(pairs_folder, "*.json"):
        with _noted(broken):
            pair = load_pair(path)
            if not {pair.target, pair.draft} <= known:
                raise RecordProblem(f"{path} names a model that is gone.", _PRUNE)
            pairs.append(pair)
    models.sort(key=lambda one: one.name.casefold())
    pairs.sort(key=lambda one: one.name.casefold())
    return Contents(tuple(models), tuple(pairs), tuple(broken))


@contextmanager
def _noted(broken: list[RecordProblem]) -> Iterator[None]:
    try:
        yield
    except RecordProblem as problem:
        broken.append(problem)
    except FileNotFoundError:
        pass  # another process has just removed it


def _sorted(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))
