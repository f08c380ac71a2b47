"""What was said is kept: after leaving, after `kill -9`, beside another instance, on a full disk."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from edgespec.history.records import Entry
from edgespec.history.store import History
from tests.gguf_files import random_llama
from tests.terminal.app import (
    CUT,
    EMPTY_PROMPT,
    NOT_SAVED,
    SAVED_AGAIN,
    App,
    assert_clean,
)
from tests.terminal.conftest import Open, options
from tests.terminal.terminal import Terminal, flat

QUESTION = "What is the capital of France? Answer in one word."
STORY = "Write a long story about a river, a bridge and a boat."


@pytest.fixture
def home(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the app under test, for what is read of it in this process too."""
    monkeypatch.setenv("EDGESPEC_HOME", environment["EDGESPEC_HOME"])
    return Path(environment["EDGESPEC_HOME"])


def conversations() -> list[Sequence[Entry]]:
    """All that is kept, the newest conversation first."""
    history = History.open()
    try:
        assert history.notices == ()
        return [history.path(summary.id) for summary in history.list()]
    finally:
        history.close()


def kept(terminal: Terminal, text: str) -> None:
    """Wait until an answer with `text` in it is kept."""
    terminal.until(
        lambda: any(
            flat(text) in flat(entry.content) for path in conversations() for entry in path
        ),
        f"{text!r} in the history",
    )


def plain_line(terminal: Terminal) -> str:
    """The longest line of an answer on the screen that is nothing but words."""
    lines = re.findall(r"^ *([A-Za-z][A-Za-z ,.']{30,}) *$", terminal.screen(), re.MULTILINE)
    return max(lines, key=len, default="").strip()


def test_found_again_and_gone_on_with(open_terminal: Open, smollm2: list[str], home: Path) -> None:
    terminal = open_terminal()
    app = App(terminal, *smollm2)
    app.ready()
    app.ask(QUESTION)
    assert "Paris" in app.at_rest()
    assert app.quit() == 0
    (path,) = conversations()
    assert [entry.role for entry in path] == ["user", "assistant"]
    assert path[-1].complete

    app = App(terminal, *smollm2)
    app.ready()
    assert "Paris" not in terminal.screen()
    app.command("/history", expect="Open")
    terminal.type("/")
    terminal.wait(gone=("Open",))
    terminal.type("capit")
    terminal.wait("capit", "[capital] of France")
    terminal.press("Down")
    terminal.wait("Open")
    terminal.press("Enter")
    terminal.wait(QUESTION, "Paris", EMPTY_PROMPT)
    app.ask("And of Italy?")
    app.at_rest()
    assert app.quit() == 0
    (path,) = conversations()
    assert [entry.content for entry in path if entry.role == "user"] == [QUESTION, "And of Italy?"]
    assert_clean(terminal)


def test_killed_in_the_midst_of_an_answer(
    open_terminal: Open, smollm2: list[str], home: Path
) -> None:
    terminal = open_terminal()
    app = App(terminal, *smollm2)
    app.ready()
    app.ask(STORY)
    app.answering()
    terminal.until(lambda: bool(plain_line(terminal)), "a line of the story")
    seen = plain_line(terminal)
    kept(terminal, seen)
    app.process.send_signal(signal.SIGKILL)
    terminal.until(lambda: not terminal.shell.children(), "the end of the app")
    (path,) = conversations()
    assert flat(seen) in flat(path[-1].content)
    assert not path[-1].complete

    after = open_terminal()
    app = App(after, *smollm2)
    app.ready()
    app.command("/history", expect="Write a long story")
    after.press("Enter")
    after.wait(flat(path[-1].content)[-30:], EMPTY_PROMPT)
    app.command("/continue", expect=flat(path[-1].content)[-30:])
    app.answering()
    app.stop()
    assert app.quit() == 0
    assert_clean(after)


def test_two_at_once_in_one_home(open_terminal: Open, rambler: list[str], home: Path) -> None:
    terminals = [open_terminal(), open_terminal()]
    apps = [App(terminal, *rambler, "--max-tokens", "12") for terminal in terminals]
    for number, app in enumerate(apps):
        app.ready()
        app.ask(f"question {number}")
    for terminal in terminals:
        terminal.wait(CUT)
    for app in apps:
        assert app.quit() == 0
        assert_clean(app.terminal)
    asked = {path[0].content for path in conversations()}
    assert asked == {"question 0", "question 1"}
    assert all(len(path) == 2 for path in conversations())


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a running process: Linux only")
def test_a_disk_that_fills_up_and_is_cleared(
    open_terminal: Open, rambler: list[str], home: Path
) -> None:
    terminal = open_terminal()
    app = App(terminal, *rambler, "--max-tokens", "8")
    app.ready()
    app.ask("before")
    terminal.wait(CUT)
    kept(terminal, "before")
    process = app.process
    # No file may grow from here on, which to the program is what a full disk is.
    process.rlimit(psutil.RLIMIT_FSIZE, (1, psutil.RLIM_INFINITY))
    app.ask("while it is full")
    terminal.wait(CUT, NOT_SAVED)
    process.rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
    terminal.wait(SAVED_AGAIN)
    app.ask("after")
    kept(terminal, "after")
    assert app.quit() == 0
    assert_clean(terminal)
    (path,) = conversations()
    assert [entry.content for entry in path[::2]] == ["before", "while it is full", "after"]
    assert all(entry.content for entry in path[1::2])


def test_a_paste_of_50_kilobytes_is_sent_whole(
    open_terminal: Open, tmp_path: Path, home: Path
) -> None:
    text = "\n".join(f"line {number:04} {'=' * 50}" for number in range(840))
    assert len(text) > 50_000
    model = random_llama(tmp_path / "long.gguf", seed=1, context=32_768)
    terminal = open_terminal()
    app = App(terminal, *options(model, "--ctx", "32768", "--max-tokens", "4"))
    app.ready()
    terminal.type("Look: ")
    terminal.paste(text)
    terminal.type(" and say.")
    terminal.wait("and say.")
    assert "====" not in terminal.screen(), "a long paste is folded"
    terminal.press("Enter")
    app.at_rest()
    terminal.wait(CUT)
    assert app.quit() == 0
    assert_clean(terminal)
    (path,) = conversations()
    assert path[0].content == f"Look: {text} and say."
