"""The schema of a profile. A leaf: knows files and YAML, nothing of models.

Keys are written with dots here, as in `sampling.top_k`; a file may nest them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

AUTO: Literal["auto"] = "auto"
Auto = Literal["auto"]


class ProfileProblem(ValueError):  # noqa: N818 - the caller turns it into its own error
    """A profile that cannot be used; the message names file and key."""


def _auto_or_number(least: int) -> Callable[[object], object]:
    def check(value: object) -> object:
        if value == AUTO or (type(value) is int and value >= least):
            return value
        raise PydanticCustomError("auto", f"Input should be auto or a whole number from {least}")

    return check


class SamplingDefaults(BaseModel):
    """How tokens are chosen."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    temperature: float = Field(ge=0)
    top_k: int = Field(ge=0)
    top_p: float = Field(gt=0, le=1)
    min_p: float = Field(ge=0, le=1)
    repeat_penalty: float = Field(gt=0)


class Profile(BaseModel):
    """Everything that a profile sets."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    context: int = Field(ge=1)
    """Tokens of prompt and answer together."""
    draft_length: Annotated[int | Auto, PlainValidator(_auto_or_number(0))]
    """Tokens guessed ahead in one round; auto for as many as pay."""
    threads: Annotated[int | Auto, PlainValidator(_auto_or_number(1))]
    """Auto for one a fast physical core."""
    gpu_layers: Annotated[int | Auto, PlainValidator(_auto_or_number(-1))]
    """Layers to offload, -1 for all; auto for as many as fit."""
    kv_type: Literal["auto", "f16", "q8_0", "q4_0"]
    """How the cache keeps keys and values; auto for the most exact that fits."""
    mmap: bool
    """Map files instead of reading them."""
    sampling: SamplingDefaults


KEYS: tuple[str, ...] = tuple(
    f"{name}.{inner}" if name == "sampling" else name
    for name in Profile.model_fields
    for inner in (SamplingDefaults.model_fields if name == "sampling" else ("",))
)
"""All keys."""

SECTIONS = frozenset(key.partition(".")[0] for key in KEYS if "." in key)
"""Keys that hold others."""


def flat(profile: Profile) -> dict[str, object]:
    """A profile's values by key."""
    return flatten(profile.model_dump(), "")


def read_values(path: Path) -> dict[str, object]:
    """What a profile file sets, by key. Raises ProfileProblem that names the file and what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ProfileProblem(f"{path} cannot be read: {reason}.") from error
    return parse(text, str(path))


def builtin_source(name: str) -> str:
    """How a builtin profile is called where it is blamed or named."""
    return f"profiles/builtin/{name}.yaml"


def read_builtin(name: str) -> dict[str, object]:
    """What a profile that comes with EdgeSpec sets, by key."""
    file = resources.files("profiles") / "builtin" / f"{name}.yaml"
    return parse(file.read_text(encoding="utf-8"), builtin_source(name))


def default() -> Profile:
    """What holds where nothing else is said."""
    return validate(read_builtin("default"), builtin_source("default"))


def parse(text: str, source: str) -> dict[str, object]:
    """What YAML text sets, by key; values are not checked yet. Raises ProfileProblem."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise ProfileProblem(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    return flatten({} if data is None else data, source)


def flatten(data: object, source: str) -> dict[str, object]:
    """Nested keys with dots. Raises ProfileProblem for a key that there is not."""
    if not isinstance(data, Mapping):
        raise ProfileProblem(f"{source}: a profile is lines of `key: value`.")
    values: dict[str, object] = {}
    for key, value in data.items():
        if key in SECTIONS:
            if not isinstance(value, Mapping):
                raise ProfileProblem(f"{source}: {key}: under it stand keys of their own.")
            values.update({f"{key}.{inner}": one for inner, one in value.items()})
        else:
            values[str(key)] = value
    for key in values:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(KEYS)}."
            raise ProfileProblem(f"{source}: there is no key {key}. {hint}")
    return values


def validate(values: Mapping[str, object], source: str) -> Profile:
    """A profile of all these values. Raises ProfileProblem that blames `source` and names the key."""
    nested: dict[str, object] = {key: value for key, value in values.items() if "." not in key}
    for section in SECTIONS:
        nested[section] = {
            key.partition(".")[2]: value
            for key, value in values.items()
            if key.startswith(f"{section}.")
        }
    try:
        return Profile.model_validate(nested)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        given = "" if first["type"] == "missing" else f" (it is {first['input']!r})"
        raise ProfileProblem(f"{source}: {key}: {first['msg']}{given}") from error
