"""What a person writes in the plain chat: lines, some of which belong together."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

FENCE = '"""'
FIRST, MORE = "You: ", "More: "
_KNOWS_PASTES, _PAINTS_PASTES = 0x0700, 0x0801
"""Versions of GNU readline; libedit, which stands in for it on some systems, has lower ones."""

Ask = Callable[[str], str]
"""Shows a prompt and returns a line without its end. Raises EOFError, KeyboardInterrupt."""


def read_message(ask: Ask) -> str:
    """One message. A line that ends in a backslash goes on in the next, and so do all between two
    lines of three quotation marks. Raises EOFError at the end of the input, KeyboardInterrupt.
    """
    line = ask(FIRST)
    if line.lstrip().startswith(FENCE):
        return _fenced(ask, line.lstrip().removeprefix(FENCE))
    lines = []
    while line.endswith("\\"):
        lines.append(line[:-1])
        try:
            line = ask(MORE)
        except EOFError:
            line = ""
    return "\n".join([*lines, line])


def _fenced(ask: Ask, line: str) -> str:
    lines = []
    while not line.rstrip().endswith(FENCE):
        lines.append(line)
        try:
            line = ask(MORE)
        except EOFError:
            line = FENCE
    lines.append(line.rstrip().removesuffix(FENCE))
    return "\n".join(lines).strip("\n")


def asker() -> Ask:
    """How to ask on stdin, of which no byte is an error."""
    reconfigure = getattr(sys.stdin, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    if sys.stdin is None or not sys.stdin.isatty():
        return _from_pipe
    _edit_lines()
    return input


def _from_pipe(_prompt: str) -> str:
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def _edit_lines() -> None:
    """Let `input` edit lines and walk through earlier ones, where the system can."""
    try:
        import readline  # noqa: PLC0415 - not on every system, and only for this
    except ImportError:
        return
    version: int = getattr(readline, "_READLINE_RUNTIME_VERSION", 0)
    if os.environ.get("TERM") not in {None, "dumb"} and version >= _KNOWS_PASTES:
        # Python turns it off: a paste of several lines would be as many messages.
        readline.parse_and_bind("set enable-bracketed-paste on")
        if version >= _PAINTS_PASTES:
            readline.parse_and_bind("set enable-active-region off")
