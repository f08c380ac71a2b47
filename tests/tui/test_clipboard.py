from __future__ import annotations

import base64
import stat
import sys
from pathlib import Path

import pytest
from textual.app import App

from tui.clipboard import (
    LONGEST,
    CodeBlock,
    CopyProblem,
    code_blocks,
    copy,
    last_code_block,
    obstacle_to_clipboard,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="file modes and TERM are POSIX")


class FakeApp:
    def __init__(self) -> None:
        self.copied: list[str] = []

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> FakeApp:
    monkeypatch.setenv("TERM", "xterm-256color")
    return FakeApp()


def test_a_copy_goes_to_the_terminal_and_to_a_file(app: FakeApp, tmp_path: Path) -> None:
    copied = copy(app, "text äöü", folder=tmp_path / "new" / "folder", suffix=".md")
    path = tmp_path / "new" / "folder" / "last-copy.md"
    assert app.copied == ["text äöü"]
    assert path.read_bytes() == "text äöü".encode()
    assert (copied.where, copied.sure, copied.file) == ("clipboard", False, path)
    assert copied.words == (
        f"sent to the terminal's clipboard; if it did not take it, the text is in {path}"
    )


@posix
def test_only_this_user_can_read_the_file(app: FakeApp, tmp_path: Path) -> None:
    path = tmp_path / "last-copy.txt"
    path.write_text("old")
    path.chmod(0o644)
    copy(app, "new", folder=tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "new"


@posix
def test_a_link_in_the_file_s_place_is_not_followed(app: FakeApp, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "last-copy.txt").symlink_to(victim)
    copy(app, "new", folder=tmp_path)
    assert victim.read_text() == "mine"


def test_too_long_for_a_terminal_goes_to_the_file_alone(app: FakeApp, tmp_path: Path) -> None:
    longest = "x" * (LONGEST // 4 * 3)
    assert len(base64.b64encode(longest.encode())) <= LONGEST
    assert copy(app, longest, folder=tmp_path).where == "clipboard"
    copied = copy(app, longest + "xxx", folder=tmp_path)
    assert app.copied == [longest]
    assert (copied.where, copied.sure) == (tmp_path / "last-copy.txt", True)
    assert copied.words.startswith("too long for a terminal's clipboard; the text is in ")


@posix
@pytest.mark.parametrize("term", ["dumb", "linux", ""])
def test_a_terminal_without_clipboard(
    app: FakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    copied = copy(app, "text", folder=tmp_path)
    assert app.copied == []
    assert copied.sure
    assert copied.words.startswith("this terminal has no clipboard; the text is in ")


def test_no_file_is_told(app: FakeApp, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    copied = copy(app, "text", folder=blocked)
    assert app.copied == ["text"]
    assert (copied.where, copied.sure, copied.file) == ("clipboard", False, None)
    assert "may not have taken it; no file could be written: " in copied.words


def test_neither_is_an_error(app: FakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(CopyProblem, match=r"too long .* no file could be written") as caught:
        copy(app, "x" * 80_000, folder=blocked)
    assert caught.value.hint
    assert app.copied == []


def test_half_characters_do_not_break_a_copy(app: FakeApp, tmp_path: Path) -> None:
    copy(app, "a\ud800b", folder=tmp_path)
    assert app.copied == ["a?b"]


def test_length_is_counted_in_bytes() -> None:
    assert obstacle_to_clipboard("ä" * 30_000, {"TERM": "xterm"}) != ""
    assert obstacle_to_clipboard("a" * 30_000, {"TERM": "xterm"}) == ""


@posix
async def test_textual_s_app_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    app: App[None] = App()
    async with app.run_test():
        assert copy(app, "hello", folder=tmp_path).where == "clipboard"
        assert app.clipboard == "hello"


NESTED = """\
Text `inline`.

````md
```python
inner
```
````

- item

  ~~~rust title="x"
  fn main() {}
  ~~~

> ```
> quoted
> ```

    indented
"""


def test_code_blocks_of_all_kinds() -> None:
    assert code_blocks(NESTED) == [
        CodeBlock("md", "```python\ninner\n```\n"),
        CodeBlock("rust", "fn main() {}\n"),
        CodeBlock("", "quoted\n"),
        CodeBlock("", "indented\n"),
    ]


def test_the_last_code_block() -> None:
    assert last_code_block(NESTED) == "indented\n"
    assert last_code_block("none `here`") is None
    assert last_code_block("```\nnever closed\n") == "never closed\n"
