"""Texts with what the target makes of each of their tokens: what a draft of it is judged by.

The rows of the target are reduced to its likeliest tokens: whole, those of a few hundred positions
would take as much memory as a small model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
import yaml
from numpy.typing import NDArray

from edgespec.model import LanguageModel, Token

KEPT = 256
"""Tokens of a row that are kept; the rest hold next to nothing."""
ANSWER = 48
"""Tokens of an answer."""
_PIECE, _LED = 96, 24
"""Of a given text: tokens in one sample, and those that only lead in."""
_PIECES = 6


@dataclass(frozen=True, slots=True)
class Expected:
    """What the target says to a row of positions."""

    best: NDArray[np.int64]
    """int64[n]: its likeliest token at each."""
    ids: NDArray[np.int64]
    """int64[n, k]: the k likeliest."""
    shares: NDArray[np.float64]
    """float64[n, k]: their probabilities at temperature 1, out of all tokens."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One text."""

    kind: str
    tokens: tuple[Token, ...]
    start: int
    """The first token that is to be guessed; at least 1."""
    expected: Expected
    """For the tokens from `start` on."""


def read_prompts() -> list[tuple[str, str]]:
    """Kind and text of the prompts that come with EdgeSpec."""
    text = (resources.files("edgespec") / "derive_prompts.yaml").read_text(encoding="utf-8")
    return [(one["kind"], one["text"]) for one in yaml.safe_load(text)]


def answer(
    model: LanguageModel, kind: str, prompt: Sequence[Token], ends: Collection[Token], count: int
) -> Iterator[Sample | None]:
    """The target's own greedy answer of `count` tokens at most; gives None a token, then the sample.

    A prompt that is too long for the context loses its beginning. No sample comes of an answer that
    is empty. The cache is empty afterwards. Raises what the model raises.
    """
    count = min(count, model.capacity // 2)
    text = list(prompt[-max(1, model.capacity - count) :])
    start, rows = len(text), []
    model.truncate(0)
    row = model.extend(text, rows=1)[0]
    while len(text) < start + count:
        token = int(row.argmax())
        if token in ends:
            break
        rows.append(_reduced(row))
        text.append(token)
        yield None
        if len(text) < start + count:
            row = model.extend([token], rows=1)[0]
    model.truncate(0)
    if rows:
        yield Sample(kind, tuple(text), start, _stacked(rows))


def pieces(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """A long text in as many samples as are used, from all over it; [] where it is too short."""
    whole = len(tokens) // _PIECE
    if not whole:
        return [tuple(tokens)] if len(tokens) > _LED else []
    chosen = dict.fromkeys(number * whole // _PIECES for number in range(_PIECES))
    return [tuple(tokens[n * _PIECE : (n + 1) * _PIECE]) for n in chosen]


def reading(model: LanguageModel, kind: str, tokens: Sequence[Token]) -> Sample:
    """What the target makes of a text of others. The cache is empty afterwards."""
    tokens = tuple(tokens[: model.capacity])
    start = min(_LED, len(tokens) - 1)
    rows: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    for logits in guesses(model, tokens, start):
        rows += [_reduced(row) for row in logits]
    return Sample(kind, tokens, start, _stacked(rows))


def guesses(
    model: LanguageModel, tokens: Sequence[Token], start: int
) -> Iterator[NDArray[np.float32]]:
    """Logits for the tokens from `start` on, given those before each: float32[n, vocabulary] a time.

    Each is valid until the next one is asked for. The cache is empty afterwards.
    """
    model.truncate(0)
    if start > 1:
        model.extend(tokens[: start - 1], rows=0)
    most = min(model.max_rows, model.batch_size)
    for at in range(start - 1, len(tokens) - 1, most):
        piece = tokens[at : min(at + most, len(tokens) - 1)]
        yield model.extend(piece, rows=len(piece))
    model.truncate(0)


def _reduced(row: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The likeliest tokens, the best one first, and their probabilities."""
    kept = min(KEPT, len(row))
    ids = np.argpartition(row, -kept)[-kept:]
    ids = ids[np.argsort(-row[ids], kind="stable")]
    ids[0], other = row.argmax(), ids[0]  # of equal ones the same as decoding takes
    ids[1:][ids[1:] == ids[0]] = other
    return ids.astype(np.int64), shares(row, ids)


def shares(row: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[k]: the probabilities of some tokens at temperature 1."""
    raised = np.exp(row - row.max(), dtype=np.float32)
    chosen: NDArray[np.float64] = raised[ids].astype(np.float64) / raised.sum(dtype=np.float64)
    return chosen


def _stacked(rows: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]) -> Expected:
    ids = np.stack([row[0] for row in rows])
    return Expected(ids[:, 0].copy(), ids, np.stack([row[1] for row in rows]))
