"""Which settings are in force, and which file set each of them.

Later layers win: builtin default < builtin class < tuned < the user's file < command line.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from profiles.classes import class_of
from profiles.gpus import Vendor
from profiles.hardware import Hardware
from profiles.profile import (
    Profile,
    ProfileProblem,
    builtin_source,
    flatten,
    read_builtin,
    read_values,
    validate,
)

VARIABLE = "EDGESPEC_PROFILE"
"""Names another file than the user's usual one."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Some settings, and where they come from."""

    source: str
    """A file, or an option such as `--ctx`: what a person is to look at."""
    values: Mapping[str, object]
    """By key, as `sampling.top_k` or nested; not checked yet."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings in force."""

    profile: Profile
    sources: Mapping[str, str]
    """For every key of `profile.KEYS` the source of the layer that set it."""
    layers: tuple[str, ...]
    """Sources of all layers, the weakest first."""


def merge(layers: Iterable[Layer]) -> Resolved:
    """Put layers over each other, the weakest first; the first sets every key.

    Raises ProfileProblem that names source and key, also where a later layer would hide the mistake.
    """
    profile: Profile | None = None
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    names = []
    for layer in layers:
        given = flatten(layer.values, layer.source)
        values.update(given)
        sources.update(dict.fromkeys(given, layer.source))
        names.append(layer.source)
        profile = validate(values, layer.source)
    if profile is None:
        raise ValueError("no layers")
    return Resolved(profile, sources, tuple(names))


def resolve(
    hardware: Hardware,
    *,
    usable: Collection[Vendor] = (),
    tuned: Layer | None = None,
    user: Layer | None = None,
    options: Iterable[Layer] = (),
) -> Resolved:
    """The settings for a machine. Raises ProfileProblem.

    `usable`: whose GPUs llama.cpp was built to use. `tuned`: what was measured. `user`: as
    `user_layer` gives it. `options`: of the command line.
    """
    layers = [builtin("default"), builtin(class_of(hardware, usable)), tuned, user, *options]
    return merge(layer for layer in layers if layer is not None)


def builtin(name: str) -> Layer:
    """A profile that comes with EdgeSpec: `default`, or one of `classes.CLASSES`."""
    return Layer(builtin_source(name), read_builtin(name))


def user_file() -> Path:
    """Where the user's own settings are, or would be."""
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return Path(os.path.expanduser(given)).absolute()
    return user_config_path("edgespec", appauthor=False) / "profile.yaml"


def user_layer() -> Layer | None:
    """The user's own settings; None where there is no file.

    Raises ProfileProblem for a file that cannot be read, and for one that EDGESPEC_PROFILE names
    and that is not there.
    """
    path = user_file()
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get(VARIABLE, "").strip():
            raise ProfileProblem(f"{path} is not there, but {VARIABLE} names it.") from None
        return None
    except OSError:
        pass  # reading it says why
    return Layer(str(path), read_values(path))
