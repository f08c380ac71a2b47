"""Terminals on which the app cannot paint are told so before it tries, with what to do."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping

import pytest

from edgespec.cli.terminal import encoding_problem, is_utf8, remedy, require_screen
from edgespec.errors import UsageError
from tests.cli.conftest import Run, options, refused
from tests.cli.pseudo_terminal import terminal
from tests.conftest import ModelFiles

POSIX = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
"""A locale without UTF-8 that every system has, with Python's own way out of it shut."""


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


def on(monkeypatch: pytest.MonkeyPatch, *, out: str = "utf-8", err: str = "utf-8") -> None:
    for name, encoding in (("stdin", "utf-8"), ("stdout", out), ("stderr", err)):
        monkeypatch.setattr(sys, name, Terminal(encoding))


@pytest.mark.parametrize(
    ("environment", "advice"),
    [
        ({}, "Set LANG="),
        ({"LANG": "de_DE.ISO-8859-1"}, "Set LANG="),
        ({"LANG": "C.UTF-8", "LC_CTYPE": "C"}, "Set LC_CTYPE="),
        ({"LANG": "C.UTF-8", "LC_ALL": "C", "LC_CTYPE": "C.UTF-8"}, "Set LC_ALL="),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}, "Unset PYTHONIOENCODING"),
    ],
)
def test_the_variable_that_wins_is_named(environment: Mapping[str, str], advice: str) -> None:
    assert remedy(environment).startswith(advice)
    assert not advice.startswith("Set") or remedy(environment).endswith(".UTF-8")


def test_windows_has_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgespec.cli.terminal.os.name", "nt")
    assert "chcp 65001" in remedy({})


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "U8", "cp65001"])
def test_utf_8_by_its_names(name: str) -> None:
    assert is_utf8(name)


@pytest.mark.parametrize("name", ["latin-1", "ANSI_X3.4-1968", "cp1252", "nonsense"])
def test_other_encodings(name: str) -> None:
    assert not is_utf8(name)


@pytest.mark.parametrize("place", ["out", "err"])
def test_both_streams_are_looked_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    on(monkeypatch)
    assert encoding_problem() == ""
    require_screen({"TERM": "xterm"})
    require_screen({})
    on(monkeypatch, **{place: "cp1252"})
    with pytest.raises(UsageError, match="cp1252, not UTF-8") as caught:
        require_screen({"TERM": "xterm"})
    assert "LANG=" in caught.value.hint
    assert "--plain" in caught.value.hint


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    on(monkeypatch)
    with pytest.raises(UsageError, match=f"TERM is {term}") as caught:
        require_screen({"TERM": term})
    assert "--plain" in caught.value.hint


def test_in_a_pipe_the_plain_chat_is_named(edgespec: Run) -> None:
    refused(edgespec("chat"), "terminal", "--plain", "edgespec run", code=2)


def test_the_app_does_not_begin_on_a_terminal_without_utf_8() -> None:
    with terminal("chat", **POSIX) as seen:
        assert seen.end() == 2
    assert "not UTF-8" in seen.shown
    assert "Set LC_ALL=" in seen.shown
    assert "\x1b" not in seen.shown


def test_nor_on_a_dumb_one() -> None:
    with terminal("chat", TERM="dumb") as seen:
        assert seen.end() == 2
    assert "--plain" in seen.shown
    assert "\x1b" not in seen.shown


def test_the_plain_chat_goes_on_and_says_what_becomes_of_letters(models: ModelFiles) -> None:
    more = ["--draft", "none", "--max-tokens", "4"]
    with terminal("chat", "--plain", *options(models.smollm2, *more), **POSIX) as seen:
        assert "Set LC_ALL=" in seen.until("You: ")
        seen.type("Say: naïve 東京 €\r")
        seen.until("Answer: ")
        seen.until("You: ")
        seen.type("/quit\r")
        assert seen.end() == 0
    assert "Traceback" not in seen.shown
