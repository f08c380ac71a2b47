"""`edgespec run --file`: files before the prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from edgespec.attachments import AttachmentProblem, compose, read
from edgespec.cli import run
from edgespec.errors import UsageError
from tests.cli.conftest import Run, refused


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, and no stdin."""
    (tmp_path / "a.md").write_text("# Alpha\n")
    (tmp_path / "b.py").write_text("x = 1\n")
    (tmp_path / "old.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "p.png").write_bytes(b"\x89PNG\0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    return tmp_path


def given(*arguments: str) -> str:
    options = run.parser().parse_args(arguments)
    return run._prompt(options.prompt, options.file)


def test_files_come_before_the_prompt(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = compose("What is it?", [read(files / "b.py"), read(files / "a.md")])
    assert given("What", "is it?", "--file", "b.py", "--file", "*.md") == both
    assert given("--file", "a.md") == compose("", [read(files / "a.md")])
    assert capsys.readouterr() == ("", "")


def test_what_is_left_out_or_guessed_is_told(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert given("x", "--file", ".").count("File: ") == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "Left out of .: 1 file" in err
    assert "old.txt is not UTF-8" in err


def test_files_that_are_none(files: Path) -> None:
    with pytest.raises(AttachmentProblem, match="no text"):
        given("x", "--file", "p.png")
    with pytest.raises(AttachmentProblem, match=r"a\.md\?"):
        given("x", "--file", "b.md")
    with pytest.raises(UsageError, match="no prompt"):
        run._prompt([], [])


def test_the_command_answers_what_the_files_ask(
    edgespec: Run, tiny: Sequence[str], files: Path
) -> None:
    more = [*tiny, "--max-tokens", "6"]
    path = files / "a.md"
    done = edgespec("run", "Which letter?", *more, "--file", str(path))
    same = edgespec("run", *more, stdin=compose("Which letter?", [read(path)]).replace(
        "File: a.md", f"File: {path.as_posix()}"
    ))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == same.stdout
    refused(edgespec("run", "x", *more, "--file", "no-such-file.md"), "no-such-file.md", "exist")
