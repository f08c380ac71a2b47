"""The models and pairs that have a short name: those that come along, and the user's own.

Imported only by what needs it: the schema library takes longer to load than `list` may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import yaml
from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from model_registry.problem import ModelFileProblem

_NAME = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}[a-z0-9]$")]


class CatalogProblem(ModelFileProblem):
    """A catalogue that cannot be used; the message names file and key."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CatalogFile(_Part):
    """One file of a model."""

    path: str = Field(pattern=r"(?i)^[^/\\][^\\]*\.gguf$")
    size: int = Field(gt=0)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Only where several sources agree; the Hub's own must then be the same."""


class CatalogModel(_Part):
    """A model in a repository of the Hub: its files, or a quantisation to choose them by."""

    repo: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
    licence: str
    family: str | None = None
    """Which vocabulary it has."""
    commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    """Where the newest one has changed names or content."""
    files: tuple[CatalogFile, ...] = ()
    quant: str | None = None

    @model_validator(mode="after")
    def _files_or_quant(self) -> CatalogModel:
        if bool(self.files) == bool(self.quant):
            raise ValueError("give either files or quant")
        return self

    @property
    def size(self) -> int | None:
        """Bytes; None if not known before the repository is asked."""
        return sum(file.size for file in self.files) or None

    @property
    def digests(self) -> list[str] | None:
        """SHA-256 of all files; None if one is not known."""
        known = [file.sha256 for file in self.files if file.sha256]
        return known if known and len(known) == len(self.files) else None


class CatalogPair(_Part):
    """A target and the draft that goes with it, both by name."""

    target: str
    draft: str
    use: str
    confirmed: str
    """Who is known to have run it, or how it was compared."""


class Family(_Part):
    """Models of one vocabulary."""

    draft: str
    tokenizer: str
    """`tokenizer.ggml.model` and `.pre` in their files; families may share it and still differ."""


class Catalog(_Part):
    """One catalogue file, or several laid over each other."""

    version: Literal[1] = Field(alias="schema")
    families: Mapping[_NAME, Family] = Field(default_factory=dict)
    models: Mapping[_NAME, CatalogModel] = Field(default_factory=dict)
    pairs: Mapping[_NAME, CatalogPair] = Field(default_factory=dict)
    gpus: Mapping[int, str] = Field(default_factory=dict)
    """GB of GPU memory -> the pair to begin with."""

    def draft_of(self, model: str) -> str | None:
        """The draft for a model of the catalogue: of its pair, or else of its family."""
        for pair in self.pairs.values():
            if pair.target == model:
                return pair.draft
        family = self.families.get(self.models[model].family or "")
        return family.draft if family and family.draft != model else None

    def with_digests(self, digests: Sequence[str]) -> str | None:
        """The name of the model whose files have these digests."""
        wanted = sorted(digests)
        found = (n for n, m in self.models.items() if m.digests and sorted(m.digests) == wanted)
        return next(found, None)

    def only_one_of(self, repo: str) -> str | None:
        """The name of the model in a repository, if there is one only."""
        inside = [n for n, m in self.models.items() if m.repo.casefold() == repo.casefold()]
        return inside[0] if len(inside) == 1 else None


def load() -> Catalog:
    """The catalogue that comes along, with the user's own laid over it. Raises CatalogProblem."""
    catalog = _builtin()
    path = user_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _checked(catalog, "model_registry/catalog.yaml")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogProblem(f"{path} cannot be read: {error}.", "Mend or remove it.") from error
    own = parse(text, str(path))
    merged = catalog.model_copy(
        update={
            key: {**getattr(catalog, key), **getattr(own, key)}
            for key in ("families", "models", "pairs", "gpus")
        }
    )
    return _checked(merged, str(path))


@cache
def _builtin() -> Catalog:
    """Parsed once: the app reads the catalogue again after every change of the store."""
    file = resources.files("model_registry") / "catalog.yaml"
    return parse(file.read_text(encoding="utf-8"), "model_registry/catalog.yaml")


def user_file() -> Path:
    """Where the user's own additions are looked for."""
    return user_config_path("edgespec", appauthor=False) / "catalog.yaml"


def parse(text: str, source: str) -> Catalog:
    """Read a catalogue from YAML. Raises CatalogProblem that names `source` and the key."""
    try:
        return Catalog.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise CatalogProblem(
            f"{source} is not YAML: {' '.join(str(error).split())}", "Mend or remove it."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise CatalogProblem(f"{source}: {key}: {first['msg']}.", "Mend this key.") from error


def _checked(catalog: Catalog, source: str) -> Catalog:
    """The catalogue, if all names in it lead somewhere."""
    names = [
        *((f"families.{name}.draft", family.draft) for name, family in catalog.families.items()),
        *((f"pairs.{name}.target", pair.target) for name, pair in catalog.pairs.items()),
        *((f"pairs.{name}.draft", pair.draft) for name, pair in catalog.pairs.items()),
    ]
    for key, model in names:
        if model not in catalog.models:
            raise CatalogProblem(f"{source}: {key}: there is no model {model!r}.", "Mend this key.")
    for name, entry in catalog.models.items():
        if entry.family and entry.family not in catalog.families:
            raise CatalogProblem(
                f"{source}: models.{name}.family: there is no family {entry.family!r}.",
                "Mend this key.",
            )
    for memory, pair in catalog.gpus.items():
        if pair not in catalog.pairs:
            raise CatalogProblem(
                f"{source}: gpus.{memory}: there is no pair {pair!r}.", "Mend this key."
            )
    return catalog
