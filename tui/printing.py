"""Text from models, files and networks, made harmless for a terminal."""

from __future__ import annotations

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, 0x2028: 0x0A, 0x2029: 0x0A}
_CONTROLS |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def printable(text: str) -> str:
    """`text` with control characters made visible, so that no text can command the terminal."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)


class Cleaner:
    """`printable` for a text that comes in pieces: a line end may be cut in two."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What is certain by now; a carriage return at the end waits for what follows it."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return printable(text.removesuffix("\r"))
