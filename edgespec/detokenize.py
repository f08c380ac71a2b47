"""Tokens to text as they come. Knows bytes and characters, nothing of stops or of display."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from edgespec.model import Token, Tokenizer


class Detokenizer:
    """Turns one stream of tokens into whole characters.

    Everything that `feed` and `finish` return, joined, is the UTF-8 reading of all the bytes, with
    U+FFFD for what is no UTF-8. Control tokens have no text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, tokens: Iterable[Token]) -> str:
        """The characters that are whole after `tokens`; an unfinished one waits for its rest."""
        return self._decoder.decode(b"".join(self._tokenizer.piece(token) for token in tokens))

    def finish(self) -> str:
        """U+FFFD for a character that will not be finished, else nothing."""
        return self._decoder.decode(b"", final=True)
