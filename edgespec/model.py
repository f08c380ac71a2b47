"""The port: what the engine may ask of a model. Implemented by `edgespec.llama` and by the fakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Token = int
Logits = NDArray[np.float32]
HiddenStates = NDArray[np.float32]
ROOT = -1
"""In a tree of tokens, the parent of a node that follows the text itself."""


class LanguageModel(Protocol):
    """A causal model with one cached sequence that grows at its end and can be cut back."""

    @property
    def tokens(self) -> Sequence[Token]:
        """What the cache holds, in order. Read-only; changes with `extend` and `truncate`."""
        ...

    @property
    def capacity(self) -> int:
        """How many tokens the cache can hold."""
        ...

    @property
    def vocab_size(self) -> int:
        """Width of a row of logits."""
        ...

    @property
    def batch_size(self) -> int:
        """Tokens computed in one native call; longer inputs are cut into such pieces."""
        ...

    @property
    def max_rows(self) -> int:
        """The most rows of logits that one `extend` may ask for."""
        ...

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        """Append `tokens` to the cache and return the logits of the last `rows` of them.

        float32[rows, vocab_size], a view that is valid until the next call. `rows` may be 0.
        Raises `Cancelled` when interrupted and `DecodeError` when the runtime fails; the cache then
        holds what it held before, or whole pieces of `tokens` when there was more than one, or less
        where the memory cannot drop what the failed call has left: `tokens` says what.
        """
        ...

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens; never refused for 0.

        Raises `RollbackRefusedError` where the memory cannot, with the length that it can go back to.
        A memory that has to compute tokens again for it raises what `extend` raises.
        """
        ...

    @property
    def branches(self) -> int:
        """How many leaves a tree of tokens may have; 1: `grow` and `keep` are not to be called."""
        ...

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        """Compute a tree of tokens below the cached text, each after its own ancestors only.

        float32[len(tokens), vocab_size], the logits after each, a view valid until the next call.
        `parents` are indices into all nodes grown since the last `keep`, those of this call included
        and each before its children, or `ROOT`. `tokens` stays as it is; `extend` and `truncate` drop a
        tree of which nothing was kept. Raises as `extend` does; all nodes are gone then.
        """
        ...

    def states(self) -> HiddenStates:
        """float32[n, width]: hidden states of the last pass, a view valid until the next.

        Which, was said when the model was opened: of all tokens of the pass in order, or of those that
        had logits. ValueError where none were asked for.
        """
        ...

    def keep(self, path: Sequence[int]) -> None:
        """Make the nodes of `path`, from one below the text downwards, text; all others are gone."""
        ...


class Constraint(Protocol):
    """What may follow at each place of an answer, a grammar for instance. Moved on by text only."""

    def apply(self, logits: Logits) -> Logits:
        """A copy of float32[vocab_size] with -inf for every token that may not follow."""
        ...

    def best(self, logits: Logits) -> Token:
        """The arg-max of what may follow; the same as that of `apply`, and cheaper."""
        ...

    def accept(self, token: Token) -> None:
        """Move on: `token`, which may follow, became text."""
        ...


class Tokenizer(Protocol):
    """Text to tokens and back, as the model's file defines it."""

    @property
    def bos(self) -> Token | None:
        """The beginning-of-text token, if the vocabulary has one."""
        ...

    @property
    def eos(self) -> Token | None:
        """The end-of-text token, if the vocabulary has one."""
        ...

    @property
    def adds_bos(self) -> bool:
        """Whether the file asks for a BOS in front of every prompt."""
        ...

    @property
    def joins_freely(self) -> bool:
        """Whether tokenising two texts apart adds nothing at the seam (BPE: yes; SPM's space: no)."""
        ...

    def tokenize(self, text: str, *, special: bool) -> list[Token]:
        """Tokens of `text`, without BOS or EOS added.

        With `special`, control tokens written out in the text become those tokens; without, they
        are read as plain characters.
        """
        ...

    def piece(self, token: Token, *, special: bool = False) -> bytes:
        """The bytes of a token, perhaps a part of a character; a control token's only if `special`."""
        ...

    def is_end(self, token: Token) -> bool:
        """Whether the token ends a generation (EOS, end of turn and their kin)."""
        ...
