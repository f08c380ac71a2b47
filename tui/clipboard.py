"""Copying: to the terminal's clipboard where that can work, and always to a file beside it.

A program asks a terminal to copy with an escape sequence (OSC 52), and is never told whether the
terminal did. So the words about a copy say only what is known, and the text is in a file as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from edgespec.errors import EdgeSpecError

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST = 74_994
"""Characters in base64 that common terminals and tmux take in one sequence; longer ones they drop."""
DEAF_TERMINALS = ("dumb", "linux", "unknown", "")
"""Values of TERM for terminals that have no clipboard."""


class CopyProblem(EdgeSpecError):  # noqa: N818 - as the problems of the other parts
    """A text that could be put neither into a clipboard nor into a file."""


class Copier(Protocol):
    """What a Textual app can do."""

    def copy_to_clipboard(self, text: str) -> None:
        """Ask the terminal."""
        ...


@dataclass(frozen=True, slots=True)
class Copied:
    """Where a text went."""

    where: Literal["clipboard"] | Path
    sure: bool
    """Whether it is known to be there: a file is, a terminal's clipboard never."""
    file: Path | None = None
    """The file that holds it too; None where none could be written."""
    problem: str = ""
    """Why it is not in the other place."""

    @property
    def words(self) -> str:
        """What happened, for the person who asked."""
        if isinstance(self.where, Path):
            return f"{self.problem}; the text is in {self.where}"
        sent = "sent to the terminal's clipboard"
        if self.file is None:
            return f"{sent}, which may not have taken it; no file could be written: {self.problem}"
        return f"{sent}; if it did not take it, the text is in {self.file}"


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A piece of code in an answer."""

    language: str
    """The first word behind the fence; empty where there is none."""
    code: str


def copy(app: Copier, text: str, *, folder: Path | None = None, suffix: str = ".txt") -> Copied:
    """Copy `text`; the file is `last-copy` with `suffix` in `folder` or the platform's cache folder.

    It writes a file: call it in a thread worker where the text is long. Raises CopyProblem.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    file, problem = None, ""
    try:
        file = _save(text, _folder() if folder is None else folder, suffix)
    except OSError as error:
        problem = error.strerror or str(error)
    obstacle = obstacle_to_clipboard(text, os.environ)
    if not obstacle:
        app.copy_to_clipboard(text)
        return Copied("clipboard", sure=False, file=file, problem=problem)
    if file is None:
        raise CopyProblem(
            f"Not copied: {obstacle}, and no file could be written ({problem}).",
            "Make room, or select the text with the mouse while holding Shift.",
        )
    return Copied(file, sure=True, file=file, problem=obstacle)


def obstacle_to_clipboard(text: str, environment: Mapping[str, str]) -> str:
    """Why the terminal cannot take `text`; empty where it may."""
    if sys.platform != "win32" and environment.get("TERM", "") in DEAF_TERMINALS:
        return "this terminal has no clipboard"
    if -(-len(text.encode()) // 3) * 4 > LONGEST:
        return "too long for a terminal's clipboard"
    return ""


def code_blocks(markdown: str) -> list[CodeBlock]:
    """All code in a text, fenced or indented, in the order it stands."""
    from tui.markdown.inline import dialect  # noqa: PLC0415 - slow to import, needed for copying

    tokens = dialect().parse(markdown)
    return [_block(token) for token in tokens if token.type in ("fence", "code_block")]


def last_code_block(markdown: str) -> str | None:
    """The code that stands last in a text; None where there is none."""
    blocks = code_blocks(markdown)
    return blocks[-1].code if blocks else None


def _block(token: Token) -> CodeBlock:
    words = token.info.split()
    return CodeBlock(words[0] if words else "", token.content)


def _folder() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 - needed for copying

    return user_cache_path("edgespec", appauthor=False)


def _save(text: str, folder: Path, suffix: str) -> Path:
    """Write the text where only this user can read it. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"last-copy{suffix}"
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)
    return path
