"""Where the things are that a person may write as a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_registry.embedded import EMBEDDED, SHOWN, locate
from model_registry.locate import find
from model_registry.problem import ModelFileProblem


def problem(reference: str) -> ModelFileProblem:
    with pytest.raises(ModelFileProblem) as caught:
        find(reference)
    return caught.value


def test_nothing_means_the_embedded_model() -> None:
    assert find(None).target == locate(EMBEDDED) == find(EMBEDDED).target == find("built-in").target


@pytest.mark.parametrize("name", ["Built-in", SHOWN, SHOWN.lower()])
def test_the_embedded_model_goes_by_what_is_shown_of_it(name: str) -> None:
    assert find(name).target == find(None).target
    assert find(None).target.stem == SHOWN


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my model.gguf"
    file.touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert find(str(file)).target == file
    assert find("~/my model.gguf").target == file
    assert find("my model.gguf").target.samefile(file)


def test_a_missing_path_suggests_a_near_one(tmp_path: Path) -> None:
    (tmp_path / "qwen-7b-q4.gguf").touch()
    error = problem(str(tmp_path / "qwen-7b-q5.gguf"))
    assert error.message == f"{tmp_path / 'qwen-7b-q5.gguf'} does not exist."
    assert error.hint == f"Did you mean {tmp_path / 'qwen-7b-q4.gguf'}?"


def test_a_home_of_nobody_is_a_plain_name() -> None:
    assert "does not exist" in problem("~no-such-user-here/m.gguf").message


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in problem(str(tmp_path)).message


@pytest.mark.parametrize("reference", ["", "  "])
def test_an_empty_reference(reference: str) -> None:
    assert "is empty" in problem(reference).message


def test_a_package_is_looked_up() -> None:
    assert "toy-nowhere" in problem("package:toy-nowhere").message
