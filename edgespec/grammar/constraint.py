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
        self._matcher: llguidance.LLMatcher
        self._mask: NDArray[np.bool_] | None
        """What may follow here, once it was asked for."""
        self.reset()

    def apply(self, logits: Logits) -> Logits:
        """A copy of float32[vocabulary] logits with -inf for what may not follow.

        Raises UsageError where nothing may, or where the grammar is too much to keep track of.
        """
        masked = np.full_like(logits, -np.inf)
        np.copyto(masked, logits, where=self._open())  # half as long as np.where
        return masked

    def best(self, logits: Logits) -> Token:
        """The arg-max of what may follow; of equal ones the first, as without a grammar.

        Raises as `apply` does.
        """
        token = int(logits.argmax())  # most often allowed: a draft was made of the same text
        return token if self._may_follow(token) else int(self.apply(logits).argmax())

    def accept(self, token: Token) -> None:
        """Go on after one more token of the answer. Raises ValueError for one that may not follow.

        After a token that ends a generation all is as before it.
        """
        if not self._may_follow(token):
            raise ValueError(f"token {token} does not follow the grammar")
        if not self._vocabulary.ends[token]:
            self._matcher.consume_token(token)  # where it gives up, the next question tells
            self._mask = None

    def reset(self) -> None:
        """Begin a new answer."""
        self._matcher = self._first.deep_copy()
        self._mask = None

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
        if self._mask is not None:
            return bool(self._mask[token])
        if self._vocabulary.ends[token]:
            return self.complete
        return self._matcher.validate_tokens([token]) == 1

    def _open(self) -> NDArray[np.bool_]:
        """bool[size]: what may follow, kept until the answer goes on."""
        if self._mask is not None:
            return self._mask
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        mask = np.unpackbits(bits, count=self._vocabulary.size, bitorder="little").view(np.bool_)
        if self.complete:
            mask |= self._vocabulary.ends
        if self._matcher.is_error() and not matching.is_stuck(self._matcher):
            raise UsageError(
                f"The grammar is too much to keep track of: {matching.reason(self._matcher)}.",
                "Write it so that a text fits in fewer ways.",
            )
        if not mask.any():
            raise UsageError(
                "The grammar asks for something that no token of this model can write.",
                "Use another model, or another grammar.",
            )
        self._mask = mask
        return mask


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
