"""From what a person writes or drops to files: paths, folders, patterns, and how terminals write them.

Looks at names and at the first bytes of files. A walk is bounded: `/**` must come back, too.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from edgespec.errors import EdgeSpecError

MAX_FILES = 200
"""Files that one folder or pattern may bring."""
MAX_ENTRIES = 50_000
"""Names that one search looks at."""
MAX_DROPPED = 20_000
"""Characters; a longer paste is no list of files."""
MAX_COMPLETIONS = 50
SAMPLE = 4096
"""Bytes at the start of a file that tell what it is."""

_WINDOWS = os.name == "nt"
_WILD = frozenset("*?[")
_LEFT_OUT = frozenset({"node_modules", "__pycache__"})
_ODD = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b\b"))
"""Control characters that texts, logs with colours among them, do not hold."""
_BOMS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
)

Content = Literal["text", "PDF", "binary"]


class AttachmentProblem(EdgeSpecError):  # noqa: N818 - as the problems of models, profiles, personas
    """A file that is not there, or that cannot be put into a message."""


@dataclass(frozen=True, slots=True)
class Found:
    """Files in the order in which they are to be sent."""

    paths: list[Path]
    notes: tuple[str, ...] = ()
    """What was left out, in sentences."""


def never() -> bool:
    """For searches that nobody stops."""
    return False


def content_of(start: bytes) -> Content:
    """What a file is that begins with these bytes."""
    if start.startswith(b"%PDF-"):
        return "PDF"
    if start.startswith(_BOMS):
        return "text"
    odd = len(start) - len(start.translate(None, _ODD))
    return "binary" if b"\0" in start or odd > len(start) // 50 else "text"


def expand(pattern: str) -> list[Path]:
    """The files that a path, a folder or a pattern means. Raises AttachmentProblem."""
    return survey(pattern).paths


def survey(pattern: str, stopped: Callable[[], bool] = never) -> Found:
    """The files that a path, a folder, a pattern with *, ?, [] and ** or a dropped text means.

    A path that exists is itself, whatever is in it. Folders and patterns bring files that hold
    something and are text or PDF. `stopped` may end a search early, from any thread; what is found
    then means nothing. Raises AttachmentProblem where there is no such file.
    """
    text = pattern.strip()
    if not text:
        raise AttachmentProblem("No file is named.", "Give a path, a folder or notes/*.md.")
    path = Path(os.path.expanduser(text))
    walk = _Walk(stopped)
    if os.path.isdir(path):
        return _chosen(walk.matches(path, ("**", "*")), walk, text)
    if os.path.lexists(path):
        return Found([path])
    parts_of_drop = [survey(str(one), stopped) for one in dropped(text)]
    if parts_of_drop:
        paths = [one for found in parts_of_drop for one in found.paths]
        return Found(paths, tuple(note for found in parts_of_drop for note in found.notes))
    if not _is_pattern(text):
        raise _missing(path, text)
    parts = path.parts[1:] if path.anchor else path.parts
    return _chosen(walk.matches(Path(path.anchor), parts), walk, text)


def complete(text: str) -> list[str]:
    """What a path in the making may become, in order; each begins with `text`, folders end with `/`."""
    if not text or _is_pattern(text):
        return []
    if text == "~":
        return ["~/"]
    cut = max(text.rfind("/"), text.rfind(os.sep)) + 1
    head, tail = text[:cut], text[cut:]
    entries = _Walk(never).entries(Path(os.path.expanduser(head) or "."))
    near = (
        entry
        for entry in entries
        if entry.name.startswith(tail)
        and (tail.startswith(".") or not entry.name.startswith("."))
        and entry.name.isprintable()
    )
    return [
        f"{head}{entry.name}{'/' if os.path.isdir(entry.path) else ''}"
        for entry in islice(near, MAX_COMPLETIONS)
    ]


def dropped(text: str) -> list[Path]:
    """The files and folders of a text that is nothing else, as terminals write what is dragged there.

    Quoted, with escaped spaces, as file:// URLs, or bare; between spaces or on lines of their own.
    Empty unless all are absolute and exist: a paste of words must stay one.
    """
    if len(text) > MAX_DROPPED:
        return []
    found: list[Path] = []
    for line in filter(None, map(str.strip, re.split(r"[\r\n]+", text))):
        whole = _existing(line)
        pieces = [whole] if whole else [_existing(piece) for piece in pieces_of(line)]
        if not pieces or not all(pieces):
            return []
        found += filter(None, pieces)
    return list(dict.fromkeys(found))


def pieces_of(line: str, *, windows: bool = _WINDOWS) -> list[str]:
    """The words of a line as a shell reads them; none where quotes have no end."""
    if windows:
        return [quoted or bare for quoted, bare in re.findall(r'"([^"]+)"|(\S+)', line)]
    try:
        return shlex.split(line)
    except ValueError:
        return []


def from_url(text: str, *, windows: bool = _WINDOWS) -> str | None:
    """The path of a file:// URL of this machine, `text` itself where it is no URL, None for another."""
    if not text.casefold().startswith("file:"):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if parts.netloc not in {"", "localhost", os.uname().nodename if not windows else ""}:
        return None
    path = unquote(parts.path)
    return path[1:] if windows and re.match(r"/[A-Za-z]:", path) else path


