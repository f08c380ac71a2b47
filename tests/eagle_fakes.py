"""An EAGLE-3 head that stands in for a real one, and checks what it is fed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edgespec.drafters.features import Features
from edgespec.errors import Cancelled
from edgespec.model import ROOT, HiddenStates, Logits, Token


class FakeHead:
    """An EAGLE-3 head over `FakeModel`, whose states say what they are of.

    Its logits are a pure function of the text that its pairs spell. It checks of each pair that the
    feature is that of the token before, and that no guess of its own is left where text is read. What it
    gives goes with its next pass, and a `read` that is cancelled has read some pairs.
    """

    def __init__(
        self,
        logits_of: Callable[[tuple[Token, ...]], Logits],
        vocab_size: int,
        *,
        capacity: int = 512,
        max_rows: int = 8,
        branches: int = 16,
    ) -> None:
        self._logits_of = logits_of
        self.vocab_size = vocab_size
        self.capacity = capacity
        self.max_rows = max_rows
        self.branches = branches
        self._first: Token = 0
        self._tokens: list[Token] = []
        self._own: list[bool] = []
        """By pair, whether its feature is a guess of this head."""
        self._nodes: list[tuple[Token, int]] = []
        self._given: list[Logits] = []
        """Views that are valid until the next pass."""
        self.fed = 0
        """Pairs computed, and states encoded, so far."""
        self.fail_at: int | None = None
        """Raise `Cancelled` in the call that would compute this many."""

    @property
    def tokens(self) -> Sequence[Token]:
        return self._tokens

    def _feed(self, count: int) -> None:
        assert count > 0, "an empty batch"
        if self.fail_at is not None and self.fed + count >= self.fail_at:
            self._nodes = []
            raise Cancelled
        self.fed += count
        for view in self._given:
            view.fill(0)

    def encode(self, states: HiddenStates) -> Features:
        self._feed(len(states))
        assert (states[:, 0] > 0).all(), "guesses are no states"
        return states.copy()

    def read(self, tokens: Sequence[Token], features: Features) -> None:
        for token, feature in zip(tokens, features, strict=True):
            self._append([token], feature[None])

    def step(self, tokens: Sequence[Token], features: Features) -> tuple[Logits, Features]:
        assert len(tokens) <= self.max_rows
        start = len(self._tokens)
        self._append(tokens, features)
        texts = [self._text(start + row + 1) for row in range(len(tokens))]
        return self._after(texts)

    def _append(self, tokens: Sequence[Token], features: Features) -> None:
        assert not self._nodes, "a tree is growing"
        assert len(tokens) == len(features)
        assert len(self._tokens) + len(tokens) <= self.capacity, "beyond the context"
        rows = features.astype(int).tolist()
        self._feed(len(tokens))
        for token, feature in zip(tokens, rows, strict=True):
            self._check(self._text(len(self._tokens)), token, feature)
            assert feature[0] < 0 or not any(self._own), "text is read after guesses"
            self._own.append(feature[0] < 0)
            self._tokens.append(token)

    def _check(self, text: tuple[Token, ...], token: Token, feature: list[int]) -> None:
        assert 0 <= token < self.vocab_size, "an unknown id"
        if not self._tokens and len(text) < 2 and feature[0] > 0:
            self._first = feature[2]
            text = (self._first,)
        assert abs(feature[0]) == len(text), "a feature of another place"
        assert feature[1:] == [*(-1, -1, *text)[-2:]], "a feature of another text"

    def _text(self, pairs: int) -> tuple[Token, ...]:
        return (self._first, *self._tokens[:pairs])

    def _after(self, texts: Sequence[tuple[Token, ...]]) -> tuple[Logits, Features]:
        logits = np.array([self._logits_of(text) for text in texts], np.float32)
        own = [(-len(text), *(-1, -1, *text)[-2:]) for text in texts]
        self._given = [logits, np.array(own, np.float32)]
        return logits, self._given[1]

    def branch(
        self, tokens: Sequence[Token], features: Features, parents: Sequence[int]
    ) -> tuple[Logits, Features]:
        assert len(tokens) == len(parents) == len(features) <= self.max_rows
        assert len(self._tokens) + len(self._nodes) + len(tokens) <= self.capacity, "full"
        rows = features.astype(int).tolist()
        self._feed(len(tokens))
        first = len(self._nodes)
        for token, parent, feature in zip(tokens, parents, rows, strict=True):
            assert feature[0] < 0, "a state below a guess"
            assert ROOT <= parent < len(self._nodes)
            self._check(self._text_to(parent), token, feature)
            self._nodes.append((token, parent))
        leaves = set(range(len(self._nodes))) - {parent for _, parent in self._nodes}
        assert len(leaves) <= self.branches, "more leaves than sequences"
        return self._after([self._text_to(node) for node in range(first, len(self._nodes))])

    def _text_to(self, node: int) -> tuple[Token, ...]:
        upwards: list[Token] = []
        while node != ROOT:
            token, node = self._nodes[node]
            upwards.append(token)
        return (*self._text(len(self._tokens)), *reversed(upwards))

    def keep(self, path: Sequence[int]) -> None:
        assert not path, "guesses are no text"
        self._nodes = []

    def truncate(self, length: int) -> None:
        assert not self._nodes, "a tree is growing"
        del self._tokens[length:]
        del self._own[length:]
