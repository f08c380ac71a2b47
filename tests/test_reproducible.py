"""Texts that a seed repeats: the same whatever drafts, and of the target's law.

The text of a seed is written down here without the engine, as it is defined: at every place the noise
picks from the target's distribution. Every drafter, at any length and as any tree, must bring just that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from edgespec import judge
from edgespec.drafters.base import NOTHING, Draft, Drafter, Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import Round
from edgespec.model import ROOT, Logits, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Sampling, distribution
from tests.fakes import DRAFTERS, FakeModel, auto, bad_draft, chaotic, good_draft, noisy, self_draft
from tests.test_engine_laws import run, setting

LogitsOf = Callable[[tuple[Token, ...]], Logits]
SAMPLINGS = {
    "plain": Sampling(),
    "top-k": Sampling(temperature=0.8, top_k=3),
    "usual": Sampling(temperature=0.7, top_k=5, top_p=0.9, min_p=0.05),
    "penalties": Sampling(
        temperature=1.2, repeat_penalty=1.4, presence_penalty=0.3, penalty_window=5
    ),
}


class Even:
    """A constraint: the ids of two neighbours never are both odd."""

    def __init__(self) -> None:
        self._odd = False

    def apply(self, logits: Logits) -> Logits:
        allowed = logits.copy()
        if self._odd:
            allowed[1::2] = -np.inf
        return allowed

    def best(self, logits: Logits) -> Token:
        return int(self.apply(logits).argmax())

    def accept(self, token: Token) -> None:
        assert not (self._odd and token % 2), "what may not follow became text"
        self._odd = token % 2 == 1


class Trees:
    """Random trees whose children are the best under the noise by a draft model's view of the text."""

    def __init__(self, logits_of: LogitsOf, vocab: int) -> None:
        self._logits_of = noisy(logits_of, 3, 1.0)
        self._text: list[Token] = []
        self._rng = np.random.default_rng(vocab)

    def begin(self, prompt: Sequence[Token]) -> None:
        self._text = list(prompt)

    def propose(self, limit: int, policy: Policy) -> Draft:
        assert policy.noise is not None
        assert not policy.draw
        tokens: list[Token] = []
        parents: list[int] = []
        paths: list[tuple[Token, ...]] = []
        for parent in range(-1, min(policy.nodes, 9)):
            if parent >= len(tokens):
                break
            path = paths[parent] if parent >= 0 else ()
            room = min(policy.nodes, 15) - len(tokens)
            count = min(int(self._rng.integers(0, 4)), room)
            if len(path) >= limit or not count:
                continue
            text = (*self._text, *path)
            q = distribution(self._logits_of(text), policy.sampling, policy.sampling.window(text))
            for child in policy.noise.best(q, len(text), count):
                tokens.append(child)
                parents.append(parent if parent >= 0 else ROOT)
                paths.append((*path, child))
        if not tokens:
            return NOTHING
        return Draft(tuple(tokens), (None,) * len(tokens), "tree", tuple(parents))

    def accept(self, tokens: Sequence[Token]) -> None:
        self._text.extend(tokens)

    def close(self) -> None: ...


MAKERS: dict[str, Callable[[LogitsOf, int], Drafter]] = {**DRAFTERS, "trees": Trees}


def defined(
    logits_of: LogitsOf,
    prompt: Sequence[Token],
    sampling: Sampling,
    noise: SharedNoise,
    length: int,
    constraint: Even | None = None,
) -> list[Token]:
    """The text of a seed, without the engine."""
    text = list(prompt)
    for _ in range(length):
        logits = logits_of(tuple(text))
        if constraint:
            logits = constraint.apply(logits)
        text.append(noise.pick(distribution(logits, sampling, sampling.window(text)), len(text)))
        if constraint:
            constraint.accept(text[-1])
    return text[len(prompt) :]


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("kind", list(SAMPLINGS))
@pytest.mark.parametrize("constrained", [False, True])
def test_the_text_of_a_seed_is_the_same_whatever_drafts(
    name: str, kind: str, constrained: bool
) -> None:
    for seed in range(8):
        vocab, prompt, options = setting(seed)
        logits_of = chaotic(vocab, seed)
        length = options.max_tokens or 0
        options = DecodeOptions(
            sampling=SAMPLINGS[kind],
            draft_length=options.draft_length,
            max_tokens=length,
            acceptance="shared-noise",
            noise=SharedNoise(seed),
            constraint=Even() if constrained else None,
        )
        emitted, _, _ = run(
            FakeModel(logits_of, vocab), MAKERS[name](logits_of, vocab), prompt, options
        )
        constraint = Even() if constrained else None
        assert emitted == defined(
            logits_of, prompt, options.sampling, SharedNoise(seed), length, constraint
        )


