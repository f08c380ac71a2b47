"""What is written inside a block: Markdown's inline marks as styled text."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from textual.content import Content, Span
from textual.style import Style

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

STYLES = {
    "em": "italic",
    "strong": "bold",
    "s": "strike",
    "code": "$text-warning on $warning 10%",
    "link": "underline $text-secondary",
}

KEPT = 256
"""Texts whose parsed form is kept; an answer has about as many paragraphs and table cells."""

References = dict[str, dict[str, Any]]
"""Link targets by label, as markdown-it keeps them: href, title and where they were found."""

_SPACES = re.compile(r"[ \t\n]+")


def dialect() -> MarkdownIt:
    """A parser for answers. HTML is no part of their Markdown, so that it is shown as text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not needed before the first answer

    return MarkdownIt("gfm-like", {"html": False})


_parser = cache(dialect)


class Inline:
    """The inline parser with the link targets of one text."""

    def __init__(self) -> None:
        self._references: References = {}
        self._known: dict[str, Content] = {}

    def learn(self, references: References) -> bool:
        """Take the link targets known by now; whether they are others than before."""
        targets = {label: {**found, "map": None} for label, found in references.items()}
        if targets == self._references:
            return False
        self._references = targets
        self._known.clear()
        return True

    def content(self, source: str) -> Content:
        """`source` as styled text."""
        found = self._known.get(source)
        if found is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            found = self._known[source] = self._parsed(source)
        return found

    def _parsed(self, source: str) -> Content:
        tokens = _parser().parseInline(source, {"references": self._references})
        writer = _Writer()
        for token in tokens[0].children or []:
            writer.write(token)
        return writer.content()


class _Writer:
    """Puts inline tokens together."""

    def __init__(self) -> None:
        self._text = ""
        self._spans: list[Span] = []
        self._open: list[tuple[int, tuple[Style | str, ...]]] = []

    def content(self) -> Content:
        return Content(self._text, self._spans)

    def write(self, token: Token) -> None:
        match token.type:
            case "softbreak":
                self._text += " "
            case "hardbreak":
                self._text += "\n"
            case "code_inline":
                self._styled(token.content, STYLES["code"])
            case "link_open":
                self._open.append((len(self._text), _link(token.attrs.get("href", ""))))
            case "image":
                words = token.content or str(token.attrs.get("src", ""))
                self._styled(f"🖼 {words}", *_link(token.attrs.get("src", "")))
            case kind if kind.endswith("_open"):
                style = STYLES.get(kind.removesuffix("_open"), "")
                self._open.append((len(self._text), (style,)))
            case kind if kind.endswith("_close"):
                start, styles = self._open.pop()
                self._spans += [Span(start, len(self._text), style) for style in styles]
            case _:
                self._text += _SPACES.sub(" ", token.content)

    def _styled(self, text: str, *styles: Style | str) -> None:
        start = len(self._text)
        self._text += text
        self._spans += [Span(start, len(self._text), style) for style in styles]


def _link(target: object) -> tuple[Style | str, ...]:
    return STYLES["link"], Style.from_meta({"@click": f"link({str(target)!r})"})
