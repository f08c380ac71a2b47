"""Text from models, files and networks, made harmless for a terminal."""

from __future__ import annotations

from edgespec.printable import printable

__all__ = ["Cleaner", "printable"]


class Cleaner:
    """`printable` for a text that comes in pieces: a line end may be cut in two."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What is certain by now; a carriage return at the end waits for what follows it."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return printable(text.removesuffix("\r"))