@pytest.mark.parametrize("name", list(DRAFTERS))
def test_greedy_text_knows_nothing_of_noise(name: str) -> None:
    vocab, prompt, _ = setting(3)
    logits_of = chaotic(vocab, 3)
    options = DecodeOptions(
        sampling=Sampling(temperature=0), draft_length=5, max_tokens=40, acceptance="shared-noise"
    )
    made = [DRAFTERS[name](logits_of, vocab) for _ in range(2)]
    texts = [run(FakeModel(logits_of, vocab), drafter, prompt, options)[0] for drafter in made]
    plain = replace(options, acceptance="rejection", draft_length=0)
    assert texts == [run(FakeModel(logits_of, vocab), NoDrafter(), prompt, plain)[0]] * 2


def rounds_of(drafter: Drafter, target: FakeModel, options: DecodeOptions) -> list[Round]:
    return [event for event in decode(target, drafter, [1, 0], options) if isinstance(event, Round)]


@pytest.mark.parametrize("kind", list(SAMPLINGS))
def test_law_c_the_target_as_its_own_draft_is_accepted_in_full(kind: str) -> None:
    """Both have the same noise at the same places, after any number of rounds."""
    for seed in range(6):
        logits_of = chaotic(9, seed)
        options = DecodeOptions(
            sampling=SAMPLINGS[kind],
            draft_length=1 + seed,
            max_tokens=50,
            acceptance="shared-noise",
            noise=SharedNoise(seed),
        )
        rounds = rounds_of(self_draft(logits_of, 9), FakeModel(logits_of, 9), options)
        assert all(one.accepted == one.tested == one.proposed for one in rounds)
        assert rounds[0].proposed == 1 + seed


@pytest.mark.parametrize("make", [good_draft, bad_draft])
def test_law_d_a_draft_fed_step_by_step_proposes_what_a_fresh_one_does(
    make: Callable[[LogitsOf, int], DraftModelDrafter],
) -> None:
    rng = np.random.default_rng(0)
    logits_of = chaotic(6, 1)
    policy = Policy(Sampling(), rng.random, draw=False, noise=SharedNoise(4))
    text: list[Token] = [1, 2, 3]
    old = make(logits_of, 6)
    old.begin(text)
    for _ in range(20):
        fresh = make(logits_of, 6)
        fresh.begin(text)
        drafts = [drafter.propose(5, policy) for drafter in (old, fresh)]
        assert drafts[0].tokens == drafts[1].tokens
        assert drafts[0].proposals == (None,) * 5
        new = [*drafts[0].tokens[: int(rng.integers(0, 6))], int(rng.integers(0, 6))]
        old.accept(new)
        text += new


def test_a_draft_s_second_guesses_are_the_second_by_the_same_noise() -> None:
    """For the controller's trees: mostly what the target takes where it refuses the first."""
    logits_of, text, noise = chaotic(9, 1), [1, 2, 3], SharedNoise(4)
    drafter = self_draft(logits_of, 9)
    drafter.begin(text)
    policy = Policy(Sampling(), np.random.default_rng(0).random, draw=False, nodes=8, noise=noise)
    for place, token in enumerate(drafter.propose(5, policy).tokens):
        q = distribution(logits_of(tuple(text)), Sampling())
        assert [token, drafter.likely_second(place)] == noise.best(q, len(text), 2)
        text.append(token)


def test_the_controller_learns_of_sampled_drafts_apart_from_greedy_ones() -> None:
    drafter = auto(chaotic(9, 1), 9)
    before = drafter.learned()
    options = DecodeOptions(draft_length=4, max_tokens=60, acceptance="shared-noise")
    rounds_of(drafter, FakeModel(chaotic(9, 1), 9), options)
    after = drafter.learned()
    assert after["greedy"] == before["greedy"]
    assert after["drawn"] != before["drawn"]


def test_rows_that_all_take_the_noise_of_the_round_s_first_place_change_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control of the texts' equality: the noise must go by the place, not by the round."""
    logits_of = chaotic(9, 2)

    def text(length: int) -> list[Token]:
        options = DecodeOptions(
            draft_length=length, max_tokens=30, acceptance="shared-noise", noise=SharedNoise(1)
        )
        return run(FakeModel(logits_of, 9), good_draft(logits_of, 9), [1, 2], options)[0]

    assert text(4) == text(0)
    monkeypatch.setattr(
        judge.Judge,
        "_picked",
        lambda self, draft, row, p: SharedNoise(1).pick(p, len(self.text)),
    )
    assert text(4) != text(0)
