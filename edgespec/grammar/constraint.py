"""A grammar as the engine knows it: which tokens may follow the answer so far."""

from __future__ import annotations

from collections.abc import Sequence

import llguidance
import numpy as np
from numpy.typing import NDArray

from edgespec.errors import UsageError
from edgespec.grammar import matching
from edgespec.grammar.problem import GrammarProblem
from edgespec.model import Logits, Token, Tokenizer

_BOUNDS = np.where(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"),
    np.float32(np.inf),
    np.float32(-np.inf),
)
"""float32[256, 8]: by a byte of a mask, what the logits of its eight tokens can be at most."""


class Vocabulary:
    """The texts of a model's tokens, made once a model."""

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        """`size` is the width of a row of logits.

        Tokens that end a generation, control tokens and whatever else has no text can stand in no
        answer that follows a grammar; those that end may follow where it does.
        """
        self.size = size
        self.ends: NDArray[np.bool_] = np.array([tokenizer.is_end(t) for t in range(size)])
        """bool[size]: the tokens that end a generation."""
        self.end_bits = np.packbits(self.ends, bitorder="little")
        """The same, a bit a token, as masks are."""
        self.all_bits = np.packbits(np.ones(size, np.bool_), bitorder="little")
        """Where the last byte of a mask ends."""
        pieces = [b"" if self.ends[t] else tokenizer.piece(t) for t in range(size)]
        self.tokens = matching.vocabulary(pieces)


class GrammarConstraint:
    """`edgespec.model.Constraint`: keeps an answer within a grammar. One thread at a time.

    `begin` comes before every answer.
    """

    def __init__(self, grammar: str, vocabulary: Vocabulary) -> None:
        """`grammar` is Lark, as llguidance reads it. Raises GrammarProblem."""
        self._vocabulary = vocabulary
        self._first = matching.matcher(grammar, vocabulary.tokens)
        # Fresh rows would be paged in each time.
        self._bounds = np.empty((len(vocabulary.all_bits), 8), np.float32)
        self._scratch = np.empty(vocabulary.size, np.float32)
        self._matcher: llguidance.LLMatcher
        self._bits: NDArray[np.uint8] | None
        """What may follow here, a bit a token, once it was asked for."""
        self.reset()

    def apply(self, logits: Logits) -> Logits:
        """A copy of float32[vocabulary] logits with -inf for what may not follow.

        Raises UsageError where nothing may, or where the grammar is too much to keep track of.
        """
        return np.minimum(logits, self._at_most())  # a third of np.where's time

    def best(self, logits: Logits) -> Token:
        """The arg-max of what may follow; of equal ones the first, as without a grammar.

        Raises as `apply` does.
        """
        token = int(logits.argmax())  # most often allowed: a draft was made of the same text
        return (
            token
            if self._may_follow(token)
            else int(np.minimum(logits, self._at_most(), out=self._scratch).argmax())
        )

    def accept(self, token: Token) -> None:
        """Go on after one more token of the answer. Raises ValueError for one that may not follow.

        After a token that ends a generation all is as before it.
        """
        if not self._may_follow(token):
            raise ValueError(f"token {token} does not follow the grammar")
        if not self._vocabulary.ends[token]:
            self._matcher.consume_token(token)  # where it gives up, the next question tells
            self._bits = None

    def reset(self) -> None:
        """Begin a new answer."""
        self._matcher = self._first.deep_copy()
        self._bits = None

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
        return self._matcher.is_accepting()

    def _may_follow(self, token: Token) -> bool:
        if self._bits is not None:
            return bool(self._bits[token >> 3] >> (token & 7) & 1)
        if self._vocabulary.ends[token]:
            return self.complete
        return self._matcher.validate_tokens([token]) == 1

    def _at_most(self) -> Logits:
        """float32[size]: infinite for what may follow, minus that for what may not."""
        _BOUNDS.take(self._open(), axis=0, out=self._bounds, mode="clip")  # in place where it clips
        return self._bounds.reshape(-1)[: self._vocabulary.size]

    def _open(self) -> NDArray[np.uint8]:
        """What may follow, a bit a token, the first the lowest; kept until the answer goes on."""
        if self._bits is not None:
            return self._bits
        all_bits = self._vocabulary.all_bits
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)[: len(all_bits)] & all_bits
        if self.complete:
            bits |= self._vocabulary.end_bits
        if self._matcher.is_error() and not matching.is_stuck(self._matcher):
            raise UsageError(
                f"The grammar is too much to keep track of: {matching.reason(self._matcher)}.",
                "Write it so that a text fits in fewer ways.",
            )
        if not bits.max():
            raise UsageError(
                "The grammar asks for something that no token of this model can write.",
                "Use another model, or another grammar.",
            )
        self._bits = bits
        return bits


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
            if self._vocabulary is None:
                self._vocabulary = Vocabulary(self._tokenizer, self._size)
            try:
                self._made = {grammar: GrammarConstraint(grammar, self._vocabulary)}
            except GrammarProblem as problem:
                raise UsageError(f"The grammar cannot be used: {problem}.", "Mend it.") from None
        constraint = self._made[grammar]
        constraint.begin(answer)
        return constraint
