"""`edgespec history` as a person meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edgespec.cli.main import main
from edgespec.history.store import History
from tests.cli.conftest import LIMIT, ROOT, refused
from tests.history.talking import ids, talk

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("EDGESPEC_HOME", str(folder))
    return folder


@pytest.fixture
def history(home: Path) -> Iterator[History]:
    with closing(History.open()) as opened:
        yield opened


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["history", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def as_json(run: Run, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_list(run: Run, history: History) -> None:
    assert run("list") == (0, "No conversation is here.\n", "")
    assert run("list", "--deleted")[1] == "No conversation is to be brought back.\n"
    first, second = talk(history, "apples", "red", folder="fruit"), talk(history, "x\x1b[31m")
    code, out, err = run("list")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["ID", "WHEN", "MESSAGES", "MODEL", "FOLDER", "TITLE"]
    assert lines[1].split()[0] == str(second)
    assert lines[1].endswith("x␛[31m")
    assert lines[2].split()[3:] == ["2", "m1", "fruit", "apples"]
    assert len(run("list", "--limit", "1")[1].splitlines()) == 2
    (only,) = as_json(run, "list", "--folder", "fruit")
    assert only == {
        "id": first,
        "title": "apples",
        "folder": "fruit",
        "model": "m1",
        "persona": "p1",
        "messages": 2,
        "created_at": only["created_at"],
        "updated_at": only["updated_at"],
    }
    assert only["updated_at"].endswith("+00:00")
    assert as_json(run, "list", "--folder", "none") == []


def test_search(run: Run, history: History) -> None:
    number = talk(history, "How are apples made?", "By trees.")
    talk(history, "pears")
    code, out, _ = run("search", "APPLE", "how")
    assert code == 0
    assert out.startswith(f"{number}  20")
    assert "    [How] are [apples] made?" in out
    assert run("search", "plum", "x") == (0, "Nothing in the history has 'plum x'.\n", "")
    (hit,) = as_json(run, "search", "tree")
    assert hit["id"] == number
    assert hit["message"] == ids(history, number)[1]
    assert hit["snippet"] == "By [trees]."
    assert as_json(run, "search", "plum") == []
    assert run("search", "--json", "--", "-x")[1] == "[]\n"


def test_show(run: Run, history: History) -> None:
    number = talk(history, "What?\nSo", "That \x1b[31mred")
    question, answer = ids(history, number)
    history.update(answer, "That \x1b[31mred", complete=False)
    code, out, err = run("show", str(number))
    assert (code, err) == (0, "")
    assert out.startswith("What?\n20")
    assert "--- You, 20" in out
    assert "--- m1, 20" in out
    assert out.endswith("That ␛[31mred\n(cut)\n")
    history.add(number, question, "assistant", "again")
    assert "branches: 1." in run("show", "last")[2]
    shown = as_json(run, "show", "last")
    assert [message["content"] for message in shown["shown"]] == ["What?\nSo", "again"]
    assert shown["id"] == number


def test_out_and_in_again(run: Run, history: History, tmp_path: Path) -> None:
    number = talk(history, "q", "```\na\n```")
    code, out, err = run("export", "last")
    assert (code, err) == (0, "")
    (tmp_path / "printed.md").write_text(out, encoding="utf-8", newline="")
    assert "Written to" in run("export", str(number), str(tmp_path / "a.md"))[1]
    assert "Written to" in run("export", str(number), str(tmp_path / "a.json"))[1]
    printed = json.loads(run("export", str(number), "--json")[1])
    assert printed == json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert printed["format"] == "edgespec-conversation"
    code, out, err = run("import", *(str(tmp_path / name) for name in ("printed.md", "a.md")))
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"Imported as {number + n}: q" for n in (1, 2)]
    (imported,) = as_json(run, "import", str(tmp_path / "a.json"))
    assert imported["id"] == number + 3
    assert imported["title"] == "q"
    assert len(as_json(run, "list")) == 4
    code, _, err = run("export", str(number), str(tmp_path / "a.md"))
    assert code == 1
    assert "There is a file" in err
    code, _, err = run("export", str(number), str(tmp_path / "b.md"), "--json")
    assert code == 2
    assert "ending" in err


def test_a_terminal_is_not_commanded(
    run: Run, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(history, "\x1b[31mred")
    assert "\x1b" in run("export", "last")[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = run("export", "last")[1]
    assert "\x1b" not in out
    assert "␛[31mred" in out


def test_what_cannot_be_imported(run: Run, history: History, tmp_path: Path) -> None:
    code, out, err = run("import", str(tmp_path / "no.md"))
    assert (code, out) == (1, "")
    assert "cannot be read" in err
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "no text in UTF-8" in run("import", str(tmp_path / "binary"))[2]
    (tmp_path / "notes.md").write_text("# Notes\n")
    assert "cannot be imported" in run("import", str(tmp_path / "notes.md"))[2]
    assert history.list() == []


def test_tidying_up(run: Run, history: History) -> None:
    first, second = talk(history, "one", "1"), talk(history, "two", "2")
    assert run("rename", str(first), "my", "first")[1] == f"{first} is called my first\n"
    assert run("rename", str(first))[1] == f"{first} is called one\n"
    assert run("move", str(first), "work")[1] == f"{first} is in work\n"
    assert run("move", str(first))[1] == f"{first} is in no folder\n"
    out = run("rm", str(first), "last")[1]
    assert "Removed: one\n" in out
    assert "Removed: two\n" in out
    assert f"`edgespec history restore {second}` brings it back" in out
    assert as_json(run, "list") == []
    assert [one["id"] for one in as_json(run, "list", "--deleted")] == [second, first]
    assert run("restore", str(first), str(second))[1] == "Brought back: one\nBrought back: two\n"
    assert run("rm", "--for-good", str(first))[1] == "Removed for good: one\n"
    assert [one["id"] for one in as_json(run, "list")] == [second]
    assert run("restore", str(first))[0] == 1


def test_what_is_not_there(run: Run, history: History) -> None:
    for arguments in (
        ("show", "7"),
        ("export", "7"),
        ("rename", "7", "x"),
        ("move", "7", "x"),
        ("rm", "7"),
        ("rm", "--for-good", "7"),
        ("restore", "7"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (1, "")
        assert "There is no conversation 7" in err
        assert "edgespec history list" in err
    code, _, err = run("show", "last")
    assert code == 1
    assert "No conversation is here." in err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("frob",),
        ("show",),
        ("show", "x"),
        ("show", "0"),
        ("show", "-1"),
        ("show", "9" * 30),
        ("list", "--limit", "0"),
        ("list", "--frob"),
        ("search",),
        ("--json",),
        ("import",),
        ("rm",),
    ],
)
def test_mistakes(run: Run, home: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("edgespec: ")
    assert not home.exists(), "nothing was opened for that"


def test_help(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    for arguments in (["--help"], ["list", "--help"], ["rm", "--help"]):
        with pytest.raises(SystemExit) as left:
            main(["history", *arguments])
        assert left.value.code == 0
        assert "usage: edgespec history" in capsys.readouterr().out
    assert not home.exists()


def test_a_damaged_history_is_told(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "history.db").write_bytes(b"damaged")
    code, out, err = run("list")
    assert (code, out) == (0, "No conversation is here.\n")
    assert "set aside as" in err
    (aside,) = home.glob("history.damaged-*.db")
    assert aside.read_bytes() == b"damaged"


def test_a_shell_without_a_place_for_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "edgespec", "history", "list"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=ROOT,
        env={**os.environ, "EDGESPEC_HOME": str(tmp_path / "file" / "x")},
        check=False,
    )
    refused(done, "cannot be used", "EDGESPEC_HOME")
