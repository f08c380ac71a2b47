"""Texts that lookup draws on beside the conversation: files that are named, and past conversations.

They are read, tokenised as the target does, and sorted, once at the start; nothing of them leaves the
machine. Of files, what took more than a second is kept in the platform's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol

import numpy as np

from edgespec.attachments import AttachmentProblem, read, survey
from edgespec.drafters.contexts import Contexts, parted
from edgespec.errors import UsageError
from edgespec.finding import Found
from edgespec.history.problem import HistoryProblem
from edgespec.model import Token
from edgespec.settings import Load
from model_registry.pairing import Vocabulary

MOST_CHARACTERS = 8 << 20
"""Of all named files together: some two million tokens, which take 24 MB."""
MOST_OF_HISTORY = 1 << 20
"""Characters of past conversations, the newest ones; they are tokenised anew each time."""
SLOW_SECONDS = 1.0
"""What took longer is cached."""
MOST_KEPT = 8
"""Results in the cache; of more the oldest go."""

_FORMAT = b"edgespec corpus 1\n"


class Words(Protocol):
    """What of a target's tokenizer is needed."""

    def tokenize(self, text: str, *, special: bool) -> list[Token]:
        """Tokens of `text`."""
        ...

    def vocabulary(self) -> Vocabulary:
        """What tells it from others."""
        ...


def gathered(load: Load, words: Words) -> tuple[list[Contexts], list[str]]:
    """All texts that `load` asks for, and what the user should know about them. Raises UsageError."""
    parts: list[Contexts] = []
    notices: list[str] = []
    if load.corpus:
        files, notices = from_files(load.corpus, words)
        parts.append(files)
    if load.from_history:
        past, told = from_history(words)
        parts += [past] if past else []
        notices += told
    return parts, notices


def check_files(patterns: Sequence[str]) -> None:
    """Raise UsageError for one that brings no file: before a model is loaded, which takes long."""
    for pattern in patterns:
        _survey(pattern)


def from_files(
    patterns: Sequence[str],
    words: Words,
    *,
    folder: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Contexts, list[str]]:
    """What the files, folders and patterns hold, and what the user should know about it.

    `folder` is that of the cache. Raises UsageError for a path that brings nothing.
    """
    texts, notices = _texts(patterns)
    folder = folder or cache_folder()
    name = f"{_digest(words.vocabulary(), texts)}.npz"
    found = _load(folder / name)
    if found is None:
        begun = clock()
        found = _contexts(texts, words)
        if clock() - begun > SLOW_SECONDS:
            with suppress(OSError):  # a disk that is full or closed only costs the time again
                _save(folder, name, found)
    return found, [f"--corpus: {text}" for text in notices]


def from_history(words: Words) -> tuple[Contexts | None, list[str]]:
    """What was said in past conversations, and what the user should know about it. Never raises."""
    from edgespec.history.database import default_path  # noqa: PLC0415 - most need no SQLite

    if not default_path().exists():
        return None, ["There are no past conversations to learn from yet."]
    from edgespec.history.store import History  # noqa: PLC0415

    try:
        with closing(History.open()) as history:
            said = (
                entry.content
                for summary in history.list()
                for entry in reversed(history.path(summary.id))
                if entry.role != "system"
            )
            newest = list(_upto(MOST_OF_HISTORY, said))
            return _contexts(newest[::-1], words), list(history.notices)
    except HistoryProblem as problem:
        return None, [f"Past conversations are not used. {problem}"]


def cache_folder() -> Path:
    """In the folder that EDGESPEC_HOME names, or else in the platform's for caches."""
    if given := os.environ.get("EDGESPEC_HOME", "").strip():
        return Path(os.path.expanduser(given)).absolute() / "corpus"
    from platformdirs import user_cache_path  # noqa: PLC0415 - not needed with EDGESPEC_HOME

    return user_cache_path("edgespec", appauthor=False) / "corpus"


def _contexts(texts: Iterable[str], words: Words) -> Contexts:
    return Contexts(parted(words.tokenize(text, special=False) for text in texts))


def _texts(patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    """The texts, each file's once, and notices. Raises UsageError."""
    notices: list[str] = []
    named: dict[Path, bool] = {}
    """Files, and whether a person named this very one."""
    for pattern in patterns:
        found = _survey(pattern)
        notices += found.notes
        for path in found.paths:
            named.setdefault(Path(os.path.abspath(path)), len(found.paths) == 1)
    texts = list(_upto(MOST_CHARACTERS, _read(named, notices)))
    if sum(map(len, texts)) == MOST_CHARACTERS:
        notices.append(f"Only the first {MOST_CHARACTERS >> 20} million characters are used.")
    return texts, notices


def _survey(pattern: str) -> Found:
    try:
        return survey(pattern)
    except AttachmentProblem as problem:
        raise _refused(problem) from problem


def _read(named: dict[Path, bool], notices: list[str]) -> Iterator[str]:
    for path, alone in named.items():
        try:
            attachment = read(path)
        except AttachmentProblem as problem:
            if alone:
                raise _refused(problem) from problem
            notices.append(f"Left out: {problem.message}")
            continue
        if attachment.note:
            notices.append(attachment.note)
        yield attachment.text


def _refused(problem: AttachmentProblem) -> UsageError:
    return UsageError(f"--corpus: {problem.message}", "Name a file or a folder that holds text.")


def _upto(most: int, texts: Iterable[str]) -> Iterator[str]:
    """The texts until they have `most` characters, the last one cut."""
    for text in texts:
        yield text[:most]
        most -= len(text)
        if most <= 0:
            return


def _digest(vocabulary: Vocabulary, texts: Iterable[str]) -> str:
    """Of the tokens that the texts will give."""
    of_token = vocabulary.text if callable(vocabulary.text) else vocabulary.text.__getitem__
    digest = hashlib.sha256(_FORMAT)
    for part in (str(vocabulary.type).encode(), *map(of_token, range(vocabulary.size))):
        digest.update(b"%d\n" % len(part) + part)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d\n" % len(data) + data)
    return digest.hexdigest()[:32]


def _load(path: Path) -> Contexts | None:
    """What was kept; None where there is nothing of use."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            tokens, order = kept["tokens"], kept["order"]
        path.touch()
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None
    sound = tokens.dtype == order.dtype == np.int32 and tokens.ndim == order.ndim == 1
    if not sound or (len(order) and not 0 <= order.min() <= order.max() < len(tokens)):
        return None
    return Contexts(tokens, order)


def _save(folder: Path, name: str, found: Contexts) -> None:
    """Whole or not at all; only the owner may read it. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
        part = Path(file.name)
        try:
            np.savez(file, tokens=found.tokens, order=found.order)
            file.close()
            part.replace(folder / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    kept = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in kept[MOST_KEPT:]:
        old.unlink(missing_ok=True)
