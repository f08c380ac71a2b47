"""All tokens of a model as a tree of bytes, so that a grammar is asked once for what many begin with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgespec.grammar.automaton import DEAD, Automaton
from edgespec.model import Token, Tokenizer


class Vocabulary:
    """The texts of a model's tokens, made once a model."""

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        """`size` is the width of a row of logits.

        Tokens that end a generation, control tokens and whatever else has no text can stand in no
        answer that follows a grammar; those that end may follow where it does.
        """
        is_end = np.fromiter((tokenizer.is_end(token) for token in range(size)), np.bool_, size)
        self.ends: NDArray[np.bool_] = is_end
        """bool[size]: the tokens that end a generation."""
        self.pieces: list[bytes] = [
            b"" if is_end[token] else tokenizer.piece(token) for token in range(size)
        ]
        """The bytes of each token; empty for one that no grammar can ask for."""
        self._grow()

    def _grow(self) -> None:
        """Build the tree level by level: sorted, tokens that begin alike stand together."""
        tokens = sorted(filter(self.pieces.__getitem__, range(len(self.pieces))), key=self._piece)
        texts = [self.pieces[token] for token in tokens]
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        text = np.frombuffer(b"".join(texts), np.uint8)
        begins = lengths.cumsum() - lengths
        node = np.zeros(len(texts), np.int32)
        parents, letters = [np.empty(0, np.int32)], [np.zeros(1, np.uint8)]
        count = 1  # the root
        for level in range(int(lengths.max(initial=0))):
            live = (lengths > level).nonzero()[0]
            letter, parent = text[begins[live] + level], node[live]
            new = np.ones(len(live), np.bool_)
            new[1:] = (letter[1:] != letter[:-1]) | (parent[1:] != parent[:-1])
            node[live] = count - 1 + new.cumsum()
            parents.append(parent[new])
            letters.append(letter[new])
            count += int(new.sum())
        self._letter = np.concatenate(letters)
        """uint8[nodes]: the byte that leads to each node. Nodes are numbered level by level."""
        self._first = np.searchsorted(np.concatenate(parents), np.arange(count + 1)) + 1
        """int64[nodes + 1]: the children of a node are numbered from its entry up to the next one."""
        self._node = np.zeros(len(self.pieces), np.int32)
        """int32[size]: the node of each token; the root for one without text."""
        self._node[tokens] = node

    def _piece(self, token: Token) -> bytes:
        return self.pieces[token]

    def allowed(self, automaton: Automaton, state: int) -> NDArray[np.bool_]:
        """bool[size]: the tokens that a text in `state` may go on with, or end with.

        All branches of the tree are walked at once, a level at a time. Raises UsageError.
        """
        reached = np.zeros(len(self._letter), np.bool_)
        nodes, states = np.zeros(1, np.int64), np.full(1, state, np.int32)
        while len(nodes):
            first = self._first[nodes]
            count = self._first[nodes + 1] - first
            within = np.arange(count.sum()) - np.repeat(count.cumsum() - count, count)
            nodes = np.repeat(first, count) + within
            before = np.repeat(states, count)
            states = automaton.rows(before)[before, self._letter[nodes]]
            alive = states != DEAD
            nodes, states = nodes[alive], states[alive]
            reached[nodes] = True
        found: NDArray[np.bool_] = reached[self._node]
        if automaton.ends(state):
            found |= self.ends
        return found
