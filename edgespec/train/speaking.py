"""The target answers prompts, several at once, and what its drafts are to learn from is taken down.

Each answer is a sequence of its own, and a pass computes a token of each. Where one ends, the next prompt
takes its place, so no pass is smaller than it could be while there is something to ask.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgespec.model import HiddenStates, Logits, Token

TEMPERATURE = 0.7
_LEAST = 0.02
"""When drawing: tokens less likely than this share of the likeliest one are left out."""
LIKELY = 8
"""The likeliest tokens of each place that are taken down, with their probabilities."""
_LARGEST = float(np.finfo(np.float16).max)

States = NDArray[np.float16]


class Heard(Protocol):
    """Of `edgespec.llama.chorus`."""

    @property
    def logits(self) -> Logits: ...  # noqa: D102 - as there
    @property
    def final(self) -> HiddenStates: ...  # noqa: D102
    @property
    def layers(self) -> HiddenStates | None: ...  # noqa: D102


class Chorus(Protocol):
    """Several sequences that one pass computes a token of: see `edgespec.llama.chorus`."""

    size: int

    def begin(self, sequence: int, tokens: Sequence[Token]) -> HiddenStates | None:
        """The sequence now holds these tokens alone; their layers."""
        ...

    def step(self, sequences: Sequence[int], tokens: Sequence[Token]) -> Heard:
        """Add one token to each of some sequences, which ascend."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt."""

    number: int
    """Among all prompts."""
    tokens: Sequence[Token]
    held: bool
    """Held out: never trained on."""
    greedy: bool
    """Whether each token of the answer is to be the likeliest one; else it is drawn."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One answer, with its prompt: n tokens of m altogether."""

    asked: Asked
    tokens: tuple[Token, ...]
    """Of the prompt and the answer."""
    likely: NDArray[np.int32]
    """int32[n, LIKELY]: what the target found likeliest at each place of the answer, in order."""
    shares: States
    """float16[n, LIKELY]: how likely."""
    final: States
    """float16[n, width]: the states that said so, those of the tokens before."""
    layers: States | None
    """float16[m - 1, layers * width], of all tokens but the last; None where they were not asked for."""


@dataclass(slots=True)
class _Line:
    """An answer on its way."""

    asked: Asked
    tokens: list[Token]
    rng: np.random.Generator
    likely: list[NDArray[np.int32]] = field(default_factory=list)
    shares: list[States] = field(default_factory=list)
    final: list[States] = field(default_factory=list)
    layers: list[States] = field(default_factory=list)

    @property
    def said(self) -> int:
        """Tokens of the answer."""
        return len(self.tokens) - len(self.asked.tokens)


class Speaker:
    """Has one model answer."""

    def __init__(self, chorus: Chorus, ends: Collection[Token], *, length: int, seed: int) -> None:
        """Answers end at one of `ends`, or with `length` tokens."""
        self._chorus, self._ends = chorus, ends
        self._length, self._seed = length, seed
        self._lines: dict[int, _Line] = {}
        """By sequence."""

    def speak(self, asked: Iterator[Asked]) -> Generator[list[Spoken], None, None]:
        """Answer prompts, taken when there is room for one; gives after each pass the answers that it
        ended. Raises what the model raises.
        """
        while True:
            for sequence in range(self._chorus.size):
                if sequence not in self._lines and (one := next(asked, None)):
                    self._begin(sequence, one)
            if not self._lines:
                return
            self._step()
            ended = [sequence for sequence, line in self._lines.items() if self._is_over(line)]
            yield [_spoken(self._lines.pop(sequence)) for sequence in ended]

    def cut(self) -> list[Spoken]:
        """The answers that are on their way, as far as they are; they end here."""
        lines, self._lines = list(self._lines.values()), {}
        return [_spoken(line) for line in lines if line.said]

    def _begin(self, sequence: int, one: Asked) -> None:
        line = _Line(one, list(one.tokens), np.random.default_rng([self._seed, one.number]))
        layers = self._chorus.begin(sequence, one.tokens[:-1])
        if layers is not None:
            line.layers += list(_halves(layers))
        self._lines[sequence] = line

    def _step(self) -> None:
        sequences = sorted(self._lines)
        lines = [self._lines[sequence] for sequence in sequences]
        heard = self._chorus.step(sequences, [line.tokens[-1] for line in lines])
        likely, shares = _likeliest(heard.logits)
        final = _halves(heard.final)
        layers = None if heard.layers is None else _halves(heard.layers)
        for at, line in enumerate(lines):
            line.likely.append(likely[at])
            line.shares.append(shares[at])
            line.final.append(final[at])
            if layers is not None:
                line.layers.append(layers[at])
            greedy, best = line.asked.greedy, int(likely[at, 0])
            line.tokens.append(best if greedy else _drawn(heard.logits[at], best, line.rng))

    def _is_over(self, line: _Line) -> bool:
        return line.tokens[-1] in self._ends or line.said >= self._length


def _likeliest(logits: Logits) -> tuple[NDArray[np.int32], States]:
    """int32[n, LIKELY], the likeliest first, and their probabilities."""
    most = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - most).sum(axis=1, keepdims=True)
    some = np.argpartition(logits, -LIKELY, axis=1)[:, -LIKELY:]
    found = np.take_along_axis(logits, some, axis=1)
    # Where several are equally likely, the first one is the likeliest, as everywhere else.
    order = np.lexsort((some, -found), axis=1)
    shares = np.exp(np.take_along_axis(found, order, axis=1) - most) / total
    likely = np.take_along_axis(some, order, axis=1).astype(np.int32)
    likely[:, 0] = logits.argmax(axis=1)
    return likely, shares.astype(np.float16)


def _drawn(row: Logits, best: Token, rng: np.random.Generator) -> Token:
    likely = np.flatnonzero(row >= row[best] + TEMPERATURE * math.log(_LEAST))
    shares = np.exp((row[likely] - row[best]).astype(np.float64) / TEMPERATURE).cumsum()
    at = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
    return int(likely[min(at, len(likely) - 1)])


def _halves(states: HiddenStates) -> States:
    """A copy in float16; what does not fit is cut, which happens to a few numbers of some models."""
    return np.clip(states, -_LARGEST, _LARGEST).astype(np.float16)


def _spoken(line: _Line) -> Spoken:
    return Spoken(
        line.asked,
        tuple(line.tokens),
        np.stack(line.likely),
        np.stack(line.shares),
        np.stack(line.final),
        np.stack(line.layers) if line.layers else None,
    )
