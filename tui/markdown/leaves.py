"""Markdown's blocks as a flat list: what is drawn, and what stands before each of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tui.markdown.lines import BAR

if TYPE_CHECKING:
    from markdown_it.token import Token

Kind = Literal["text", "h1", "h2", "h3", "h4", "h5", "h6", "code", "table", "rule"]

HEADINGS: dict[str, Kind] = {
    "h1": "h1", "h2": "h2", "h3": "h3", "h4": "h4", "h5": "h5", "h6": "h6",
}  # fmt: skip
BULLETS = "•▪‣⭑◦"
CELL, ROW = "\x1f", "\x1e"
"""What parts the cells and rows of a table's source; no printable text holds them."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A block that holds no other. Equal ones are drawn alike."""

    kind: Kind
    source: str
    """Inline Markdown; for code, the code; for a table, its cells."""
    info: str = ""
    """For code, the language; for a table, a letter for each column's side: l, c, r."""
    first: str = ""
    """What stands before its first row."""
    rest: str = ""
    """What stands before its other rows, as wide as `first`."""
    gap: str | None = None
    """What stands in the blank row above it; None where there is no such row."""
    complete: bool = True
    """For code, whether its end has been seen."""


@dataclass(slots=True, eq=False)
class _Box:
    """A block quote or list item around a leaf."""

    first: str
    rest: str
    used: bool = False


class _Reader:
    """Walks over the tokens of one or more top-level blocks."""

    def __init__(self, *, start: bool) -> None:
        self.leaves: list[Leaf] = []
        self._start = start
        """Whether nothing is above the first leaf."""
        self._boxes: list[_Box] = []
        self._before: list[_Box] = []
        """The boxes around the leaf before."""
        self._top = True
        """Whether the next leaf begins a top-level block."""

    def read(self, tokens: Sequence[Token]) -> None:
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.level == 0 and token.nesting >= 0:
                self._top = True
            match token.type:
                case "inline":
                    tag = tokens[position - 1].tag
                    self._add(HEADINGS.get(tag, "text"), token.content)
                case "fence" | "code_block":
                    self._code(token)
                case "hr":
                    self._add("rule", "")
                case "table_open":
                    position = self._table(tokens, position)
                case _:
                    self._box(tokens, position)
            position += 1

    def _box(self, tokens: Sequence[Token], position: int) -> None:
        """Go into or out of what holds leaves."""
        token = tokens[position]
        match token.type:
            case "blockquote_open":
                self._boxes.append(_Box(f"{BAR} ", f"{BAR} "))
            case "bullet_list_open":
                self._list(tokens, position, bullets=True)
            case "ordered_list_open":
                self._list(tokens, position, bullets=False)
            case "list_item_open":
                lead = str(token.meta["lead"])
                self._boxes.append(_Box(lead, " " * len(lead)))
            case "list_item_close":
                if not self._boxes[-1].used:
                    self._add("text", "")
                self._boxes.pop()
            case "blockquote_close":
                self._boxes.pop()

    def _add(self, kind: Kind, source: str, info: str = "", *, complete: bool = True) -> None:
        first = "".join(box.rest if box.used else box.first for box in self._boxes)
        rest = "".join(box.rest for box in self._boxes)
        gap: str | None = None
        if self._is_apart(kind):
            gap = "".join(box.rest for box in self._boxes if box.used).rstrip()
        for box in self._boxes:
            box.used = True
        self.leaves.append(Leaf(kind, source, info, first, rest, gap, complete))
        self._before, self._top = list(self._boxes), False

    def _is_apart(self, kind: Kind) -> bool:
        if not self.leaves and self._start:
            return False
        if self._top:
            return True
        same_item = self._before == self._boxes
        return same_item or kind != "text" or self.leaves[-1].kind != "text"

    def _list(self, tokens: Sequence[Token], position: int, *, bullets: bool) -> None:
        """Give each item of the list what stands before it; numbers in columns of equal width."""
        opened = tokens[position]
        items: list[Token] = []
        for token in tokens[position + 1 :]:
            if token.level == opened.level and token.nesting < 0:
                break
            if token.type == "list_item_open" and token.level == opened.level + 1:
                items.append(token)
        if bullets:
            depth = sum(box.first[0] in BULLETS for box in self._boxes)
            leads = [f"{BULLETS[depth % len(BULLETS)]} "] * len(items)
        else:
            start = int(opened.attrs.get("start", 1))
            width = len(str(start + len(items) - 1))
            leads = [f"{start + number:>{width}}. " for number in range(len(items))]
        for item, lead in zip(items, leads, strict=True):
            item.meta["lead"] = lead

    def _code(self, token: Token) -> None:
        words = token.info.split()
        complete = token.type == "code_block" or _is_closed(token)
        self._add(
            "code", token.content.removesuffix("\n"), words[0] if words else "", complete=complete
        )

    def _table(self, tokens: Sequence[Token], position: int) -> int:
        """Add the table that begins at `position`; the position of its end."""
        rows: list[list[str]] = []
        sides = ""
        while tokens[position].type != "table_close":
            token = tokens[position]
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                rows[-1].append(tokens[position + 1].content)
                if len(rows) == 1:
                    style = str(token.attrs.get("style", ""))
                    sides += style.removeprefix("text-align:")[:1] or "l"
            position += 1
        self._add("table", ROW.join(CELL.join(cells) for cells in rows), sides)
        return position


def _is_closed(token: Token) -> bool:
    """Whether the end of a fence was written, rather than the end of the text reached."""
    lines = token.content.count("\n") + (not token.content.endswith("\n") and bool(token.content))
    first, after = token.map or (0, 0)
    return after - first > lines + 1


def read(tokens: Sequence[Token], *, start: bool) -> list[Leaf]:
    """The leaves of whole top-level blocks, with `start` those at the beginning of a text."""
    reader = _Reader(start=start)
    reader.read(tokens)
    return reader.leaves
