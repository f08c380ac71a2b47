"""Law E of whole texts with a seed: each as often as the target says, and as much of a draft kept as the
formula says. Known mistakes fail the same checks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec import judge
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.model import Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Sampling, distribution
from edgespec.verify import Verdict
from tests.fakes import FakeModel, chaotic
from tests.test_noise_law import agreement
from tests.test_reproducible import SAMPLINGS, LogitsOf, rounds_of

P = np.array([0.45, 0.3, 0.15, 0.08, 0.02])
Q = np.array([0.3, 0.25, 0.05, 0.3, 0.1])


def always(probs: NDArray[np.float64]) -> LogitsOf:
    row = np.log(probs).astype(np.float32)
    return lambda text: row


def kept(acceptance: judge.Acceptance) -> float:
    """The share of tested tokens that is kept, where p and q are the same all along the text."""
    drafter = DraftModelDrafter(FakeModel(always(Q), 5), 5)
    rounds: list[Round] = []
    for seed in range(8):
        options = DecodeOptions(
            draft_length=3,
            max_tokens=400,
            acceptance=acceptance,
            noise=SharedNoise(seed),
            uniform=np.random.default_rng(seed).random,
        )
        rounds += rounds_of(drafter, FakeModel(always(P), 5), options)
    return sum(one.accepted for one in rounds) / sum(one.tested for one in rounds)


def test_as_many_are_kept_as_the_formula_says() -> None:
    """Fewer than by rejection sampling, more than with the draft's arg-max."""
    both = sum(agreement(P.tolist(), Q.tolist()).values())
    shares = {rule: kept(rule) for rule in ("shared-noise", "rejection", "equal")}
    wanted = {"shared-noise": both, "rejection": float(np.minimum(P, Q).sum()), "equal": P[0]}
    assert shares == pytest.approx(wanted, abs=0.02)
    assert wanted["equal"] + 0.04 < both < wanted["rejection"] - 0.04


# Whole texts, one a seed, as often as the target says.

VOCAB, LENGTH, SEEDS = 3, 3, 1500


def law_of_texts(logits_of: LogitsOf, sampling: Sampling) -> dict[tuple[Token, ...], float]:
    law = {}
    for text in itertools.product(range(VOCAB), repeat=LENGTH):
        chance = 1.0
        for i, token in enumerate(text):
            before = (0, *text[:i])
            recent = sampling.window(before)
            chance *= distribution(logits_of(before), sampling, recent).prob(token)
        law[text] = chance
    return law


def chi_square(
    sampling: Sampling, noise_of: Callable[[int], SharedNoise] = SharedNoise, seeds: int = SEEDS
) -> float:
    """The statistic's distance from its mean in standard deviations."""
    logits_of = chaotic(VOCAB, 1)
    table = {text: logits_of(text) for n in range(4) for text in _texts(n)}
    target = FakeModel(lambda text: table[text[-3:]], VOCAB)
    drafter = DraftModelDrafter(FakeModel(lambda text: table[text[-1:]], VOCAB), VOCAB)
    counts: dict[tuple[Token, ...], int] = {}
    for seed in range(seeds):
        options = DecodeOptions(
            sampling=sampling,
            draft_length=2,
            max_tokens=LENGTH,
            acceptance="shared-noise",
            noise=noise_of(seed),
        )
        text: list[Token] = []
        for event in decode(target, drafter, [0], options):
            if isinstance(event, FirstToken):
                text.append(event.token)
            elif isinstance(event, Round):
                text.extend(event.tokens)
        counts[tuple(text)] = counts.get(tuple(text), 0) + 1
    cells, total = 0, 0.0
    for key, chance in law_of_texts(logits_of, sampling).items():
        expected = chance * seeds
        if chance == 0:
            assert key not in counts
        elif expected > 5:
            cells += 1
            total += (counts.get(key, 0) - expected) ** 2 / expected
    return (total - cells + 1) / math.sqrt(2 * (cells - 1))


def _texts(length: int) -> itertools.product[tuple[Token, ...]]:
    return itertools.product(range(VOCAB), repeat=length)


@pytest.mark.parametrize("kind", ["plain", "penalties"])
def test_law_e_whole_texts_come_as_often_as_the_target_says(kind: str) -> None:
    assert abs(chi_square(SAMPLINGS[kind])) < 6


class Standing(SharedNoise):
    """Mistaken: the same noise all along the text."""

    def exponential(self, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return super().exponential(0, ids)

    def _least(
        self, position: int, blocks: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return super()._least(0, blocks)


def test_law_e_noise_that_stands_still_fails() -> None:
    """Negative control: every token by itself has the right law, whole texts have not."""
    assert chi_square(SAMPLINGS["plain"], Standing, 400) > 20


def test_law_e_a_draft_that_is_kept_by_its_own_noise_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a draft is right where the target picks it, not where the draft does."""

    def trusting(draft: Sequence[Token], choose: Callable[[int], Token]) -> Verdict:
        return Verdict(range(len(draft)), choose(len(draft)))

    monkeypatch.setattr(judge, "verify_greedy", trusting)
    assert chi_square(SAMPLINGS["plain"], SharedNoise, 1000) > 20
