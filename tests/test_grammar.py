"""Laws A, B and E under a constraint: what may follow is masked before everything else, for the accepted
prefix alone, so that no drafter changes the text or its law.

The constraint here is made up and knows tokens only; grammars have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from edgespec import judge
from edgespec.drafters.base import Draft, Policy
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import UsageError
from edgespec.events import Reason
from edgespec.model import ROOT, Logits, Token
from edgespec.sampling import Distribution, Sampling, distribution, penalised
from tests.chances import distance, law
from tests.fakes import DRAFTERS, FakeModel, Scripted, chaotic, noisy
from tests.test_engine_laws import GREEDY, follow, run, setting, tokens_of

EXACT = 1e-12


class Rails:
    """A constraint of four states; in each some tokens may follow, and lead to another one."""

    def __init__(self, vocab: int, seed: int, ends: frozenset[Token] = frozenset()) -> None:
        rng = np.random.default_rng([seed, vocab])
        self._open = rng.random((4, vocab)) < 0.4
        self._open[range(4), rng.integers(0, vocab, 4)] = True
        self._next = rng.integers(0, 4, (4, vocab))
        self._state = 0
        self._ends = ends
        self.accepted: list[Token] = []

    def apply(self, logits: Logits) -> Logits:
        return np.where(self._open[self._state], logits, -np.inf)

    def best(self, logits: Logits) -> Token:
        return int(self.apply(logits).argmax())

    def accept(self, token: Token) -> None:
        if not self._ends.isdisjoint(self.accepted):
            return  # of a draft that goes on after its end nothing counts
        assert self._open[self._state, token], f"{token} cannot follow {self.accepted}"
        self._state = self._next[self._state, token]
        self.accepted.append(token)


class Forks:
    """Proposes trees: two point masses side by side, and one below the second."""

    def begin(self, prompt: Sequence[Token]) -> None: ...

    def propose(self, limit: int, policy: Policy) -> Draft:
        if limit < 2 or policy.nodes < 3 or policy.branches < 2:
            return Draft()
        return Draft((0, 1, 0), (None,) * 3, parents=(ROOT, ROOT, 1))

    def accept(self, tokens: Sequence[Token]) -> None: ...

    def close(self) -> None: ...


MAKERS: dict[str, Callable[[Callable[[tuple[Token, ...]], Logits], int], object]] = {
    **DRAFTERS,
    "forks": lambda logits_of, vocab: Forks(),
}


def plainly(
    target: FakeModel, prompt: list[Token], options: DecodeOptions, rails: Rails
) -> list[Token]:
    """Decoding within a constraint, written down as it is defined."""
    text = list(prompt)
    while len(text) - len(prompt) < (options.max_tokens or 0):
        target.truncate(0)
        logits = [target.extend(text[i : i + 16], 1) for i in range(0, len(text), 16)][-1][0]
        recent = options.sampling.window(text)
        text.append(int(rails.apply(penalised(logits, options.sampling, recent)).argmax()))
        rails.accept(text[-1])
        if text[-1] in options.end_tokens:
            break
    return text[len(prompt) :]


@pytest.mark.parametrize("sampling", [GREEDY, replace(GREEDY, presence_penalty=2.0)])
@pytest.mark.parametrize("name", MAKERS)
def test_law_a_within_a_constraint(name: str, sampling: Sampling) -> None:
    for seed in range(30):
        vocab, prompt, options = setting(seed)
        rails = Rails(vocab, seed, options.end_tokens)
        options = replace(options, constraint=rails, sampling=sampling)
        logits_of = chaotic(vocab, seed)
        drafter = MAKERS[name](logits_of, vocab)
        emitted, reason, _ = run(FakeModel(logits_of, vocab), drafter, prompt, options)
        alone = Rails(vocab, seed, options.end_tokens)
        assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options, alone)
        assert rails.accepted == emitted, "only what became text moves the constraint"
        ended = emitted[-1] in options.end_tokens
        assert reason is (Reason.END if ended else Reason.LENGTH)


def test_law_a_dies_where_the_constraint_is_not_moved_along_a_draft(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control."""
    monkeypatch.setattr(judge.Judge, "_move", lambda self, draft, row: None)
    with pytest.raises(AssertionError):
        test_law_a_within_a_constraint("self draft", GREEDY)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0, top_k=3)])
@pytest.mark.parametrize("name", MAKERS)
def test_law_b_within_a_constraint(name: str, sampling: Sampling) -> None:
    for seed in range(10):
        vocab, prompt, options = setting(seed)
        logits_of = chaotic(vocab, seed)
        for stop_after in (0, 2, 10_000):
            target = FakeModel(logits_of, vocab)
            options = replace(
                options,
                sampling=sampling,
                constraint=Rails(vocab, seed, options.end_tokens),
                uniform=np.random.default_rng(seed).random,
            )
            drafter = MAKERS[name](logits_of, vocab)
            steps = decode(target, drafter, prompt, options)  # type: ignore[arg-type]
            follow(target, prompt, steps, stop_after)


