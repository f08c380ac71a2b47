"""A head that guesses from the target's own states, as a draft model (EAGLE-3, Li et al. 2025).

The head reads pairs: of the text's token P the feature, which is made of the target's states there, and
of token P + 1 the id. So the first step of a draft has the feature of the last token but one, and the
last token. Later steps go on from tokens for which the target has no states yet; the head's own state
stands for their features. Such pairs are guesses: they go when the target's states come, and are read
again from those (common/speculative.cpp of llama.cpp, and its `deferred boundary`).

`FeatureModel` hides all this behind the port of a draft model, so that a head drafts in every way in
which a draft model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import Cancelled, EdgeSpecError
from edgespec.model import ROOT, HiddenStates, Logits, Token

Features = NDArray[np.float32]


class FeatureHead(Protocol):
    """The head, with a cache of pairs."""

    @property
    def tokens(self) -> Sequence[Token]:
        """Those of the cached pairs."""
        ...

    @property
    def capacity(self) -> int:
        """How many pairs the cache can hold."""
        ...

    @property
    def vocab_size(self) -> int:
        """Width of a row of logits, by ids of the target; -inf for those that it cannot guess."""
        ...

    @property
    def max_rows(self) -> int:
        """The most pairs of a `step` or `branch`."""
        ...

    @property
    def branches(self) -> int:
        """How many leaves a tree of pairs may have."""
        ...

    def encode(self, states: HiddenStates) -> Features:
        """float32[n, width], a copy: the features of the target's states. Raises `Cancelled`."""
        ...

    def read(self, tokens: Sequence[Token], features: Features) -> None:
        """Append pairs. Raises `Cancelled`; `tokens` then says how many are cached."""
        ...

    def step(self, tokens: Sequence[Token], features: Features) -> tuple[Logits, Features]:
        """Append pairs; logits after each, and what stands for the feature of its token.

        Views, valid until the next call. Raises `Cancelled`; nothing is appended then.
        """
        ...

    def branch(
        self, tokens: Sequence[Token], features: Features, parents: Sequence[int]
    ) -> tuple[Logits, Features]:
        """As `step`, for nodes of a tree below the cached pairs; see `LanguageModel.grow`."""
        ...

    def keep(self, path: Sequence[int]) -> None:
        """See `LanguageModel.keep`."""
        ...

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` pairs."""
        ...


class FeatureModel:
    """A draft model (`LanguageModel`) made of a head and of the target's states, which it is told.

    Holds the part of a text that it has states for, and guesses after that. Where no logits are asked
    for, tokens whose states are still to come are left out: `tokens` says what is there.
    """

    def __init__(self, head: FeatureHead) -> None:
        self._head = head
        self.vocab_size = head.vocab_size
        self.batch_size = self.max_rows = head.max_rows
        self.branches = head.branches
        self._text: list[Token] = []
        """As far as it was told; what is cached of it is in the head."""
        self._tokens: list[Token] = []
        """Those of the head's pairs, and the text's first one, which is in none; the last ones may be
        guesses."""
        self._read = 0
        """Pairs with the target's feature."""
        self._known = 0
        """Of so many first tokens the target's state was seen, and they are in a pair or below."""
        self._states: dict[int, HiddenStates] = {}
        """By place, from `_read` to before `_known`: float32[width of the target's states]."""
        self._features: dict[int, Features] = {}
        """By place: the feature of the last pair that was read, and from `_known` on what stands for
        one. float32[width]."""
        self._nodes: list[Features] = []
        """By node of the tree that is growing, what stands for its feature."""
        self._blind = True
        self._in_prompt = False

    @property
    def tokens(self) -> Sequence[Token]:
        """See `LanguageModel`."""
        return self._tokens

    @property
    def capacity(self) -> int:
        """See `LanguageModel`. Nothing fits where states are missing, until the next text."""
        return 0 if self._blind else self._head.capacity + 1

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text that was not announced by `states_held`: without states it is not read."""
        if self._text != list(prompt):
            self.states_held(prompt)

    def states_held(self, prompt: Sequence[Token]) -> int:
        """See `StateReader`. Of a text that is too long for the head no states are needed at all."""
        shared = 0
        for ours, theirs in zip(self._text, prompt, strict=False):
            if ours != theirs:
                break
            shared += 1
        self._text = list(prompt)
        self._in_prompt = self._blind = True
        self._forget(shared)
        self._cut(max(shared - 1, 0))  # the pair of the last shared token has another one
        return self._known if len(prompt) <= self._head.capacity else len(prompt)

    def read_states(self, end: int, states: HiddenStates) -> None:
        """See `StateReader`. Pairs of a prompt are read at once, and `Cancelled` may be raised; those of
        a round, in which the engine must not be interrupted, with the next draft.
        """
        start = end - len(states)
        self._blind = start > self._known
        if self._blind:
            return
        self._forget(start)
        held = states[: max(self._head.capacity - start, 0)].copy()
        self._states.update(enumerate(held, start))
        self._known += len(held)
        if self._in_prompt:
            self._read_prompt()

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn what became text, as a drafter does."""
        self._text.extend(tokens)
        self._in_prompt = False

    def _read_prompt(self) -> None:
        unread = self._text[len(self._tokens) : self._known + 1]
        if unread and max(unread) < self.vocab_size:
            self.extend(unread, rows=0)

    def _forget(self, length: int) -> None:
        """Keep what the target said of the first `length` tokens, and no guesses."""
        self.keep(())
        self._known = min(self._known, length)
        self._cut(min(self._read, length))
        self._features = {at: one for at, one in self._features.items() if at < self._known}

    def _cut(self, pairs: int) -> None:
        """Keep `pairs` of the head's pairs at most. It may have been in other hands meanwhile."""
        if pairs < len(self._head.tokens):
            self._head.truncate(pairs)
        pairs = len(self._head.tokens)
        del self._tokens[pairs + 1 if pairs else 0 :]
        if pairs < self._read:
            self._read = place = pairs
            while place < self._known and (place in self._states or place in self._features):
                place += 1
            self._known = place
        last = max(self._known - 1, pairs)
        self._states = {at: one for at, one in self._states.items() if at < self._known}
        self._features = {at: one for at, one in self._features.items() if at <= last}

    def truncate(self, length: int) -> None:
        """See `LanguageModel`; the first token alone is not held."""
        if length < len(self._tokens):
            self._cut(max(length - 1, 0))

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        """See `LanguageModel`, and of this class. `rows` is 0, or 1 where tokens follow the text's first.

        Raises ValueError where there is nothing to guess from.
        """
        if rows > 1:
            raise ValueError(f"{rows} rows of a head; at most 1")
        todo = list(tokens)
        if len(self._head.tokens) > max(len(self._tokens) - 1, 0):  # of a pass that was cancelled
            self._head.truncate(max(len(self._tokens) - 1, 0))
        if not self._tokens:
            self._tokens.append(todo.pop(0))
        logits: Logits = np.empty((0, self.vocab_size), np.float32)
        while todo:
            place = len(self._tokens) - 1
            true = min(self._known - place, len(todo), self.max_rows)
            if true < 1 and not rows:
                break
            piece, todo = todo[: max(true, 1)], todo[max(true, 1) :]
            if true < 1:
                logits = self._guess(place, piece)
            else:
                logits = self._advance(place, piece, wanted=bool(rows) and not todo)
            self._tokens += piece
        return logits[-1:] if rows else logits[:0]

    def _advance(self, place: int, tokens: list[Token], *, wanted: bool) -> Logits:
        """Append pairs from `place` on with the target's features; logits where they are `wanted`."""
        places = range(place, place + len(tokens))
        found = dict(self._features)
        raw = [at for at in places if at not in found]
        if raw:
            encoded = self._head.encode(np.stack([self._states[at] for at in raw]))
            found.update(zip(raw, encoded, strict=True))
        features = np.stack([found[at] for at in places])
        kept = {places[-1]: features[-1]}
        logits: Logits = np.empty((0, self.vocab_size), np.float32)
        if wanted or places.stop == self._known:
            logits, own = self._head.step(tokens, features)
            if places.stop == self._known:
                kept[self._known] = own[-1].copy()
        else:
            self._head.read(tokens, features)
        self._features = kept
        self._states = {at: one for at, one in self._states.items() if at >= places.stop}
        self._read = places.stop
        return logits

    def _guess(self, place: int, token: list[Token]) -> Logits:
        """Append a pair for whose first token there is no state yet."""
        feature = self._features.get(place)
        if feature is None:
            raise ValueError(f"no state of token {place}")
        logits, own = self._head.step(token, feature[None])
        self._features[place + 1] = own[-1].copy()
        return logits

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        """See `LanguageModel`; parents are nodes of earlier calls. `keep` keeps none of them."""
        top = self._features[len(self._tokens) - 1]
        features = [top if parent == ROOT else self._nodes[parent] for parent in parents]
        try:
            logits, own = self._head.branch(tokens, np.stack(features), parents)
        except (Cancelled, EdgeSpecError):
            self._nodes = []
            raise
        self._nodes += list(own.copy())
        return logits

    def keep(self, path: Sequence[int]) -> None:
        """Drop the tree, whose tokens are read again once the target has states of them."""
        if self._nodes:
            self._nodes = []
            self._head.keep(())

    def states(self) -> HiddenStates:
        """Nobody guesses from the states of a head."""
        raise ValueError("a head has no states to give")
