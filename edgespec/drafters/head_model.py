"""Medusa heads as a draft model: for what drafts token by token, as the controller does.

Each step asks one head, whatever was drafted before it. So a chain ends where its pace says, before the
heads behind that are asked, and tokens can be drawn from the heads' distributions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgespec.drafters.medusa import Heads
from edgespec.model import HiddenStates, Logits, Token

_ROOMY = 1 << 20
"""Tokens that are read at once: nothing is computed for them."""


class HeadModel:
    """A draft model (`LanguageModel`) with nothing in its cache but the text itself.

    Its room ends with the last place that a head sees.
    """

    def __init__(self, heads: Heads, vocab_size: int) -> None:
        """`vocab_size` is that of the target, whose ids the heads use."""
        self._heads = heads
        self.vocab_size = vocab_size
        self.batch_size, self.max_rows, self.branches = _ROOMY, 1, 1
        self._text: list[Token] = []
        self._tokens: list[Token] = []
        self._state: HiddenStates | None = None
        self._end = 0
        """How many tokens of the text there are up to the one that the state is of."""
        self._row: Logits = np.full((1, vocab_size), -np.inf, np.float32)

    @property
    def tokens(self) -> Sequence[Token]:
        """See `LanguageModel`: the text but its last token, and what was drafted."""
        return self._tokens

    @property
    def capacity(self) -> int:
        """See `LanguageModel`; 0 where there is no state of the last token but one."""
        current = self._state is not None and self._end == len(self._text) - 1
        return self._end + self._heads.count if current else 0

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text, all of which is read."""
        self._text = list(prompt)
        self._tokens = self._text[:-1]

    def accept(self, tokens: Sequence[Token]) -> None:
        """Add to the text, and read that."""
        self._text += tokens
        self._tokens = self._text[:-1]

    def states_held(self, prompt: Sequence[Token]) -> int:
        """See `StateReader`. All: only the state of the last token counts, which is always computed."""
        return len(prompt)

    def read_states(self, end: int, states: HiddenStates) -> None:
        """See `StateReader`: the last one is kept."""
        if len(states):
            self._state, self._end = states[-1].copy(), end

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        """See `LanguageModel`; -inf for tokens that the heads do not know. At most one row.

        Raises ValueError for a place that no head sees.
        """
        length = len(self._tokens) + len(tokens)
        head = length - self._end - 1
        if rows and (self._state is None or not 0 <= head < self._heads.count):
            raise ValueError(f"no head sees token {length}")
        self._tokens += tokens
        if self._state is None or not rows:
            return self._row[:0]
        self._row[0, self._heads.vocabulary] = self._heads.logits(self._state, 1, head)[0]
        return self._row

    def truncate(self, length: int) -> None:
        """See `LanguageModel`."""
        del self._tokens[length:]

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        """Not to be called: `branches` is 1."""
        raise ValueError("heads draft chains step by step")

    def keep(self, path: Sequence[int]) -> None:
        """Not to be called: `branches` is 1."""
        raise ValueError("heads draft chains step by step")

    def states(self) -> HiddenStates:
        """Nobody guesses from the states of heads."""
        raise ValueError("heads have no states to give")
