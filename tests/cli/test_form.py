"""`--json-schema` and `--grammar`: refused in a sentence before any model is looked for, else held."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from edgespec.cli.main import main
from tests.cli.conftest import Run
from tests.grammar.checker import Json

BAD: list[tuple[str, str, str]] = [
    ("--grammar", 'root ::= "a"\n  other := "b"', "line 2, column 9: '::=' was expected"),
    ("--grammar", 'root ::= "a" | x', "line 1, column 16: there is no rule 'x'"),
    ("--grammar", "root ::= root", "line 1, column 1: 'root' never comes to an end"),
    ("--grammar", "root ::= " + "(" * 100_000, "more than 100 parentheses"),
    ("--grammar", "root ::=" + ' ("a")' * 30_000, "becomes too large"),
    ("--grammar", "", "there is no rule 'root'"),
    ("--json-schema", '{"type": ', "is no JSON: line 1, column 10"),
    ("--json-schema", "[" * 100_000, "is no JSON: nested too deeply"),
    ("--json-schema", '{"minimum": NaN}', "is no JSON: NaN is no number"),
    (
        "--json-schema",
        '{"items": {"not": {}}}',
        " #/items: no grammar can be made of this schema (",
    ),
    (
        "--json-schema",
        '{"$ref": "#"}',
        " #: no grammar can be made of this schema (it never comes to",
    ),
    ("--json-schema", '{"pattern": "' + "a?" * 100_000 + '"}', "too big"),
]


@pytest.mark.parametrize("command", [["run", "hello"], ["chat", "--plain"]])
@pytest.mark.parametrize(("option", "text", "message"), BAD)
def test_a_bad_file_is_named_with_the_place(
    command: list[str],
    option: str,
    text: str,
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "form.txt"
    file.write_text(text)
    assert main([*command, "--model", "nowhere.gguf", option, str(file)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"edgespec: {file}")
    assert message in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize("option", ["--grammar", "--json-schema"])
def test_a_file_that_cannot_be_read(
    option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    binary, large = tmp_path / "binary", tmp_path / "large"
    binary.write_bytes(b"root ::= \xff")
    large.write_text(" " * (1 << 20) + "x")
    for path, message in (
        (tmp_path / "missing", "cannot be read: no such file"),
        (tmp_path, "cannot be read: "),
        (binary, "is no text in UTF-8"),
        (large, "is larger than 1 MiB"),
    ):
        assert main(["run", "hello", option, str(path)]) == 2
        assert message in capfd.readouterr().err


def test_one_of_the_two(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hi", "--grammar", "a", "--json-schema", "b"]) == 2
    assert "not allowed with argument" in capfd.readouterr().err


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "form.txt"
    file.write_text("\ufeff{}", encoding="utf-8")
    assert main(["chat", "--plain", "--model", "nowhere.gguf", "--json-schema", str(file)]) == 1
    assert "nowhere.gguf" in capfd.readouterr().err


def test_an_answer_in_json(edgespec: Run, tiny: Sequence[str], tmp_path: Path) -> None:
    """Of a model that rambles; the schema leaves no room for it."""
    schema: Json = {"type": "array", "items": {"enum": ["é\n", 1]}, "minItems": 2, "maxItems": 3}
    file = tmp_path / "form.json"
    file.write_text(json.dumps(schema))
    more = ["--json-schema", str(file), "--draft", "lookup", "--draft-length", "4"]
    done = edgespec("run", "hello", *tiny, *more)
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert 2 <= len(value) <= 3
    assert set(value) <= {"é\n", 1}
    cut = edgespec("run", "hello", *tiny, *more, "--max-tokens", "2")
    assert cut.stderr == "(cut at --max-tokens)\n"
    assert done.stdout.startswith(cut.stdout.strip())


def test_a_chat_in_lines(edgespec: Run, tiny: Sequence[str], tmp_path: Path) -> None:
    file = tmp_path / "form.gbnf"
    file.write_text('root ::= "no " "no "{2} "never"')
    more = ["--plain", "--grammar", str(file), "--max-tokens", "3"]
    said = edgespec("chat", *tiny, *more, stdin="one\n/continue\n/continue\ntwo\n")
    assert said.returncode == 0
    answers = said.stdout.replace("Answer goes on: ", "").split("Answer: ")[1:]
    assert "no no no never".startswith(answers[1].strip())
    assert answers[0].replace("\n", "").startswith("no no no never")
