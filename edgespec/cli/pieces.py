"""A growing text in pieces that can be read out: nothing of one is shown before it is whole. Pure."""

from __future__ import annotations

import re

_ENDS = {
    "sentence": re.compile(r"[.!?…][\"'”’)\]*_]*\s|[。！？]|\n"),
    "line": re.compile(r"\n"),
    "paragraph": re.compile(r"\n[ \t]*\n"),
    "answer": None,
}
PIECES = tuple(_ENDS)


class Pieces:
    """Holds back what is not whole yet."""

    def __init__(self, piece: str) -> None:
        """`piece` is one of PIECES."""
        self._end = _ENDS[piece]
        self._held: list[str] = []

    def feed(self, text: str) -> str:
        """What can be shown by now, often nothing."""
        if self._end is None:
            self._held.append(text)
            return ""
        held = "".join([*self._held, text])
        whole = 0
        for match in self._end.finditer(held):
            whole = match.end()
        self._held = [held[whole:]]
        return held[:whole]

    def finish(self) -> str:
        """The rest."""
        rest = "".join(self._held)
        self._held = []
        return rest
