"""Files as parts of a message: read as text, put before the question in named fences, found again there.

Nothing is executed and nothing is fetched. What `finding` finds is offered here, too.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgespec.finding import (
    SAMPLE,
    AttachmentProblem,
    complete,
    content_of,
    dropped,
    expand,
    never,
    survey,
)
from edgespec.languages import MARKDOWN, PLAIN, language_of

__all__ = [
    "Attachment",
    "AttachmentProblem",
    "block",
    "complete",
    "compose",
    "dropped",
    "expand",
    "gather",
    "read",
    "reword",
    "split",
    "survey",
]

MAX_TEXT = 8 << 20
"""Bytes of text in one file; far more than any context holds, and still quick to count."""
MAX_PDF = 64 << 20
"""Bytes of a PDF, which holds pictures and fonts as well."""

Kind = Literal["text", "Markdown", "code", "PDF"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OLD = (("cp1252", "Windows-1252"), ("latin-1", "Latin-1"))
"""Encodings to try where a text is not UTF-8; the last one fits everything."""
_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_HEAD = re.compile(r"(?:1 file is|(\d{1,6}) files are) attached\.\n\n")
_OPENING = re.compile(r"File: ([^\n]+)\n(`{3,})[^\n`]*\n")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that was read."""

    path: Path
    """Absolute."""
    name: str
    """As the model is told: relative to the working folder or to `~` where it lies there; printable."""
    kind: Kind
    text: str
    """With `\\n` at the ends of lines; never blank."""
    size: int = 0
    """Bytes of the file."""
    note: str = ""
    """What is to be known about how it was read, in a sentence."""


