"""What a terminal must be able to do, told in words before anything is painted on one that cannot."""

from __future__ import annotations

import codecs
import locale
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from edgespec.errors import UsageError

PLAIN = "`edgespec chat --plain` works everywhere"


def require_screen(environment: Mapping[str, str]) -> None:
    """Raise UsageError where the app could not paint: in a pipe, on a dumb terminal, without UTF-8."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream is not None and stream.isatty() for stream in streams):
        raise UsageError(
            "The chat needs a terminal.",
            "In a pipe use `edgespec chat --plain`, or for a single answer `edgespec run`.",
        )
    term = environment.get("TERM", "")
    if term in {"dumb", "unknown"}:
        raise UsageError(
            f"TERM is {term}: the app cannot paint on such a terminal.",
            f"{PLAIN}; if the terminal can do more, set TERM to its kind, such as xterm-256color.",
        )
    problem = encoding_problem()
    if problem:
        raise UsageError(problem, f"{remedy(environment)}, or leave it: {PLAIN}.")


def encoding_problem() -> str:
    """A sentence on a terminal that is not written to in UTF-8; empty for one that is."""
    for stream in (sys.stdout, sys.stderr):
        encoding = encoding_of(stream)
        if not is_utf8(encoding):
            return f"The terminal's encoding is {encoding}, not UTF-8."
    return ""


def encoding_of(stream: TextIO | None) -> str:
    """What Python writes to a stream in."""
    return getattr(stream, "encoding", None) or locale.getpreferredencoding(False)


def is_utf8(encoding: str) -> bool:
    """Whether an encoding is UTF-8 by any of its names."""
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False


def remedy(environment: Mapping[str, str]) -> str:
    """How to get UTF-8: by the variable that wins over the others."""
    if environment.get("PYTHONIOENCODING"):
        return "Unset PYTHONIOENCODING"
    if os.name == "nt":
        return "Run `chcp 65001` first"
    name = next((one for one in ("LC_ALL", "LC_CTYPE") if environment.get(one)), "LANG")
    return f"Set {name}={'en_US' if sys.platform == 'darwin' else 'C'}.UTF-8"
