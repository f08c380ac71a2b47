"""What was sent from the prompt: one JSON line a message, kept across sessions.

Nobody needs this file to chat. So nothing here raises: what cannot be read or written is a line in
the log, and the history is then that of this session.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from tui.folding import Written, is_clean

MOST_ENTRIES = 500
MOST_BYTES = 100_000
"""The longest message that is kept across sessions. A part of one would be worse than none."""
LOCK_SECONDS = 5.0
_SLACK = 100
"""How many lines too many the file may have before it is written anew."""

log = logging.getLogger(__name__)


def default_path() -> Path:
    """Where the platform keeps a program's state, or the folder that EDGESPEC_HOME names."""
    given = os.environ.get("EDGESPEC_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute() / "prompts.jsonl"
    from platformdirs import user_state_path  # noqa: PLC0415 - not needed with EDGESPEC_HOME

    return user_state_path("edgespec", appauthor=False) / "prompts.jsonl"


class PromptHistory:
    """The file; several instances of the app may use it at once. Its methods wait for the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[Written]:
        """The newest entries, oldest first. Damaged lines are left out."""
        newest: list[tuple[bytes, Written]] = []
        try:
            if not self._path.exists():
                return []
            with self._locked():
                lines = self._path.read_bytes().split(b"\n")
                newest = _newest(lines)
                if len(lines) > MOST_ENTRIES + _SLACK:
                    self._rewrite(line for line, _ in newest)
        except (OSError, NotImplementedError) as error:
            log.warning("the history of prompts cannot be read: %s", error)
        return [entry for _, entry in newest]

    def append(self, written: Written) -> None:
        """Add what was sent, unless it is very long."""
        if len(written.text.encode(errors="replace")) > MOST_BYTES:
            return
        line = json.dumps({"text": written.text, "folds": written.folds}).encode() + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked(), open(self._path, "a+b", opener=_private) as file:
                # A process may have died in the midst of its line.
                file.write(line if _ends_a_line(file) else b"\n" + line)
        except (OSError, NotImplementedError) as error:
            log.warning("the history of prompts cannot be written: %s", error)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # noqa: PLC0415 - slow to import

        # A file of its own: the history itself is replaced when it is too long.
        with FileLock(self._path.with_suffix(".lock"), timeout=LOCK_SECONDS):
            yield

    def _rewrite(self, lines: Iterable[bytes]) -> None:
        whole = self._path.with_suffix(".new")
        with open(whole, "wb", opener=_private) as file:
            file.writelines(line + b"\n" for line in lines)
        whole.replace(self._path)


class Walk:
    """Moving through what was sent. Behind its newest entry is the text that is being written."""

    def __init__(self) -> None:
        self._entries: list[Written] = []
        self._position = 0
        self._draft = Written("")

    def begin_with(self, entries: list[Written]) -> None:
        """Put older entries before those that there are, which may be the end of them already."""
        own = {entry.text for entry in self._entries}
        older = list(entries)
        while older and older[-1].text in own:
            older.pop()
        self._entries[:0] = older
        self._position += len(older)

    def add(self, written: Written) -> bool:
        """Remember what was sent, and start anew behind it. False when it was sent just before."""
        new = not self._entries or self._entries[-1].text != written.text
        if new:
            self._entries.append(written)
        self._position = len(self._entries)
        self._draft = Written("")
        return new

    def is_at(self, written: Written) -> bool:
        """Whether `written` is the entry that was walked to, untouched."""
        return (
            self._position < len(self._entries)
            and self._entries[self._position].text == written.text
        )

    def earlier(self, current: Written) -> Written | None:
        """The entry before; None at the oldest. `current` is not lost when it is a text of its own."""
        if not self.is_at(current):
            # An entry that was changed is a new text.
            self._position = len(self._entries)
        if not self._position:
            return None
        if self._position == len(self._entries):
            self._draft = current
        self._position -= 1
        return self._entries[self._position]

    def later(self, current: Written) -> Written | None:
        """The entry after, at last the text that was being written; None when that is shown."""
        if not self.is_at(current):
            self._position = len(self._entries)
            return None
        self._position += 1
        at_end = self._position == len(self._entries)
        return self._draft if at_end else self._entries[self._position]

    def folded(self, text: str) -> Written:
        """`text` with the folds that it had when it was sent, if it was."""
        return next((e for e in reversed(self._entries) if e.text == text), Written(text))


def _newest(lines: Iterable[bytes]) -> list[tuple[bytes, Written]]:
    """The newest entries and their lines, each only once in a row: two instances may have sent it."""
    found: list[tuple[bytes, Written]] = []
    for line in lines:
        entry = _entry(line)
        if entry is not None and not (found and found[-1][1].text == entry.text):
            found.append((line, entry))
    return found[-MOST_ENTRIES:]


def _entry(line: bytes) -> Written | None:
    try:
        data = json.loads(line)
        text = data["text"]
        folds = tuple((int(start), int(end)) for start, end in data["folds"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    places = [0, *(place for fold in folds for place in fold)]
    if not isinstance(text, str) or not text or not is_clean(text) or places[-1] > len(text):
        return None
    if any(later < earlier for earlier, later in pairwise(places)):
        return None
    return Written(text, folds)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(path, flags, 0o600)


def _ends_a_line(file: BinaryIO) -> bool:
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
