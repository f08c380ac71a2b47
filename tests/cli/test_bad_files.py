"""Whatever is given as a model: one sentence, a next step, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import gguf_files
from tests.cli.conftest import Run, options, refused
from tests.conftest import ModelFiles


def _folder(path: Path, _: ModelFiles) -> Path:
    path.mkdir()
    return path


def _empty(path: Path, _: ModelFiles) -> Path:
    path.touch()
    return path


def _unknown(path: Path, _: ModelFiles) -> Path:
    return gguf_files.random_llama(path, architecture="zebra")


def _incomplete(path: Path, _: ModelFiles) -> Path:
    first, second = gguf_files.split_llama(path.parent, "set")
    second.unlink()
    return first


BAD: dict[str, tuple[Callable[[Path, ModelFiles], Path], list[str]]] = {
    "missing": (lambda path, _: path, ["does not exist"]),
    "folder": (_folder, ["folder"]),
    "empty": (_empty, ["model.gguf", "not a GGUF model"]),
    "HTML": (lambda path, _: gguf_files.html_page(path), ["not a GGUF model", "HTML"]),
    "zeros": (lambda path, _: gguf_files.zeros(path), ["not a GGUF model"]),
    "cut off": (lambda path, models: gguf_files.truncated(path, models["bad"], 0.6), ["cut off"]),
    "cut in the header": (
        lambda path, models: gguf_files.truncated(path, models["bad"], 0.01),
        ["cut off", "header"],
    ),
    "other version": (
        lambda path, models: gguf_files.wrong_version(path, models["bad"]),
        ["version"],
    ),
    "vocabulary only": (lambda path, _: gguf_files.vocabulary_only(path), ["only a vocabulary"]),
    "unknown architecture": (_unknown, ["architecture", "zebra"]),
    "incomplete set": (_incomplete, ["not complete", "set-00002-of-00002.gguf"]),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file(edgespec: Run, models: ModelFiles, tmp_path: Path, kind: str) -> None:
    make, parts = BAD[kind]
    path = make(tmp_path / "model.gguf", models)
    refused(edgespec("run", "hello", *options(path)), *parts)


@pytest.mark.parametrize("kind", ["missing", "HTML", "cut off"])
def test_a_bad_draft(edgespec: Run, models: ModelFiles, tmp_path: Path, kind: str) -> None:
    make, parts = BAD[kind]
    path = make(tmp_path / "model.gguf", models)
    refused(edgespec("run", "hello", *options(models["rambler"]), "--draft", str(path)), *parts)


def test_a_package_that_is_not_installed(edgespec: Run) -> None:
    refused(edgespec("run", "hello", *options(Path("package:no-such-model"))), "no-such-model")


def test_a_set_that_is_complete_is_one_model(
    edgespec: Run, models: ModelFiles, tmp_path: Path
) -> None:
    first, second = gguf_files.split_llama(tmp_path, "set")
    done = edgespec("run", "hello", *options(first), "--max-tokens", "4")
    assert done.returncode == 0
    refused(edgespec("run", "hello", *options(second)), "part 2 of 2", first.name)


REFUSED = {
    "bytes": ("(type)", "token 5"),
    "shuffled": ("(text)", "token "),
    "adds-bos": ("(bos)", "adds BOS"),
    "adds-eos": ("(eos)", "adds EOS"),
    "padded-129": ("(size)", "more than 128"),
    "other-special": ("(text)", "token 7"),
}


@pytest.mark.parametrize("draft", REFUSED)
def test_a_draft_of_another_vocabulary(edgespec: Run, models: ModelFiles, draft: str) -> None:
    target = options(models["rambler"])
    done = edgespec("run", "hello", *target, "--draft", str(models[draft]))
    refused(done, draft, *REFUSED[draft], "--draft lookup")


def test_the_target_of_a_refused_pair_answers_alone(edgespec: Run, models: ModelFiles) -> None:
    target = [*options(models["rambler"]), "--max-tokens", "3"]
    assert edgespec("run", "hello", *target, "--draft", str(models["bytes"])).returncode == 1
    done = edgespec("run", "hello", *target)
    assert done.returncode == 0
    assert done.stdout.strip()


def test_the_chat_refuses_a_missing_file_before_it_opens(edgespec: Run) -> None:
    result = edgespec("chat", "--model", "no-such-file.gguf")
    refused(result, "no-such-file.gguf")
