"""Which part of an answer is a thought: the text between `<think>` and `</think>`."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPENING = ("<think>", "<thinking>")

_MARKS = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|^[ \t]*(?P<open><think(?:ing)?>)"
    r"|(?P<alone>^[ \t]*)?</think(?:ing)?>",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an answer, from `start` to `end` (exclusive), without the tags around it."""

    start: int
    end: int
    thought: bool = False
    closed: bool = True
    """For a thought, whether its end was written."""


def parts(text: str, *, opened: bool = False, growing: bool = False) -> list[Part]:
    """`text` in pieces that are thoughts or not; blank ones that are not are left out.

    `opened` says that the prompt ended with an opening tag. Where that is not known, a closing tag
    that nothing opened, alone at its side of a line, makes all before it a thought. Tags in fenced
    code are text, and so is an opening tag in the midst of a line. Of a `growing` text that may yet
    become an opening tag nothing is shown.
    """
    if growing and not opened and _begins_tag(text):
        return []
    found: list[Part] = []
    start, thinking, fence = 0, opened, ""
    for mark in _MARKS.finditer(text):
        if mark["fence"]:
            # Thoughts end with their tag, whatever they hold: models forget to close fences there.
            fence = "" if thinking else _fence_after(fence, mark["fence"], mark["info"])
        elif fence:
            continue
        elif mark["open"]:
            if not thinking:
                found.append(Part(start, mark.start()))
                start, thinking = mark.end(), True
        elif thinking:
            found.append(Part(start, mark.start(), thought=True))
            start, thinking = mark.end(), False
        elif _ends_unopened(text, mark) and not any(part.thought for part in found):
            found = [Part(0, mark.start(), thought=True)]
            start = mark.end()
    found.append(Part(start, len(text), thinking, closed=not thinking))
    trimmed = [_without_blank_start(text, part) for part in found]
    return [part for part in trimmed if part.thought or part.start < part.end]


def without_thoughts(text: str, *, opened: bool = False) -> str:
    """What of an answer is meant for the reader."""
    pieces = [text[p.start : p.end] for p in parts(text, opened=opened) if not p.thought]
    return "\n\n".join(piece.strip("\n") for piece in pieces) if len(pieces) != 1 else pieces[0]


def _begins_tag(text: str) -> bool:
    begun = text.strip()
    return bool(begun) and any(tag.startswith(begun) for tag in OPENING if tag != begun)


def _fence_after(fence: str, mark: str, info: str) -> str:
    """The code fence that is open after a line that begins with `mark`; empty for none."""
    if not fence:
        return "" if mark[0] == "`" and "`" in info else mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and not info.strip()
    return "" if closes else fence


def _ends_unopened(text: str, mark: re.Match[str]) -> bool:
    return mark["alone"] is not None or text.startswith("\n", mark.end())


def _without_blank_start(text: str, part: Part) -> Part:
    """The part without the blank lines that it begins with; blank text ends where it begins."""
    piece = text[part.start : part.end]
    if not piece.strip():
        return Part(part.end, part.end, part.thought, part.closed)
    blank = piece[: len(piece) - len(piece.lstrip())]
    return Part(part.start + blank.rfind("\n") + 1, part.end, part.thought, part.closed)