def read(path: Path, stopped: Callable[[], bool] = never) -> Attachment:
    """Read a file as text. Takes long for a large PDF; `stopped` may end that early, from any thread,
    and the text is then a part.

    Raises AttachmentProblem for what is missing, too large, empty or no text.
    """
    path = _absolute(path)
    name = shown_name(path)
    data = _bytes(path, name)
    if content_of(data[:SAMPLE]) == "PDF":
        from edgespec.pdf import text_of  # noqa: PLC0415 - its library is slow to load

        text, note = text_of(data, name, MAX_TEXT, stopped)
        return Attachment(path, name, "PDF", _tidy(text), len(data), note)
    if path.suffix.casefold() == ".pdf":
        raise AttachmentProblem(
            f"{name} is called a PDF, but is none.", "Look at where it is from."
        )
    text, note = _decoded(data, name)
    text = _tidy(text)
    if not text.strip():
        raise AttachmentProblem(f"{name} is empty.", "Attach a file that holds text.")
    language = language_of(name)
    kind: Kind = "Markdown" if language == MARKDOWN else "text" if language == PLAIN else "code"
    return Attachment(path, name, kind, text, len(data), note)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What several paths and patterns brought."""

    attachments: tuple[Attachment, ...]
    notes: tuple[str, ...]
    """What was left out, and how some were read."""


def gather(patterns: Iterable[str]) -> Gathered:
    """Read all that is meant. Raises AttachmentProblem for a file that was named and cannot be read;
    one of many that a folder or a pattern brought is left out with a note.
    """
    read_so_far: dict[Path, Attachment] = {}
    notes: list[str] = []
    for pattern in patterns:
        found = survey(pattern)
        notes += found.notes
        for path in found.paths:
            try:
                attachment = read(path)
            except AttachmentProblem as problem:
                if len(found.paths) == 1:
                    raise
                notes.append(f"Left out: {problem.message}")
                continue
            if attachment.note and attachment.path not in read_so_far:
                notes.append(attachment.note)
            read_so_far[attachment.path] = attachment
    return Gathered(tuple(read_so_far.values()), tuple(notes))


def block(attachment: Attachment) -> str:
    """One file as it stands in a message, in a fence that nothing in it can end."""
    longest = max((len(ticks) for ticks in _FENCE.findall(attachment.text)), default=2)
    fence = "`" * (longest + 1)
    language = PLAIN if attachment.kind == "PDF" else language_of(attachment.name)
    end = "" if attachment.text.endswith("\n") else "\n"
    return f"File: {attachment.name}\n{fence}{language}\n{attachment.text}{end}{fence}"


def compose(text: str, attachments: Sequence[Attachment]) -> str:
    """A message: the files, then the question, which small models answer better when it comes last."""
    if not attachments:
        return text
    count = len(attachments)
    head = "1 file is attached." if count == 1 else f"{count} files are attached."
    return "\n\n".join([head, *map(block, attachments), *([text] if text else [])])


def split(content: str) -> tuple[str, tuple[str, ...]]:
    """The question and the names of the files of a message that `compose` made.

    Of any other message the whole is the question. One that a person typed in this very form is
    taken for one with files: for display that does no harm.
    """
    head = _HEAD.match(content)
    if head is None:
        return content, ()
    names = []
    end = head.end()
    for number in range(int(head[1] or 1)):
        if number:
            if not content.startswith("\n\n", end):
                return content, ()
            end += 2
        opening = _OPENING.match(content, end)
        closing = opening and _closing(content, opening)
        if not opening or not closing:
            return content, ()
        names.append(opening[1])
        end = closing.end()
    rest = content[end:]
    if rest and not rest.startswith("\n\n"):
        return content, ()
    return rest[2:], tuple(names)


def reword(content: str, text: str) -> str:
    """The message with another question and the same files."""
    question, names = split(content)
    if not names:
        return text
    files = content.removesuffix(f"\n\n{question}") if question else content
    return f"{files}\n\n{text}" if text else files


def shown_name(path: Path) -> str:
    """How a file is called in a message: short, unambiguous, and safe to print."""
    whole = _absolute(path)
    name = whole.as_posix()
    for base, short in ((_absolute(Path()), ""), (Path(os.path.expanduser("~")), "~/")):
        if base != base.parent and whole.is_relative_to(base) and whole != base:
            name = short + whole.relative_to(base).as_posix()
            break
    return "".join(one if one.isprintable() else "?" for one in name)


def _absolute(path: Path) -> Path:
    try:
        return Path(os.path.abspath(path))
    except OSError:  # the working folder is gone
        return path


def _closing(content: str, opening: re.Match[str]) -> re.Match[str] | None:
    """The first line that is nothing but the fence; within the file there is none."""
    return re.compile(rf"^{opening[2]}$", re.MULTILINE).search(content, opening.end())


def _bytes(path: Path, name: str) -> bytes:
    """All of a file that is not too large."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise AttachmentProblem(f"{name} is a folder.", "Attach the files in it.")
        if not stat.S_ISREG(mode):  # to open a pipe could wait for ever
            raise AttachmentProblem(
                f"{name} is no ordinary file.", "Attach a file that holds text."
            )
        with path.open("rb") as file:
            start = file.read(SAMPLE)
            content = content_of(start)
            limit = MAX_PDF if content == "PDF" else MAX_TEXT
            data = start if content == "binary" else start + file.read(limit + 1 - len(start))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it has no possible name"
        raise AttachmentProblem(f"{name} cannot be read: {reason}.", "Check the path.") from error
    if content == "binary":
        raise _no_text(name)
    if len(data) > limit:
        what = f"a PDF of more than {limit >> 20} MiB" if content == "PDF" else "too large"
        raise AttachmentProblem(
            f"{name} is {what}: at most {limit >> 20} MiB are read.",
            "Attach the part that matters.",
        )
    return data


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    """The text, and a note where its encoding was guessed."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            try:
                return data.decode(encoding), ""
            except UnicodeDecodeError as error:
                what = encoding.upper().removesuffix("-SIG")
                raise AttachmentProblem(
                    f"{name} begins as {what}, but is damaged.", "Save it as UTF-8."
                ) from error
    if b"\0" in data:
        raise _no_text(name)
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        pass
    for encoding, what in _OLD:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return text, f"{name} is not UTF-8: read as {what}, some characters may be wrong."
    raise _no_text(name)


def _no_text(name: str) -> AttachmentProblem:
    return AttachmentProblem(
        f"{name} holds no text.", "Text, Markdown, code and PDF can be attached."
    )


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
