"""Text of models, files and people made harmless: no character of it can command a terminal."""

from __future__ import annotations

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, 0x2028: 0x0A, 0x2029: 0x0A}
_CONTROLS |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def printable(text: str) -> str:
    """`text` with control characters made visible, and each end of a line as one newline."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)