class Precise(FakeModel):
    """Float64, so that laws can be compared to the last digits."""

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        return super().extend(tokens, rows).astype(np.float64)

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        return super().grow(tokens, parents).astype(np.float64)


class Drawn(Scripted):
    """Draws from a model, as precisely: the draft model's own drafter keeps float32."""

    def __init__(self, logits_of: Callable[[tuple[Token, ...]], Logits]) -> None:
        super().__init__(lambda text, limit: ())
        self._logits_of = logits_of

    def propose(self, limit: int, policy: Policy) -> Draft:
        tokens: list[Token] = []
        proposals: list[Distribution] = []
        for _ in range(limit):
            row = self._logits_of((*self._text, *tokens)).astype(np.float64)
            proposals.append(distribution(row, policy.sampling))  # type: ignore[arg-type]
            tokens.append(proposals[-1].draw(policy.uniform()))
        return Draft(tuple(tokens), tuple(proposals) if policy.draw else (None,) * limit)


VOCAB, LENGTH = 4, 3


def sampled(
    name: str, seed: int, sampling: Sampling, draw: bool, uniform: Callable[[], float]
) -> tuple[Token, ...]:
    """One text, as the engine decodes it."""
    logits_of = chaotic(VOCAB, seed)
    options = DecodeOptions(
        sampling=sampling,
        draft_length=2,
        max_tokens=LENGTH,
        constraint=Rails(VOCAB, seed),
        acceptance="rejection" if draw else "equal",
        uniform=uniform,
    )
    drafter = Drawn(noisy(logits_of, 7, 1)) if name == "drawn" else MAKERS[name](logits_of, VOCAB)
    emitted, _, _ = run(Precise(logits_of, VOCAB), drafter, [1, 2, 1], options)
    return tuple(emitted)


def expected(
    seed: int, sampling: Sampling, *, mask_first: bool = True
) -> dict[tuple[Token, ...], float]:
    """The law of texts: at each place the target's probabilities of what may follow, at temperature
    1 and with `top_k`, of what may follow too.
    """
    logits_of = chaotic(VOCAB, seed)
    found: dict[tuple[Token, ...], float] = {}

    def grow(text: tuple[Token, ...], chance: float) -> None:
        if len(text) == LENGTH:
            found[text] = chance
            return
        rails = Rails(VOCAB, seed)
        for token in text:
            rails.accept(token)
        free = logits_of((1, 2, 1, *text)).astype(np.float64)
        row = rails.apply(free)  # type: ignore[arg-type]
        if sampling.top_k:
            ranked = np.argsort(-(row if mask_first else free), kind="stable")
            row[ranked[sampling.top_k :]] = -np.inf
        weights = np.exp(row - row.max())
        for token, weight in enumerate(weights / weights.sum()):
            if weight > 0:
                grow((*text, token), chance * float(weight))

    grow((), 1.0)
    return found


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_k=2)])
@pytest.mark.parametrize("draw", [True, False])
@pytest.mark.parametrize("name", ["none", "lookup", "drawn", "forks"])
def test_law_e_is_the_masked_targets(name: str, draw: bool, sampling: Sampling) -> None:
    for seed in range(6):
        found = law(partial(sampled, name, seed, sampling, draw))
        assert distance(found, expected(seed, sampling)) < EXACT


def test_law_e_dies_where_the_mask_comes_after_top_k() -> None:
    """Negative control: the best two of all, of which one may be forbidden, are others."""
    top = Sampling(top_k=3)
    found = law(partial(sampled, "drawn", 2, top, True))
    assert distance(found, expected(2, top)) < EXACT
    assert distance(found, expected(2, top, mask_first=False)) > 0.01


def test_a_draft_that_is_forbidden_is_refused() -> None:
    rails = Rails(8, 5)
    forbidden = [token for token in range(8) if not rails._open[0, token]]
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=9, constraint=rails)
    target = FakeModel(chaotic(8, 5), 8)
    drafter = Scripted(lambda text, limit: forbidden[:limit])
    emitted = [t for e in decode(target, drafter, [1], options) for t in tokens_of(e)]
    assert rails.accepted == emitted


@pytest.mark.parametrize("name", ["none", "self draft", "forks"])
def test_law_b_where_nothing_can_follow(name: str) -> None:
    """A constraint that comes to a dead end raises; the cache is that of the tokens before."""

    class Wall(Rails):
        def best(self, logits: Logits) -> Token:
            if len(self.accepted) == 7:
                raise UsageError("nothing can follow")
            return super().best(logits)

    target, prompt, emitted = FakeModel(chaotic(6, 1), 6), [1, 2], list[Token]()
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=20, constraint=Wall(6, 1))
    steps = decode(target, MAKERS[name](chaotic(6, 1), 6), prompt, options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nothing can follow"):
        emitted.extend(token for event in steps for token in tokens_of(event))
    assert emitted
    assert list(target.tokens) == prompt + emitted[:-1]
    free = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=5)
    assert run(target, MAKERS[name](chaotic(6, 1), 6), prompt, free)[0]
