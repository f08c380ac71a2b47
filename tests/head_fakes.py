"""Heads over the states of `FakeModel`, and small head files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from edgespec.heads import file
from edgespec.heads.file import HeadFile
from edgespec.model import HiddenStates, Logits, Token
from model_registry.heads import MEDUSA, About, Trained

LogitsOf = Callable[[tuple[Token, ...]], Logits]


class FakeHeads:
    """Know what the target says next if it always says the likeliest; `scale` disturbs that.

    For a target that looks at its last two tokens at most: a state of `FakeModel` holds those.
    """

    def __init__(
        self,
        logits_of: LogitsOf,
        vocab: int,
        *,
        count: int = 4,
        scale: float = 0.0,
        known: Sequence[Token] | None = None,
    ) -> None:
        self._logits_of = logits_of
        self._scale = scale
        self.count = count
        self.vocabulary = np.array(range(vocab) if known is None else known, np.int64)
        self.coverage = [1.0] * count
        self.asked: list[int] = []

    def logits(self, state: HiddenStates, count: int, first: int = 0) -> Logits:
        self.asked.append(count)
        length, before, token = (int(number) for number in state)
        text = (before, token)[-length:] if length < 2 else (before, token)
        rng = np.random.default_rng([length, before + 1, token])
        rows = []
        for _ in range(first + count):
            text = (*text, int(self._logits_of(text).argmax()))
            clear = self._logits_of(text)
            rows.append(clear + rng.normal(scale=self._scale, size=len(clear)))
        return np.array(rows[first:], np.float32)[:, self.vocabulary]

    def places(self, tokens: Sequence[Token]) -> NDArray[np.int64]:
        known = self.vocabulary.tolist()
        return np.array([known.index(token) for token in tokens if token in known], np.int64)


def about(*digests: str, width: int = 8, vocab: int = 20) -> About:
    targets = tuple(Trained(digest, f"model {digest}") for digest in digests or ("sample:own",))
    return About(
        kind=MEDUSA,
        targets=targets,
        hidden_size=width,
        vocab_size=vocab,
        training={"minutes": 3, "data": "self"},
    )


class Arrays(TypedDict):
    blocks: NDArray[np.float32]
    output: NDArray[np.float32]


def arrays(heads: int = 3, width: int = 8, tokens: int = 6, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        "blocks": rng.normal(size=(heads, width, width)).astype(np.float32),
        "output": rng.normal(size=(tokens, width)).astype(np.float32),
    }


def head_file(
    path: Path,
    *digests: str,
    heads: int = 3,
    width: int = 8,
    vocab: int = 20,
    tokens: int = 6,
    seed: int = 0,
) -> HeadFile:
    """A head of random numbers."""
    return file.save(
        path,
        about(*digests, width=width, vocab=vocab),
        **arrays(heads, width, tokens, seed),
        vocabulary=np.linspace(0, vocab - 1, tokens).astype(np.int64),
    )
