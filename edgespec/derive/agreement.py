"""How often a draft says what its target says, by the target's own texts.

Greedy: a guess is kept where both have the same likeliest token. Sampled: with the probability
sum min(p, q) (Leviathan et al. 2023, section 3.2), here at temperature 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgespec.derive.samples import Sample, guesses, shares
from edgespec.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts over some positions."""

    tested: int = 0
    same: int = 0
    """Positions with the same likeliest token."""
    overlap: float = 0.0
    """Sum of sum min(p, q)."""

    @property
    def greedy(self) -> float:
        """Acceptance at temperature 0."""
        return self.same / self.tested if self.tested else 0.0

    @property
    def likely(self) -> float:
        """Acceptance at temperature 0, with caution: few positions that all agree prove little."""
        return (self.same + 1) / (self.tested + 2)

    @property
    def sampled(self) -> float:
        """Acceptance at temperature 1."""
        return self.overlap / self.tested if self.tested else 0.0


Kinds = Mapping[str, Agreement]
"""By kind of text."""


def total(kinds: Kinds) -> Agreement:
    """All kinds together."""
    return _sum(kinds.values())


def judged(model: LanguageModel, samples: Sequence[Sample]) -> Iterator[Kinds]:
    """What a draft is worth; gives the sums after each sample. Raises what the model raises."""
    kinds: dict[str, Agreement] = {}
    for sample in samples:
        found = _sum(_compared(model, sample))
        kinds[sample.kind] = _sum((kinds.get(sample.kind, Agreement()), found))
        yield dict(kinds)


def _compared(model: LanguageModel, sample: Sample) -> Iterator[Agreement]:
    expected, at = sample.expected, 0
    for logits in guesses(model, sample.tokens, sample.start):
        for row in logits:
            q = shares(row, expected.ids[at])
            overlap = float(np.minimum(q, expected.shares[at]).sum())
            yield Agreement(1, int(row.argmax() == expected.best[at]), overlap)
            at += 1


def _sum(parts: Iterable[Agreement]) -> Agreement:
    tested, same, overlap = 0, 0, 0.0
    for part in parts:
        tested, same, overlap = (
            tested + part.tested,
            same + part.same,
            overlap + part.overlap,
        )
    return Agreement(tested, same, overlap)
