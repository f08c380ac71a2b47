"""A grammar as the engine knows it: which tokens may follow the answer so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import UsageError
from edgespec.grammar.automaton import DEAD, Automaton
from edgespec.grammar.gbnf import parse
from edgespec.grammar.problem import GrammarProblem
from edgespec.grammar.vocabulary import Vocabulary
from edgespec.model import Logits, Token, Tokenizer

MOST_MASKS = 512
"""Masks that are kept, a bit a token: 10 MB for a vocabulary of 150k."""


class GrammarConstraint:
    """`edgespec.model.Constraint`: keeps an answer within a grammar. One thread at a time.

    `begin` comes before every answer.
    """

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary) -> None:
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._state = automaton.start
        self._masks: OrderedDict[int, NDArray[np.uint8]] = OrderedDict()
        """By state, one bit a token; those used last are last."""

    def apply(self, logits: Logits) -> Logits:
        """A copy of float32[vocabulary] logits with -inf for what may not follow.

        Raises UsageError where nothing may.
        """
        return np.where(self._allowed(), logits, np.float32(-np.inf))

    def best(self, logits: Logits) -> Token:
        """The arg-max of what may follow; of equal ones the first, as without a grammar.

        Raises UsageError where nothing may.
        """
        token = int(logits.argmax())  # most often allowed: a draft was made of the same text
        return token if self._after(token) != DEAD else int(self.apply(logits).argmax())

    def accept(self, token: Token) -> None:
        """Go on after one more token of the answer. Raises ValueError for one that may not follow."""
        state = self._after(token)
        if state == DEAD:
            raise ValueError(f"token {token} does not follow the grammar")
        self._state = state
        if self._automaton.is_full:
            self._renew()

    def reset(self) -> None:
        """Begin a new answer."""
        self._state = self._automaton.start

    def begin(self, answer: Sequence[Token]) -> None:
        """Go on after an answer that is there already, or begin a new one after none.

        Raises UsageError for an answer that does not follow the grammar.
        """
        self.reset()
        try:
            for token in answer:
                self.accept(token)
        except ValueError:
            self.reset()
            raise UsageError(
                "What there is of the answer does not follow the grammar.",
                "Ask again, or open the conversation without a grammar.",
            ) from None

    @property
    def complete(self) -> bool:
        """Whether the answer may end here."""
        return self._automaton.ends(self._state)

    def _after(self, token: Token) -> int:
        """The state after a token; one that ends a generation changes nothing where that is allowed."""
        if self._vocabulary.ends[token]:
            return self._state if self.complete else DEAD
        piece = self._vocabulary.pieces[token]
        state = self._state if piece else DEAD
        for byte in piece:
            state = self._automaton.step(state, byte)
        return state

    def _allowed(self) -> NDArray[np.bool_]:
        bits = self._masks.get(self._state)
        if bits is None:
            allowed = self._vocabulary.allowed(self._automaton, self._state)
            if not allowed.any():
                raise UsageError(
                    "The grammar asks for something that no token of this model can write.",
                    "Use another model, or another grammar.",
                )
            bits = self._masks[self._state] = np.packbits(allowed)
            if len(self._masks) > MOST_MASKS:
                self._masks.popitem(last=False)
        self._masks.move_to_end(self._state)
        return np.unpackbits(bits, count=len(self._vocabulary.pieces)).view(np.bool_)

    def _renew(self) -> None:
        """Bound what is remembered of very long or deep answers."""
        self._state = self._automaton.renew(self._state)
        self._masks.clear()


class Constraints:
    """Makes the constraint of each answer of a session; what takes long is done once."""

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        """`size` is the width of a row of logits."""
        self._tokenizer = tokenizer
        self._size = size
        self._vocabulary: Vocabulary | None = None
        self._made: dict[str, GrammarConstraint] = {}

    def after(self, grammar: str | None, answer: Sequence[Token]) -> GrammarConstraint | None:
        """What may follow an answer, of which some may be there already; None without a grammar.

        Valid until the next call. Raises UsageError for a grammar that cannot be used, or an answer
        that does not follow it.
        """
        if grammar is None:
            return None
        if grammar not in self._made:
            try:
                automaton = Automaton(parse(grammar))
            except GrammarProblem as problem:
                raise UsageError(f"The grammar cannot be used: {problem}.", "Mend it.") from None
            if self._vocabulary is None:
                self._vocabulary = Vocabulary(self._tokenizer, self._size)
            self._made = {grammar: GrammarConstraint(automaton, self._vocabulary)}
        constraint = self._made[grammar]
        constraint.begin(answer)
        return constraint
