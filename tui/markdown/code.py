"""Code in colour while it grows: never the whole of it for every few letters.

Lexers of Pygments cannot go on where they stopped. So long code is coloured as a whole only now and
then, each time when it has grown by half; in between only its end is, from the last row that looks
like a fresh start: one that begins outside of strings and comments. Where that guess is wrong, colours
are wrong until the next whole pass, and right when the code block is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from textual.content import Content, Span

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

SHORT = 500
"""Characters up to which code is always coloured as a whole; that takes a millisecond or two."""
GROWTH = 1.5


@cache
def _names() -> dict[str, str]:
    from pygments.lexers import get_all_lexers  # noqa: PLC0415 - not needed before the first code

    found: dict[str, str] = {}
    # No plugins: nothing on this computer may run because a model wrote its name.
    for name, aliases, _, _ in get_all_lexers(plugins=False):
        for alias in aliases:
            found.setdefault(alias.lower(), name)
    return found


@cache
def lexer_for(language: str) -> Lexer | None:
    """The lexer of a language by the name that stands behind fences; None for an unknown one."""
    name = _names().get(language.lower())
    if name is None:
        return None
    from pygments.lexers import find_lexer_class  # noqa: PLC0415 - see above

    found = find_lexer_class(name)
    return None if found is None else found(stripnl=False, ensurenl=True)


@cache
def _looks(kind: _TokenType) -> tuple[str, bool]:
    """The style of a token, and whether one can be inside of it as in a string or comment."""
    from pygments.token import Comment, Error, String  # noqa: PLC0415 - see above
    from textual.highlight import HighlightTheme  # noqa: PLC0415 - see above

    kinds = kind.split()
    styles = [HighlightTheme.STYLES[one] for one in kinds if one in HighlightTheme.STYLES]
    inside = any(one in (Comment, Error, String) for one in kinds)
    return (styles[-1] if styles else ""), inside


def _pieces(lexer: Lexer, code: str) -> Iterator[tuple[str, str, bool]]:
    """The code cut at line ends: text or a line end, its style, whether it is inside something."""
    for kind, value in lexer.get_tokens(code):
        style, inside = _looks(kind)
        first, *others = value.split("\n")
        if first:
            yield first, style, inside
        for other in others:
            yield "\n", "", inside
            if other:
                yield other, style, inside


def _coloured(lexer: Lexer, code: str) -> tuple[list[Content], int]:
    """The rows of `code`, and the last of them, but for the two at the end, that is a fresh start."""
    count = code.count("\n") + 1
    rows: list[Content] = []
    text, spans, fresh = "", list[Span](), 0
    for piece, style, inside in _pieces(lexer, code):
        if piece == "\n":
            rows.append(Content(text, spans))
            text, spans = "", []
            continue
        if not inside and not text.strip() and piece.strip() and len(rows) < count - 2:
            fresh = len(rows)
        if style:
            spans.append(Span(len(text), len(text) + len(piece), style))
        text += piece
    rows.append(Content(text, spans))
    # Lexers add a line end and may drop some.
    return [*rows, *[Content("")] * count][:count], fresh


class Code:
    """Code of one language that grows at its end, as rows in colour."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._code = ""
        self._rows: list[Content] = []
        self._whole = -1
        """Length of the code when it was last coloured as a whole."""
        self._fresh = 0
        """The row from where colouring may begin again."""

    def rows(self, code: str, *, complete: bool) -> list[Content]:
        """The rows of `code`, without a line end at its end and without tabs.

        Rows that did not change are the very objects of the call before.
        """
        if self._rows and code == self._code and (self._whole == len(code) or not complete):
            return self._rows
        grown = code.startswith(self._code)
        self._code = code
        # The name of the language may itself be growing while there is no code.
        lexer = lexer_for(self._language) if code else None
        if lexer is None:
            self._split(grown)
        elif complete or not grown or len(code) <= SHORT or len(code) > GROWTH * self._whole:
            self._colour(lexer, 0)
            self._whole = len(code)
        else:
            self._colour(lexer, self._fresh)
        return self._rows

    def _split(self, grown: bool) -> None:
        keep = self._rows[:-1] if grown else []
        rows = self._code.split("\n")[len(keep) :]
        self._rows = [*keep, *map(Content, rows)]
        self._whole = len(self._code)

    def _colour(self, lexer: Lexer, start: int) -> None:
        """Colour the rows from `start` on; those that look as before stay the same objects."""
        rows, fresh = _coloured(lexer, "\n".join(self._code.split("\n")[start:]))
        known = self._rows[start:]
        same = [old if old.is_same(new) else new for old, new in zip(known, rows, strict=False)]
        self._rows = [*self._rows[:start], *same, *rows[len(same) :]]
        self._fresh = start + fresh
