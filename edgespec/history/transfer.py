"""Conversations out of the history and into it: Markdown for people, JSON with all branches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from edgespec.history import markdown
from edgespec.history.problem import HistoryProblem
from edgespec.history.store import History

JSON_FORMAT = "edgespec-conversation"
JSON_VERSION = 1
MARKDOWN = (".md", ".markdown", ".txt")
"""Endings of files that are written as Markdown."""

_LONGEST_NAME = 60


def to_markdown(history: History, conversation: int) -> str:
    """What is shown of it. Raises HistoryProblem."""
    return markdown.written(history.summary(conversation), history.path(conversation))


def to_json(history: History, conversation: int) -> str:
    """All of it. The keys are a published format. Raises HistoryProblem."""
    whole = history.whole(conversation)
    summary = whole.summary
    return _dumped(
        {
            "format": JSON_FORMAT,
            "version": JSON_VERSION,
            "title": summary.title,
            "folder": summary.folder,
            "model": summary.model,
            "persona": summary.persona,
            "created_at": summary.created_at.isoformat(),
            "updated_at": summary.updated_at.isoformat(),
            "head": whole.head,
            "messages": [
                {
                    "id": entry.id,
                    "parent": entry.parent,
                    "role": entry.role,
                    "content": entry.content,
                    "complete": entry.complete,
                    "model": entry.model,
                    "stats": dict(entry.stats),
                    "created_at": entry.created_at.isoformat(),
                }
                for entry in whole.entries
            ],
        }
    )


def import_text(history: History, text: str, name: str) -> int:
    """Store the conversation of a file; of several, the last one's id. Raises HistoryProblem."""
    return import_all(history, text, name)[-1]


def import_all(history: History, text: str, name: str) -> Sequence[int]:
    """Store all conversations of a file, at least one: Markdown or JSON of ours, JSON of others.

    Others' are lists of messages with `role` and `content`, by themselves or as `messages` of an object,
    and the exports of ChatGPT. `name` is the file's, for errors. Raises HistoryProblem.
    """
    from edgespec.history import imports  # noqa: PLC0415 - pydantic is slow to import

    return [history.take(whole) for whole in imports.read(text, name)]


def export_file(history: History, conversation: int, path: Path | None = None) -> Path:
    """Write it to a new file; returns which. The ending `.json` gives JSON, none or one of `MARKDOWN`'s
    gives Markdown.

    Without `path` it is named by its title, in the current folder, or at home where that cannot be
    written to. A file that exists is never overwritten. Raises HistoryProblem.
    """
    if path is not None:
        wanted = path.expanduser()
        ending = wanted.suffix.lower()
        if ending not in {"", ".json", *MARKDOWN}:
            raise HistoryProblem(
                f"A conversation cannot be written as {ending}.", "Name a file in .md or .json."
            )
        made = to_json if ending == ".json" else to_markdown
        return _first_written([wanted], made(history, conversation))
    text = to_markdown(history, conversation)
    stem = _file_stem(history.summary(conversation).title)
    try:
        return _first_written(_numbered(Path.cwd() / stem), text)
    except HistoryProblem:
        return _first_written(_numbered(Path.home() / stem), text)


def _first_written(candidates: Iterable[Path], text: str) -> Path:
    """Write to the first one that is not there yet. Raises HistoryProblem."""
    path = Path()
    for path in candidates:
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            with suppress(OSError):
                path.unlink(missing_ok=True)  # what is written of it is not whole
            raise HistoryProblem(
                f"{path} cannot be written: {error.strerror or error}.", "Choose another place."
            ) from error
        return path
    raise HistoryProblem(f"There is a file or folder {path} already.", "Choose another name.")


def _numbered(path: Path) -> Iterator[Path]:
    yield path.with_name(f"{path.name}.md")
    for number in range(2, 1000):
        yield path.with_name(f"{path.name}-{number}.md")


def _file_stem(title: str) -> str:
    """Of letters and digits of any script, so that it is a name on every system."""
    words = re.findall(r"\w+", title)
    return "-".join(words)[:_LONGEST_NAME].rstrip("-") or "conversation"


def _dumped(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
