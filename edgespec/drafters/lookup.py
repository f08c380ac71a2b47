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

    def begin(self, prompt: Sequence[Token]) -> None:
        """Forget the text before."""
        self._length = 0
        self.accept(prompt)

    def accept(self, tokens: Sequence[Token]) -> None:
        """Append to the text."""
        end = self._length + len(tokens)
        if end > len(self._text):
            self._text = np.concatenate([self._text[: self._length], np.empty(end, np.int32)])
        self._text[self._length : end] = tokens
        self._length = end

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Copy what followed the match.

        A match that reaches into its own continuation is a repetition; it goes on repeating.
        """
        start = self._continuation()
        if start is None:
            return NOTHING
        places = start + np.arange(limit) % (self._length - start)
        return Draft(tuple(self._text[places].tolist()), (None,) * limit, "lookup")

    def close(self) -> None:
        """Nothing to give back."""

    def _continuation(self) -> int | None:
        """Where the text goes on after the most recent of the longest earlier copies of its end."""
        text = self._text[: self._length]
        last = self._length - 1
        ends = (text[:-1] == text[-1]).nonzero()[0] if last > 0 else text[:0]
        matched = 1 if len(ends) else 0
        while 0 < matched < self._max_match:
            longer = ends[ends >= matched]
            longer = longer[text[longer - matched] == text[last - matched]]
            if not len(longer):
                break
            ends = longer
            matched += 1
        return int(ends[-1]) + 1 if matched >= self._min_match else None
