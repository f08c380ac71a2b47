"""Start, chat, stop, leave: what everybody does every day, in a terminal as everybody has one."""

from __future__ import annotations

import signal

import pytest

from tests.terminal.app import (
    CUT,
    EMPTY_PROMPT,
    READY,
    TITLE,
    App,
    assert_clean,
)
from tests.terminal.conftest import Open

STORY = "Write a long story about a river, a bridge and a boat."


def test_start_chat_stop_and_quit(open_terminal: Open, smollm2: list[str]) -> None:
    terminal = open_terminal()
    app = App(terminal, *smollm2)
    terminal.wait(TITLE, EMPTY_PROMPT)
    app.ready()
    assert terminal.flag("alternate_on")

    app.ask("What is the capital of France? Answer in one word.")
    assert "Paris" in app.at_rest()

    app.ask(STORY)
    app.answering()
    app.stop()
    terminal.type("I can type again")
    terminal.wait("I can type again")
    terminal.press("C-u")
    terminal.wait(EMPTY_PROMPT)

    assert app.quit() == 0
    assert_clean(terminal)


def test_a_message_of_several_lines(open_terminal: Open, smollm2: list[str]) -> None:
    terminal = open_terminal()
    app = App(terminal, *smollm2, "--max-tokens", "4")
    terminal.wait(EMPTY_PROMPT)
    # Written and sent while the model loads; these two ways to a new line work in every terminal.
    terminal.type("one")
    terminal.press("C-j")
    terminal.type("two")
    terminal.press("M-Enter")
    terminal.type("three")
    terminal.press("Enter")
    terminal.wait("one two three", CUT, EMPTY_PROMPT)
    terminal.wait(READY)
    assert app.quit() == 0
    assert_clean(terminal)


@pytest.mark.parametrize("how", ["key", "command", "signal"])
def test_leaving_while_it_answers(open_terminal: Open, rambler: list[str], how: str) -> None:
    terminal = open_terminal()
    app = App(terminal, *rambler)
    app.ready()
    app.ask("go on")
    app.answering()
    if how == "key":
        terminal.press("C-q")
    elif how == "command":
        app.terminal.type("/quit")
        app.terminal.press("Enter")
    else:
        app.process.send_signal(signal.SIGTERM)
    assert app.left() == 0
    assert_clean(terminal)


def test_a_model_that_is_not_there(open_terminal: Open) -> None:
    terminal = open_terminal()
    app = App(terminal, "--model", "no-such-model")
    terminal.wait("Nothing here is called no-such-model")
    assert app.left() == 1
    assert_clean(terminal)
