from __future__ import annotations

import pytest
from textual.content import Content

from tui.markdown import code as code_module
from tui.markdown.code import Code, lexer_for
from tui.markdown.document import Document

PYTHON = '''\
import os


class Reader:
    """Reads a thing.

    It's said to be "good" and def is not a keyword here.
    """

    def read(self, path: str) -> str:
        # a comment's end
        with open(path) as file:
            return file.read() + 'x'
'''
C = '/* a comment\n   over lines */\nint main(void) {\n    char *s = "a\\n";\n    return 0;\n}\n'


def looks(rows: list[Content]) -> list[tuple[object, ...]]:
    return [(row.plain, row.spans) for row in rows]


@pytest.mark.parametrize(("language", "text"), [("python", PYTHON * 20), ("c", C * 40)])
def test_code_that_grew_ends_in_the_colours_of_the_whole(language: str, text: str) -> None:
    text = text.removesuffix("\n")
    grown = Code(language)
    for end in range(1, len(text), 97):
        assert [row.plain for row in grown.rows(text[:end], complete=False)] == text[:end].split(
            "\n"
        )
    whole = Code(language).rows(text, complete=True)
    assert looks(grown.rows(text, complete=True)) == looks(whole)
    assert any(row.spans for row in whole)


def test_colours_are_right_while_code_grows() -> None:
    """A docstring is the hard case: its inside looks like code."""
    text = (PYTHON * 20).removesuffix("\n")
    whole = Code("python").rows(text, complete=True)
    grown = Code("python")
    wrong = total = 0
    for end in range(1600, len(text), 61):
        rows = grown.rows(text[:end], complete=False)[:-8]
        wrong += sum(one.spans != other.spans for one, other in zip(rows, whole, strict=False))
        total += len(rows)
    assert wrong / total < 0.01


def test_long_code_is_not_coloured_again_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured: list[int] = []
    original = code_module._coloured

    def counting(lexer: object, text: str) -> object:
        coloured.append(len(text))
        return original(lexer, text)  # type: ignore[arg-type]

    monkeypatch.setattr(code_module, "_coloured", counting)
    text = PYTHON * 60
    code, kept = Code("python"), 0
    rows: list[Content] = []
    for line in range(10, text.count("\n")):
        before = rows
        rows = code.rows("\n".join(text.split("\n")[:line]), complete=False)
        kept += sum(old is new for old, new in zip(before, rows, strict=False)) >= len(before) - 12
    assert sum(coloured) < 20 * len(text)
    assert kept > 0.95 * text.count("\n") - 30


def test_an_unknown_language_is_plain_and_keeps_its_rows() -> None:
    code = Code("klingon")
    first = list(code.rows("a\nb", complete=False))
    then = code.rows("a\nb\nc", complete=False)
    assert [row.plain for row in then] == ["a", "b", "c"]
    assert then[0] is first[0]
    assert not any(row.spans for row in then)


def test_names_of_languages() -> None:
    assert type(lexer_for("Python")) is type(lexer_for("py")) is type(lexer_for("python3"))
    assert lexer_for("py") is not None
    assert lexer_for("") is None
    assert lexer_for("no such thing") is None


@pytest.mark.parametrize(
    "language", ["python", "json", "yaml", "html", "bash", "ruby", "php", "text"]
)
def test_no_row_is_lost_in_any_language(language: str) -> None:
    text = '\n\na = 1\n  b: [2, "x"]\n<p>\n\n\n# end\n\n'
    for end in range(len(text)):
        rows = Code(language).rows(text[:end], complete=False)
        assert "\n".join(row.plain for row in rows) == text[:end]


def test_tabs_and_long_rows_are_folded_without_loss() -> None:
    document = Document("```make\nall:\n\t@echo " + "x" * 50 + "\n```\n")
    lines = document.lines(30)
    assert "".join(line.text.plain for line in lines[2:]) == "    @echo " + "x" * 50
    assert [line.joint for line in lines[2:]] == ["\n", "", ""]
    assert all(line.fill for line in lines)
