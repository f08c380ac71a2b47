"""The schema of a persona, and the YAML that it is read from and shown as.

Imported only by what reads personas: the schema library takes longer to load than the app's first
picture may.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from textwrap import shorten

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgespec.personas import BUILTIN, Persona

_BUILTIN_FILE = "edgespec/personas.yaml"


class PersonaProblem(ValueError):  # noqa: N818 - `personas` turns it into its own error
    """A persona that cannot be used; the message names file and key."""


class PersonaSampling(BaseModel):
    """The fields of `sampling.Sampling` that a persona may set."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    temperature: float | None = Field(default=None, ge=0)
    top_k: int | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repeat_penalty: float | None = Field(default=None, gt=0)
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class PersonaFile(BaseModel):
    """What a file may say of a persona; its name is the file's."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    title: str = Field(default="", max_length=60)
    """Empty for the name."""
    about: str = Field(default="", max_length=200)
    system: str = ""
    sampling: PersonaSampling = PersonaSampling()
    pair: str | None = Field(default=None, min_length=1, max_length=200)


KEYS = (
    *(name for name in PersonaFile.model_fields if name != "sampling"),
    *(f"sampling.{name}" for name in PersonaSampling.model_fields),
)
"""All keys, with dots for the nested ones."""


def builtin() -> list[Persona]:
    """The personas that come with EdgeSpec, in the order of their file."""
    text = (resources.files("edgespec") / "personas.yaml").read_text(encoding="utf-8")
    entries = _mapping(text, _BUILTIN_FILE)
    return [
        _persona(entry, str(name), f"{_BUILTIN_FILE}: {name}", BUILTIN)
        for name, entry in entries.items()
    ]


def read(path: Path, name: str) -> Persona:
    """A persona from a file of one's own. Raises PersonaProblem."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise PersonaProblem(f"{path} cannot be read: {reason}.") from error
    return _persona(_mapping(text, str(path)), name, str(path), str(path))


def dump(persona: Persona) -> str:
    """A persona as the YAML of a file that reads as the same one."""
    facts: dict[str, object] = {"title": persona.title, "about": persona.about}
    facts |= {"sampling": dict(persona.sampling), "pair": persona.pair, "system": persona.system}
    kept = {key: value for key, value in facts.items() if value}
    text: str = yaml.dump(kept, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _mapping(text: str, source: str) -> Mapping[object, object]:
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
        raise PersonaProblem(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, Mapping):
        raise PersonaProblem(f"{source}: a persona is lines of `key: value`.")
    return data


def _persona(entry: object, name: str, blamed: str, source: str) -> Persona:
    try:
        file = PersonaFile.model_validate(entry)
    except ValidationError as error:
        raise PersonaProblem(_line(f"{blamed}: {_reason(error)}")) from error
    return Persona(
        name=name,
        title=_line(file.title) or name,
        about=_line(file.about),
        system=file.system.strip(),
        sampling=file.sampling.model_dump(exclude_none=True),
        pair=file.pair.strip() or None if file.pair else None,
        source=source,
    )


def _reason(error: ValidationError) -> str:
    """The first mistake, with its key."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = get_close_matches(key, KEYS, n=1)
        if key in KEYS:
            return f"{key}: write it as `{key.partition('.')[2]}` below `sampling:`."
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(KEYS)}."
        return f"there is no key {key}. {hint}"
    return f"{key}: {first['msg']} (it is {shorten(repr(first['input']), 60)})."


def _line(text: str) -> str:
    """One line that is safe to print."""
    return "".join(one for one in " ".join(text.split()) if one.isprintable())


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines as one that people can read and change."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
