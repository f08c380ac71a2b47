"""A Markdown text that grows at its end, as rows.

A block at the top level does not change once the first line of the next one is whole; only the targets
of its links can still become known. So each time only the last one is parsed again, and of that only
what is different is laid out again: a long list costs a little more with each item, never a redraw of
itself. At the end the whole is parsed once, for the few texts of which this is not true.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from textual.content import Content

from tui.markdown.code import Code
from tui.markdown.inline import Inline, References, dialect
from tui.markdown.leaves import Kind, Leaf, read
from tui.markdown.lines import LEAD_STYLE, MUTED_STYLE, TAB, Line, fold, wrap
from tui.markdown.table import table_rows

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

HEADINGS: dict[Kind, str] = {
    "h1": "bold underline $text-primary",
    "h2": "bold $text-primary",
    "h3": "bold underline",
    "h4": "bold",
    "h5": "bold italic",
    "h6": "italic",
}
CODE_FILL = "on $boost"
CODE_INDENT = "  "


@cache
def _blocks_only() -> MarkdownIt:
    """A parser that leaves the inside of blocks alone: `Inline` parses that, once for each text."""
    return dialect().disable(["inline", "linkify", "text_join"])


class _Block:
    """A leaf with its rows."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self._code = Code(leaf.info) if leaf.kind == "code" else None
        title = Content.styled(leaf.info or "code", f"italic {MUTED_STYLE}")
        self._title = Line(title, leaf.first + CODE_INDENT, fill=CODE_FILL)
        self._above = [] if leaf.gap is None else [Line(Content(""), leaf.gap)]
        self._known: dict[int, tuple[Content, list[Line]]] = {}
        """The rows of code as they were drawn, by number."""
        self._width = 0
        self._lines: list[Line] | None = None

    def becomes(self, leaf: Leaf) -> _Block:
        """This block with another leaf in its place; code keeps its colours."""
        same_code = (
            self._code is not None
            and replace(self.leaf, source=leaf.source, complete=leaf.complete) == leaf
        )
        if not same_code:
            return _Block(leaf)
        self.leaf, self._lines = leaf, None
        return self

    def forget(self) -> None:
        """Lay out again: its links may lead elsewhere now."""
        if "[" in self.leaf.source and self._code is None:
            self._lines = None

    def lines(self, width: int, inline: Inline) -> list[Line]:
        if self._lines is None or width != self._width:
            if width != self._width:
                self._known.clear()
            self._width = width
            lines = self._text_lines(inline) if self._code is None else self._code_lines(self._code)
            self._lines = [*self._above, *lines]
        return self._lines

    def _text_lines(self, inline: Inline) -> list[Line]:
        leaf, width = self.leaf, self._width - len(self.leaf.first)
        match leaf.kind:
            case "rule":
                rows = [("\n", Content.styled("─" * max(width, 1), LEAD_STYLE))]
            case "table":
                table = table_rows(leaf.source, leaf.info, inline.content, width)
                rows = [("\n", row) for row in table]
            case kind:
                text = inline.content(leaf.source).stylize_before(HEADINGS.get(kind, ""))
                rows = list(wrap(text, width))
        leads = [leaf.first, *[leaf.rest] * len(rows)]
        return [Line(row, lead, joint) for lead, (joint, row) in zip(leads, rows, strict=False)]

    def _code_lines(self, code: Code) -> list[Line]:
        leaf, lines = self.leaf, [self._title]
        width = self._width - len(leaf.rest) - len(CODE_INDENT)
        rows = code.rows(leaf.source.expandtabs(TAB), complete=leaf.complete)
        for number, row in enumerate(rows):
            known = self._known.get(number)
            if known is None or known[0] is not row:
                drawn = [
                    Line(piece, leaf.rest + CODE_INDENT, joint, CODE_FILL)
                    for joint, piece in fold(row, width)
                ]
                known = self._known[number] = row, drawn
            lines += known[1]
        return lines


class Document:
    """One Markdown text. It must be printable; see `tui.printing`."""

    def __init__(self, text: str = "") -> None:
        self._inline = Inline()
        self._done: list[_Block] = []
        """Blocks that will not change."""
        self._open: list[_Block] = []
        """The leaves of the last block at the top level."""
        self._tail = ""
        """The text of the last block and of the link targets behind it."""
        self._before_tail: list[str] = []
        self._references: References = {}
        """The link targets before the last block."""
        self._finished = False
        if text:
            self.append(text)

    def append(self, text: str) -> None:
        """Let the text grow."""
        self._finished = False
        self._tail += text
        env: dict[str, Any] = {"references": dict(self._references)}
        tokens = _blocks_only().parse(self._tail, env)
        references: References = env["references"]
        whole_lines = self._tail.count("\n")
        starts = [
            (position, token.map[0])
            for position, token in enumerate(tokens)
            if token.level == 0 and token.nesting >= 0 and token.map and token.map[0] < whole_lines
        ]
        if len(starts) > 1:
            position, line = starts[-1]
            self._update(read(tokens[:position], start=not self._done), complete=True)
            self._done += self._open
            self._open = []
            self._cut_tail(line, references)
            tokens = tokens[position:]
        self._update(read(tokens, start=not self._done), complete=False)
        self._learn(references)

    def finish(self) -> None:
        """The text is whole: what was read in pieces is compared with a reading of the whole."""
        if self._finished:
            return
        self._finished = True
        self._tail = "".join([*self._before_tail, self._tail])
        self._before_tail, self._references = [], {}
        self._open, self._done = [*self._done, *self._open], []
        env: dict[str, Any] = {"references": {}}
        tokens = _blocks_only().parse(self._tail, env)
        self._update(read(tokens, start=True), complete=True)
        self._learn(env["references"])

    def lines(self, width: int) -> list[Line]:
        """The rows at most `width` cells wide; those that did not change are the same objects."""
        blocks = (*self._done, *self._open)
        return [line for block in blocks for line in block.lines(width, self._inline)]

    def _update(self, leaves: list[Leaf], *, complete: bool) -> None:
        if complete:
            leaves = [replace(leaf, complete=True) for leaf in leaves]
        kept = [
            block if block.leaf == leaf else block.becomes(leaf)
            for block, leaf in zip(self._open, leaves, strict=False)
        ]
        self._open = [*kept, *map(_Block, leaves[len(kept) :])]

    def _learn(self, references: References) -> None:
        if self._inline.learn(references):
            for block in (*self._done, *self._open):
                block.forget()

    def _cut_tail(self, line: int, references: References) -> None:
        """Cut off what is before line number `line` of the tail, and keep its link targets."""
        cut = 0
        for _ in range(line):
            cut = self._tail.index("\n", cut) + 1
        self._before_tail.append(self._tail[:cut])
        self._tail = self._tail[cut:]
        for label, reference in references.items():
            if reference["map"][0] < line:
                self._references[label] = reference
