"""Prompt lookup: what followed the last time the text ended like this (Saxena 2023).

No model and next to no cost; strong where an answer repeats its question (edits, extraction, code).
The longest match wins, and of equally long ones the most recent: text changes, and the newest copy
is the one being written about.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.model import Token


class LookupDrafter:
    """Drafts from the prompt and the answer so far."""

    def __init__(self, min_match: int = 3, max_match: int = 32) -> None:
        """A match shorter than `min_match` tokens says too little; longer than `max_match`, no more."""
        self._min_match = min_match
        self._max_match = max_match
        self._text = np.empty(1024, np.int32)
        self._length = 0
        self._found: tuple[int, int] | None = None

    def begin(self, prompt: Sequence[Token]) -> None:
        """Forget the text before."""
        self._length = 0
        self.accept(prompt)

    def accept(self, tokens: Sequence[Token]) -> None:
        """Append to the text."""
        end = self._length + len(tokens)
        self._make_room(end)
        self._text[self._length : end] = tokens
        self._length = end
        self._found = None

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Copy what followed the match."""
        _, tokens = self.continuation((), limit)
        return Draft(tokens, (None,) * len(tokens), "lookup") if tokens else NOTHING

    def continuation(self, drafted: Sequence[Token], limit: int) -> tuple[int, tuple[Token, ...]]:
        """How long a match the text with `drafted` behind it ends in, and what followed that.

        At most `limit` tokens; (0, ()) for no match. One that reaches into its own continuation is a
        repetition, and goes on repeating.
        """
        end = self._length + len(drafted)
        self._make_room(end)
        self._text[self._length : end] = drafted
        if drafted:
            matched, start = self._search(end)
        else:
            matched, start = self._found = self._found or self._search(end)
        if not matched:
            return 0, ()
        places = start + np.arange(limit) % (end - start)
        return matched, tuple(self._text[places].tolist())

    def close(self) -> None:
        """Nothing to give back."""

    def _make_room(self, end: int) -> None:
        if end > len(self._text):
            self._text = np.concatenate([self._text[: self._length], np.empty(end, np.int32)])

    def _search(self, end: int) -> tuple[int, int]:
        """Length of the longest match, and where the most recent of these goes on; (0, 0) for none."""
        text = self._text[:end]
        last = end - 1
        ends = (text[:-1] == text[-1]).nonzero()[0] if last > 0 else text[:0]
        matched = 1 if len(ends) else 0
        while 0 < matched < self._max_match:
            longer = ends[ends >= matched]
            longer = longer[text[longer - matched] == text[last - matched]]
            if not len(longer):
                break
            ends = longer
            matched += 1
        return (matched, int(ends[-1]) + 1) if matched >= self._min_match else (0, 0)