class _Walk:
    """Looks through folders, and knows when it has seen enough."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._seen = 0
        self._known: dict[Path, list[os.DirEntry[str]]] = {}
        self.cut = False
        """Whether there was more than it may look at."""
        self.closed = 0
        """Folders that may not be read."""

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """What is in a folder, by name; `**` asks twice."""
        if folder not in self._known:
            self._known[folder] = self._read(folder)
        return self._known[folder]

    def _read(self, folder: Path) -> list[os.DirEntry[str]]:
        if self._stopped():
            return []
        room = MAX_ENTRIES - self._seen
        try:
            with os.scandir(folder) as inside:
                found = list(islice(inside, room))
                self.cut |= next(inside, None) is not None
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: no file's name
            return []
        except OSError:
            self.closed += 1
            return []
        self._seen += len(found)
        return sorted(found, key=lambda entry: entry.name)

    def matches(self, base: Path, parts: Sequence[str]) -> Iterator[Path]:
        """What the parts of a pattern mean below `base`. A path may come more than once."""
        head, rest = parts[0], parts[1:]
        if head == "**":
            for folder in self._folders(base):
                yield from self.matches(folder, rest or ("*",))
        elif not _is_pattern(head):
            if rest or os.path.lexists(base / head):
                yield from self.matches(base / head, rest) if rest else (base / head,)
        else:
            for entry in self.entries(base):
                if not _matches(entry.name, head):
                    continue
                if not rest:
                    yield base / entry.name
                elif entry.name not in _LEFT_OUT and os.path.isdir(base / entry.name):
                    yield from self.matches(base / entry.name, rest)

    def _folders(self, base: Path) -> Iterator[Path]:
        """`base` and all folders below it; no links, which may lead round in a circle."""
        waiting = [base]
        while waiting:
            folder = waiting.pop()
            yield folder
            waiting += [
                folder / entry.name
                for entry in reversed(self.entries(folder))
                if not entry.name.startswith(".")
                and entry.name not in _LEFT_OUT
                and entry.is_dir(follow_symlinks=False)
            ]


def _chosen(matches: Iterator[Path], walk: _Walk, text: str) -> Found:
    """The files among the matches, as many as may be taken."""
    paths: list[Path] = []
    seen: set[Path] = set()
    others = 0
    more = False
    for path in matches:
        if path in seen or os.path.isdir(path):
            continue
        seen.add(path)
        if not _can_be_read(path):
            others += 1
        elif len(paths) < MAX_FILES:
            paths.append(path)
        else:
            more = True
            break
    notes = []
    if more:
        notes.append(f"Only the first {MAX_FILES} files of {text} are taken.")
    if others:
        what = "1 file" if others == 1 else f"{others} files"
        notes.append(f"Left out of {text}: {what}, empty or neither text nor PDF.")
    if walk.closed:
        what = "1 folder" if walk.closed == 1 else f"{walk.closed} folders"
        notes.append(f"Left out of {text}: {what} that may not be read.")
    if walk.cut:
        notes.append(f"{text} holds more than {MAX_ENTRIES} names: not all were looked at.")
    if not paths:
        raise AttachmentProblem(f"{text} brings no file that can be attached.", " ".join(notes))
    return Found(paths, tuple(notes))


def _can_be_read(path: Path) -> bool:
    """Whether a file holds text, or is a PDF."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe could wait for ever
            return False
        with path.open("rb") as file:
            start = file.read(SAMPLE)
    except OSError:
        return False
    return bool(start) and content_of(start) != "binary"


def _existing(text: str) -> Path | None:
    """The file or folder that an absolute path or a URL names; the root is none."""
    place = from_url(text)
    if place is None or not os.path.isabs(place) or not os.path.exists(place):
        return None
    path = Path(place)
    return None if path == Path(path.anchor) else path


def _is_pattern(text: str) -> bool:
    return not _WILD.isdisjoint(text)


def _matches(name: str, pattern: str) -> bool:
    """As shells have it: a hidden name must be asked for with its dot."""
    return fnmatch(name, pattern) and (pattern.startswith(".") or not name.startswith("."))


def _missing(path: Path, text: str) -> AttachmentProblem:
    names = [entry.name for entry in _Walk(never).entries(path.parent)]
    near = get_close_matches(path.name, names, n=1)
    return AttachmentProblem(
        f"{text} does not exist.",
        f"Did you mean {path.parent / near[0]}?"
        if near
        else "Give a path, a folder or notes/*.md.",
    )
