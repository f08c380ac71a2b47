"""The window changes, the app is put aside, terminals differ."""

from __future__ import annotations

import re
import signal

import psutil
import pytest

from tests.terminal.app import (
    EMPTY_PROMPT,
    TITLE,
    App,
    assert_clean,
)
from tests.terminal.conftest import Open
from tests.terminal.terminal import Terminal

SIZES = ((40, 12), (140, 40), (20, 6), (80, 24))


def test_resizing_while_it_answers(open_terminal: Open, smollm2: list[str]) -> None:
    terminal = open_terminal()
    app = App(terminal, *smollm2)
    app.ready()
    app.ask("Write a long story about a river, a bridge and a boat.")
    app.answering()
    for width, height in SIZES:
        resized(terminal, width, height)
    app.stop()
    at_rest = picture(terminal)
    for width, height in SIZES:
        resized(terminal, width, height)
    # What was painted in other sizes meanwhile has left no trace.
    terminal.until(lambda: picture(terminal) == at_rest, f"the same picture again:\n{at_rest}")
    assert app.quit() == 0
    assert_clean(terminal)


def resized(terminal: Terminal, width: int, height: int) -> None:
    """Change the size and wait until the app has followed."""
    terminal.resize(width, height)
    terminal.until(lambda: frame_width(terminal) == width, f"a frame of {width} columns")
    assert len(terminal.rows()) == height


def picture(terminal: Terminal) -> str:
    """The screen without the line of numbers, once it no longer changes."""
    seen = [""]

    def settled() -> bool:
        seen.append("\n".join(row for row in terminal.rows() if "ctx" not in row))
        return seen[-1] == seen[-2]

    terminal.until(settled, "an end of the painting")
    return seen[-1]


def frame_width(terminal: Terminal) -> int:
    """How wide the box of the prompt is drawn; 0 unless it is drawn once and whole."""
    tops = re.findall(r"^╭─+╮", terminal.screen(), re.MULTILINE)
    bottoms = re.findall(r"^╰.*╯", terminal.screen(), re.MULTILINE)
    return len(tops[0]) if len(tops) == len(bottoms) == 1 and len(tops[0]) == len(bottoms[0]) else 0


def test_suspended_and_resumed(open_terminal: Open, smollm2: list[str]) -> None:
    terminal = open_terminal()
    app = App(terminal, *smollm2)
    app.ready()
    app.ask("Write a long story about a river, a bridge and a boat.")
    app.answering()
    process = app.process
    terminal.press("C-z")
    terminal.until(lambda: process.status() == psutil.STATUS_STOPPED, "the stop of the process")
    assert not terminal.flag("alternate_on")
    terminal.line("echo the shell is here")
    terminal.wait("$ echo the shell is here", "the shell is here $")
    terminal.resize(100, 30)
    terminal.line("fg")
    terminal.wait(TITLE, "Write a long story")
    terminal.until(lambda: frame_width(terminal) == 100, "a frame of the new width")
    app.stop()
    app.ask("Write another one.")  # how long an answer gets is the model's affair
    app.answering()
    app.stop()
    assert app.quit() == 0
    assert_clean(terminal)


def test_stopped_and_continued_from_outside(open_terminal: Open, rambler: list[str]) -> None:
    """Not every stop asks first, and not every continuation was a stop before."""
    terminal = open_terminal()
    app = App(terminal, *rambler)
    app.ready()
    process = app.process
    process.send_signal(signal.SIGCONT)
    terminal.until(lambda: entered(terminal) == 2, "the terminal taken once more")
    # Were the keys read twice over, some would be missing here, or come in another order.
    letters = "abcdefghijklmnopqrstuvwxyz"
    for letter in letters:
        terminal.type(letter)
    terminal.wait(letters)
    process.send_signal(signal.SIGSTOP)
    terminal.wait("Stopped")
    terminal.type("fg")
    terminal.press("C-j")  # the terminal is as the app has left it, and Enter is no end of a line
    terminal.until(lambda: entered(terminal) == 3, "the terminal taken once more")
    terminal.type(" and so on")
    terminal.wait(TITLE, f"{letters} and so on", gone=("Stopped",))
    assert app.quit() == 0
    assert_clean(terminal)


def entered(terminal: Terminal) -> int:
    """How often the app has gone to the alternate screen."""
    return terminal.printed().count("\x1b[?1049h")


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "xterm-256color", "NO_COLOR": "1"},
        {"TERM": "screen", "COLORTERM": "", "LANG": "C", "LC_ALL": "C"},
        {"TERM": "linux", "COLORTERM": "", "LANG": "", "LC_ALL": ""},
    ],
    ids=["no colour", "screen in C", "linux console"],
)
def test_other_terminals(
    open_terminal: Open, rambler: list[str], environment: dict[str, str]
) -> None:
    terminal = open_terminal()
    app = App(terminal, *rambler, "--max-tokens", "8", environment=environment)
    app.ready()
    app.ask("Grüße")
    terminal.wait("Grüße", "cut: token budget", EMPTY_PROMPT)
    assert app.quit() == 0
    assert_clean(terminal)
    colours = re.findall(r"\x1b\[[\d;]*?([34]8;2;\d+;\d+;\d+)", terminal.printed())
    if "NO_COLOR" in environment:
        assert all(len(set(colour.split(";")[2:])) == 1 for colour in colours)
    elif environment["TERM"] == "linux":
        assert not colours


def test_put_aside_with_what_has_started_it(open_terminal: Open, rambler: list[str]) -> None:
    """`make chat` waits for the app, and the shell for `make`."""
    terminal = open_terminal()
    app = App(terminal, *rambler, by="sh -c 'sh {}; exit $?'")
    app.ready()
    process = app.process
    before = picture(terminal)
    terminal.press("C-z")
    terminal.until(lambda: process.status() == psutil.STATUS_STOPPED, "the stop of the process")
    terminal.wait("Stopped")
    terminal.line("echo the shell is here")
    terminal.wait("the shell is here $")
    # In the background it must not touch the terminal; it waits to be called.
    terminal.line("bg")
    terminal.line("echo still here")
    terminal.wait("echo still here still here")
    assert not terminal.flag("alternate_on")
    terminal.line("fg")
    terminal.until(lambda: picture(terminal) == before, "the same picture again")
    terminal.type("hello")
    terminal.wait("hello")
    assert app.quit() == 0
    assert_clean(terminal)


def test_without_a_shell_it_stays(open_terminal: Open, rambler: list[str]) -> None:
    """A terminal that runs nothing but the app could never bring it back."""
    terminal = open_terminal()
    app = App(terminal, *rambler, by="exec sh {}")
    app.ready()
    process = app.process
    terminal.press("C-z")
    terminal.wait("no shell here")
    process.send_signal(signal.SIGTSTP)
    terminal.type("hello")
    terminal.wait("hello")
    terminal.press("C-q")
    process.wait(60)
