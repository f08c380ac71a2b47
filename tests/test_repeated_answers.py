"""Conversations that a seed repeats, and the option that draws one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from edgespec.cli.options import chat_parser, settings_from
from edgespec.model import Logits, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Sampling
from edgespec.settings import Settings, repeatable
from tests.fakes import chaotic, noisy
from tests.test_session import Bench, text_of

LogitsOf = Callable[[tuple[Token, ...]], Logits]


class Rambling(Bench):
    """A session whose model would say anything."""

    def __init__(self, *, draft: int | None = None, capacity: int = 400, seed: int | None) -> None:
        super().__init__(capacity=capacity, draft=draft, seed=seed, max_tokens=60)
        self.session.configure(
            replace(self.session.settings, sampling=Sampling(temperature=1.0, top_k=40))
        )
        view = chaotic(self.model.vocab_size, 5)
        self.model._logits_of = self._letters(view)
        if self.pair.draft:
            small = self.pair.draft.model
            small._logits_of = self._letters(noisy(view, 1, 0.7))  # type: ignore[attr-defined]

    @staticmethod
    def _letters(logits_of: LogitsOf) -> LogitsOf:
        def only(text: tuple[Token, ...]) -> Logits:
            row = logits_of(text)
            row[:97], row[123:] = -50, -50
            return row

        return only


def answers(bench: Bench) -> list[str]:
    one, two = bench.says(""), bench.says("")
    again = list(bench.session.regenerate())
    return [text_of(events) for events in (one, two, again)]


def test_a_seed_repeats_a_conversation_whatever_drafts() -> None:
    plain = answers(Rambling(seed=3))
    assert plain == answers(Rambling(seed=3, draft=400))
    assert len(set(plain)) == 3, "each answer has noise of its own"
    assert plain != answers(Rambling(seed=4))
    assert answers(Rambling(seed=None)) != answers(Rambling(seed=None))


def test_a_longer_answer_meets_no_noise_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """When older turns leave in the midst of an answer, its places begin anew."""
    used: list[tuple[float, int]] = []
    pick = SharedNoise.pick

    def watched(self: SharedNoise, p: object, position: int) -> Token:
        used.append((float(self.exponential(position, np.array([0]))[0]), position))
        return pick(self, p, position)  # type: ignore[arg-type]

    bench = Rambling(seed=3, capacity=250)
    bench.says("")
    bench.session.configure(replace(bench.session.settings, max_tokens=200))
    monkeypatch.setattr(SharedNoise, "pick", watched)
    bench.says("")
    positions = [position for _, position in used]
    assert len(set(positions)) < len(positions), "no turn has left"
    assert len({noise for noise, _ in used}) == len(used)


def test_reproducible_draws_a_seed_and_tells_it() -> None:
    def chosen(*options: str) -> Settings:
        return settings_from(chat_parser("run", "").parse_args(options))

    drawn = chosen("--reproducible")
    assert drawn.seed is not None
    assert drawn.notices == (
        f"The seed is {drawn.seed}: the same messages with --seed {drawn.seed} bring the same answers.",
    )
    assert chosen("--reproducible").seed != drawn.seed
    given = chosen("--reproducible", "--seed", "12")
    assert (given.seed, given.notices) == (12, ())
    assert chosen().seed is None
    assert repeatable(drawn) == drawn
