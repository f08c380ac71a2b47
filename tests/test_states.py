"""Drafters that guess from hidden states get those of every token of the text, once and in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from edgespec.drafters.base import Draft, Policy
from edgespec.engine import DecodeOptions, decode
from edgespec.model import ROOT, HiddenStates, Token
from edgespec.sampling import Sampling
from tests.fakes import FakeModel, chaotic
from tests.test_engine_laws import run


class Reading:
    """Guesses at random, chains and trees, and checks each state that it is shown."""

    def __init__(self, seed: int, *, needs_all: bool) -> None:
        self._rng = np.random.default_rng(seed)
        self._needs_all = needs_all
        self.text: list[Token] = []
        self.prompt: list[Token] = []
        self.seen: dict[int, tuple[Token, Token]] = {}
        self.held = 0

    def states_held(self, prompt: Sequence[Token]) -> int:
        self.prompt = list(prompt)
        self.held = 0
        while self.seen.get(self.held, ())[1:] == (prompt[self.held],):
            self.held += 1
            if self.held == len(prompt):
                break
        self.seen = {place: self.seen[place] for place in range(self.held)}
        return self.held if self._needs_all else len(prompt)

    def read_states(self, end: int, states: HiddenStates) -> None:
        for place, state in enumerate(states.astype(int).tolist(), start=end - len(states)):
            length, before, token = state
            assert length == place + 1
            self.seen[place] = before, token

    def begin(self, prompt: Sequence[Token]) -> None:
        self.text = list(prompt)

    def propose(self, limit: int, policy: Policy) -> Draft:
        count = int(self._rng.integers(1, limit + 1))
        tokens = tuple(self._rng.integers(0, 4, count).tolist())
        parents: tuple[int, ...] = ()
        if policy.nodes >= count and self._rng.random() < 0.7:
            parents = tuple(int(self._rng.integers(ROOT, i)) for i in range(count))
        return Draft(tokens, (None,) * count, parents=parents)

    def accept(self, tokens: Sequence[Token]) -> None:
        self.text += tokens
        self.check()

    def check(self) -> None:
        """All of the text but its last token was seen, as it is."""
        for place in range(len(self.text) - 1 if self._needs_all else 0):
            assert self.seen[place][1] == self.text[place]
        last = len(self.text) - 2
        assert self.seen[last][1] == self.text[last]

    def close(self) -> None: ...


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("needs_all", [True, False])
def test_states_of_the_text_come_in_order(seed: int, needs_all: bool) -> None:
    rng = np.random.default_rng(seed)
    target, drafter = FakeModel(chaotic(4, seed), 4), Reading(seed, needs_all=needs_all)
    prompt = rng.integers(0, 4, int(rng.integers(1, 60))).tolist()
    for turn in range(3):
        options = DecodeOptions(
            sampling=Sampling(temperature=float(turn % 2)),
            draft_length=6,
            max_tokens=int(rng.integers(1, 30)),
            end_tokens=frozenset({3}),
            uniform=rng.random,
        )
        emitted, _, _ = run(target, drafter, prompt, options)
        drafter.check()
        prompt = [*prompt, *emitted, *rng.integers(0, 4, int(rng.integers(1, 30))).tolist()]


def test_what_it_has_no_states_for_is_computed_again() -> None:
    target, drafter = FakeModel(chaotic(4, 1), 4), Reading(1, needs_all=True)
    target.extend([1, 2, 3, 0, 1], rows=0)  # by another drafter
    list(decode(target, drafter, [1, 2, 3, 0, 1, 2, 2], DecodeOptions(max_tokens=3)))
    drafter.check()
