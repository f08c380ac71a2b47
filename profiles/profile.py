"""The schema of a profile and the reading of one. A leaf: knows files and YAML, nothing of models."""

from __future__ import annotations

from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError


class ProfileProblem(ValueError):  # noqa: N818 - the caller turns it into its own error
    """A profile that cannot be used; the message names file and key."""


class SamplingDefaults(BaseModel):
    """How tokens are chosen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(ge=0)
    top_k: int = Field(ge=0)
    top_p: float = Field(gt=0, le=1)
    min_p: float = Field(ge=0, le=1)
    repeat_penalty: float = Field(gt=0)


class Profile(BaseModel):
    """Everything that a profile sets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    context: int = Field(ge=1)
    draft_length: int = Field(ge=0)
    sampling: SamplingDefaults


def parse(text: str, source: str) -> Profile:
    """Read a profile from YAML. Raises ProfileProblem that names `source` and the key."""
    try:
        return Profile.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ProfileProblem(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise ProfileProblem(f"{source}: {key}: {first['msg']}") from error


def default() -> Profile:
    """The profile that comes with EdgeSpec."""
    file = resources.files("profiles") / "builtin" / "default.yaml"
    return parse(file.read_text(encoding="utf-8"), "profiles/builtin/default.yaml")
