"""The command that builds llama.cpp anew for a GPU: exact, for the way EdgeSpec was installed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path

from edgespec.llama.backends import Build
from profiles.gpus import Vendor


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a backend needs to be built."""

    option: str
    """CMake's."""
    tool: str
    """A program that comes with what must be installed first; empty if nothing must."""
    kit: str
    """What that is, in words."""


_CUDA = Recipe("-DGGML_CUDA=on", "nvcc", "the CUDA toolkit (cuBLAS, and nvcc on the PATH)")
_VULKAN = Recipe("-DGGML_VULKAN=on", "glslc", "the Vulkan SDK (headers, loader and glslc)")
_METAL = Recipe("-DGGML_METAL=on", "", "")
_RECIPES: dict[Vendor, Recipe] = {
    "nvidia": _CUDA,
    "amd": _VULKAN,
    "intel": _VULKAN,
    "apple": _METAL,
}
_KEPT = {"RPC": "-DGGML_RPC=on", "CUDA": "-DGGML_CUDA=on", "Vulkan": "-DGGML_VULKAN=on"}
"""What an installed build has and should keep, by ggml's name."""


def next_step(vendor: Vendor, build: Build) -> str:
    """What to do so that llama.cpp uses a GPU of `vendor`."""
    recipe = _RECIPES[vendor]
    command = rebuild_command(recipe.option, build)
    if not recipe.tool or shutil.which(recipe.tool):
        return f"Build it with that GPU: {command}"
    return f"Install {recipe.kit}, then build: {command}"


def rebuild_command(option: str, build: Build, *, folder: Path | None = None) -> str:
    """The shell command. `folder` is the checkout that EdgeSpec runs from, by default found out.

    A checkout that set itself up is built by its Makefile, whose own options are kept; anything else
    by the package installer of this Python.
    """
    if folder := folder or checkout():
        return _make(folder, f'CMAKE_ARGS="$(scripts/cmake-args) {option}" ')
    options = dict.fromkeys([*(_KEPT[name] for name in build.backends if name in _KEPT), option])
    arguments = " ".join(options)
    install = f"{_installer()} llama-cpp-python=={build.version}"
    if os.name == "nt":
        return f'set "CMAKE_ARGS={arguments}" && {install}'
    return f'CMAKE_ARGS="{arguments}" {install}'


def repair_command() -> str:
    """The shell command that builds llama.cpp anew as it was meant to be."""
    if folder := checkout():
        return _make(folder, "")
    return f"{_installer()} {_pinned()}"


def _make(folder: Path, environment: str) -> str:
    return f"cd {shlex.quote(str(folder))} && rm -rf .venv/llama-* && {environment}make chat"


def _pinned() -> str:
    """The llama-cpp-python that this EdgeSpec asks for."""
    try:
        wanted = requires("edgespec") or []
    except PackageNotFoundError:
        wanted = []
    return next((one for one in wanted if one.startswith("llama-cpp-python")), "llama-cpp-python")


def checkout() -> Path | None:
    """The source folder whose own .venv this is; None for an installed EdgeSpec."""
    folder = Path(__file__).resolve().parents[2]
    parts = (folder / "Makefile", folder / "scripts" / "cmake-args")
    own = Path(sys.prefix).resolve() == (folder / ".venv").resolve()
    return folder if own and all(part.is_file() for part in parts) else None


def _installer() -> str:
    flags = "--force-reinstall --no-cache-dir --no-deps"
    python = f'"{sys.executable}"' if os.name == "nt" else shlex.quote(sys.executable)
    if find_spec("pip") is None and shutil.which("uv"):
        return f"uv pip install --python {python} {flags}"
    return f"{python} -m pip install {flags}"
