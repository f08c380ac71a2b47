"""Law E: what is emitted is distributed as the target alone would have it.

First by enumeration: every branch a rule can take is followed and its probability added up, which
checks the law to 1e-12 without drawing anything. Then by joint frequencies of whole texts, with the
real engine and drafters. Three known mistakes must fail the same checks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import pytest

from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.model import Logits, Token
from edgespec.sampling import Distribution, Sampling, choose, distribution, residual
from edgespec.verify import Verdict, verify_greedy, verify_sampled
from tests.fakes import FakeModel, Scripted, auto, dense

Rule = Callable[
    [
        Sequence[Token],
        Sequence[Distribution | None],
        Callable[[int], Distribution],
        Callable[[], float],
    ],
    Verdict,
]
PAIRS = {
    "apart": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "alike": ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
    "zeros in p": ([0.6, 0.0, 0.4], [0.2, 0.5, 0.3]),
    "zeros in q": ([0.4, 0.3, 0.3], [0.7, 0.3, 0.0]),
    "one-hot p": ([0.0, 1.0, 0.0], [0.3, 0.3, 0.4]),
    "one-hot q": ([0.3, 0.3, 0.4], [0.0, 1.0, 0.0]),
    "disjoint": ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0]),
}


class Branches:
    """Uniform numbers that walk every branch of a rule, with the probability of each.

    A rule uses a uniform number twice: to test a draft (accepted below a threshold) and to draw from
    a distribution. Both split [0, 1) at known points, so it is enough to stand once in each part.
    """

    def __init__(self, cuts: Sequence[Sequence[float]]) -> None:
        self._cuts = cuts

    def walk(self, rule: Callable[[Callable[[], float]], Verdict]) -> dict[Verdict, float]:
        outcomes: dict[Verdict, float] = {}
        self._descend(rule, [], 1.0, outcomes)
        return outcomes

    def _descend(
        self,
        rule: Callable[[Callable[[], float]], Verdict],
        path: list[float],
        weight: float,
        outcomes: dict[Verdict, float],
    ) -> None:
        numbers = iter(path)
        try:
            verdict = rule(lambda: next(numbers))
        except StopIteration:
            points = sorted({0.0, 1.0, *(c for c in self._cuts[len(path)] if 0 < c < 1)})
            for low, high in itertools.pairwise(points):
                self._descend(rule, [*path, (low + high) / 2], weight * (high - low), outcomes)
            return
        outcomes[verdict] = outcomes.get(verdict, 0.0) + weight


def cuts_of(
    draft: Sequence[Token], ps: Sequence[Distribution], qs: Sequence[Distribution | None]
) -> list[list[float]]:
    """Every point where rejection sampling of `draft` may turn: its ratios, and what it draws from."""
    points: set[float] = set()
    tables = [p.probs for p in ps]
    for token, p, q in zip(draft, ps, qs, strict=False):
        points.add(min(p.prob(token) / (1 if q is None else q.prob(token)), 1.0))
        own = np.eye(len(p.probs))[token] * p.prob(token) if q is None else q.probs
        rest = np.maximum(p.probs - own, 0)
        tables.append(rest / (rest.sum() or 1))
    for table in tables:
        points.update(table.cumsum().tolist())
    return [sorted(points)] * (len(draft) + 2)


def wide_cuts(
    draft: Sequence[Token], ps: Sequence[Distribution], qs: Sequence[Distribution | None]
) -> list[list[float]]:
    """The points where a mistaken rule may turn: all of a fine grid besides the true ones."""
    return [sorted({*np.linspace(0, 1, 200).tolist(), *cuts}) for cuts in cuts_of(draft, ps, qs)]


def text_law(
    rule: Rule,
    p_of: Callable[[tuple[Token, ...]], Distribution],
    q_of: Callable[[tuple[Token, ...]], Distribution | None],
    length: int,
    vocab: int,
    guess: Sequence[Token] = (),
    cuts: Callable[..., list[list[float]]] = cuts_of,
) -> dict[tuple[Token, ...], float]:
    """The exact law of the first `length` + 1 tokens after one round of drafts.

    Drafts are drawn from `q_of` (or are `guess`, where that gives None); where the round ends before,
    the target goes on alone.
    """
    law: dict[tuple[Token, ...], float] = {}
    drafts = itertools.product(range(vocab), repeat=length) if not guess else [tuple(guess)]
    for draft in drafts:
        qs = [q_of(draft[:i]) for i in range(length)]
        chance = math.prod(1.0 if q is None else q.prob(t) for q, t in zip(qs, draft, strict=True))
        if chance == 0:
            continue
        ps = [p_of(draft[:i]) for i in range(length + 1)]
        outcomes = Branches(cuts(draft, ps, qs)).walk(partial(_judged, rule, draft, qs, ps))
        for verdict, weight in outcomes.items():
            text = (*draft[: verdict.accepted], verdict.token)
            _continue(text, chance * weight, p_of, length + 1, vocab, law)
    return law


def _judged(
    rule: Rule,
    draft: Sequence[Token],
    qs: Sequence[Distribution | None],
    ps: Sequence[Distribution],
    uniform: Callable[[], float],
) -> Verdict:
    return rule(draft, qs, lambda row: ps[row], uniform)


def _continue(
    text: tuple[Token, ...],
    weight: float,
    p_of: Callable[[tuple[Token, ...]], Distribution],
    length: int,
    vocab: int,
    law: dict[tuple[Token, ...], float],
) -> None:
    if len(text) == length:
        law[text] = law.get(text, 0.0) + weight
        return
    for token in range(vocab):
        _continue((*text, token), weight * p_of(text).prob(token), p_of, length, vocab, law)


def error(
    law: dict[tuple[Token, ...], float],
    p_of: Callable[[tuple[Token, ...]], Distribution],
    length: int,
    vocab: int,
) -> float:
    """The largest difference to the target's own law of texts."""
    worst = 0.0
    for text in itertools.product(range(vocab), repeat=length + 1):
        own = math.prod(p_of(text[:i]).prob(token) for i, token in enumerate(text))
        worst = max(worst, abs(own - law.get(text, 0.0)))
    return worst


def constant(probs: Sequence[float]) -> Callable[[tuple[Token, ...]], Distribution]:
    return lambda text: dense(*probs)


@cache
def markov(
    seed: int, vocab: int, sharp: float = 1.0
) -> Callable[[tuple[Token, ...]], Distribution]:
    @cache
    def p_of(text: tuple[Token, ...]) -> Distribution:
        rng = np.random.default_rng([seed, *text[-2:]])
        weights = rng.gamma(sharp, size=vocab)
        if sharp < 1:
            weights[rng.integers(0, vocab)] = 0
        return dense(*(weights / weights.sum()))

    return p_of


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("length", [0, 1, 2])
def test_law_e_rejection_sampling_is_exact(name: str, length: int) -> None:
    p, q = PAIRS[name]
    law = text_law(verify_sampled, constant(p), constant(q), length, 3)
    assert error(law, constant(p), length, 3) < 1e-12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sharp", [1.0, 0.4])
def test_law_e_holds_where_each_row_depends_on_the_accepted_prefix(seed: int, sharp: float) -> None:
    p_of, q_of = markov(seed, 3, sharp), markov(seed + 100, 3, sharp)
    law = text_law(verify_sampled, p_of, q_of, 2, 3)
    assert error(law, p_of, 2, 3) < 1e-12


@pytest.mark.parametrize("name", list(PAIRS))
def test_law_e_point_masses_are_exact(name: str) -> None:
    p, _ = PAIRS[name]
    for guess in itertools.product(range(3), repeat=2):
        law = text_law(verify_sampled, constant(p), lambda text: None, 2, 3, guess)
        assert error(law, constant(p), 2, 3) < 1e-12


@pytest.mark.parametrize("name", list(PAIRS))
def test_law_e_drawing_and_comparing_is_exact(name: str) -> None:
    p, _ = PAIRS[name]

    def matched(
        draft: Sequence[Token],
        _proposals: Sequence[Distribution | None],
        target: Callable[[int], Distribution],
        uniform: Callable[[], float],
    ) -> Verdict:
        return verify_greedy(draft, lambda row: target(row).draw(uniform()))

    for guess in itertools.product(range(3), repeat=2):
        law = text_law(matched, constant(p), lambda text: None, 2, 3, guess)
        assert error(law, constant(p), 2, 3) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_law_e_sparse_and_dense_rows_mix(seed: int) -> None:
    """Truncation leaves some rows sparse; every combination of p and q must be exact."""

    def cut(
        p_of: Callable[[tuple[Token, ...]], Distribution],
    ) -> Callable[[tuple[Token, ...]], Distribution]:
        def sparse(text: tuple[Token, ...]) -> Distribution:
            probs = p_of(text).probs.copy()
            probs[probs.argmin()] = 0
            ids = probs.nonzero()[0]
            return Distribution(probs[ids] / probs[ids].sum(), ids)

        return sparse

    ways = [lambda f: f, cut]
    for of_p, of_q in itertools.product(ways, ways):
        p_of, q_of = of_p(markov(seed, 4)), of_q(markov(seed + 50, 4))

        def full(
            text: tuple[Token, ...], f: Callable[[tuple[Token, ...]], Distribution] = p_of
        ) -> Distribution:
            return dense(*(f(text).prob(token) for token in range(4)))

        for first in range(4):
            expected = full(()).prob(first)
            got = 0.0
            for token in range(4):
                chance = q_of(()).prob(token)
                ratio = min(1.0, full(()).prob(token) / chance) if chance else 0.0
                got += chance * ratio * (token == first)
                got += chance * (1 - ratio) * residual(p_of(()), q_of(())).prob(first)
            assert got == pytest.approx(expected, abs=1e-12)


def scalar_residual(
    draft: Sequence[Token],
    proposals: Sequence[Distribution | None],
    target: Callable[[int], Distribution],
    uniform: Callable[[], float],
) -> Verdict:
    """The article's mistake: it takes the number q(x) from all of p instead of the vector q."""
    for i, (token, q) in enumerate(zip(draft, proposals, strict=True)):
        p = target(i)
        assert q is not None
        if uniform() < p.prob(token) / q.prob(token):
            continue
        rest = np.maximum(p.probs - q.prob(token), 0)
        return Verdict(
            range(i), Distribution(rest / rest.sum() if rest.sum() else p.probs).draw(uniform())
        )
    return Verdict(range(len(draft)), target(len(draft)).draw(uniform()))


def off_by_one(
    draft: Sequence[Token],
    proposals: Sequence[Distribution | None],
    target: Callable[[int], Distribution],
    uniform: Callable[[], float],
) -> Verdict:
    """Tests a draft against the row after its own."""
    return verify_sampled(draft, proposals, lambda row: target(min(row + 1, len(draft))), uniform)


@pytest.mark.parametrize("rule", [scalar_residual, off_by_one])
def test_law_e_known_mistakes_fail_the_enumeration(rule: Rule) -> None:
    """The grid is coarse, so its own error is measured too, on the right rule."""
    p_of, q_of = markov(4, 3), markov(104, 3)
    laws = [text_law(way, p_of, q_of, 1, 3, cuts=wide_cuts) for way in (rule, verify_sampled)]
    assert error(laws[0], p_of, 1, 3) > 0.02
    assert error(laws[1], p_of, 1, 3) < 1e-12


def test_law_e_an_argmax_proposal_tested_with_p_over_q_fails() -> None:
    """llama.cpp's old stochastic example: proposes the top token, yet accepts with p / q."""
    p = q = [0.5, 0.3, 0.2]
    outcomes = Branches(cuts_of([0], [dense(*p)] * 2, [dense(*q)])).walk(
        lambda u: verify_sampled([0], [dense(*q)], lambda i: dense(*p), u)
    )
    first = sum(w for v, w in outcomes.items() if v.accepted == 1)
    assert first == pytest.approx(1.0)  # the law of the first token is (1, 0, 0) instead of p


# Joint frequencies through the whole engine. The threshold is far above what chance gives.

VOCAB, LENGTH, DRAWS = 3, 3, 12_000


@cache
def toy(seed: int) -> Callable[[tuple[Token, ...]], Logits]:
    @cache
    def logits_of(text: tuple[Token, ...]) -> Logits:
        return np.random.default_rng([seed, *text[-2:]]).normal(size=VOCAB).astype(np.float32)

    return logits_of


def frequencies(drafter: object, sampling: Sampling, length: int) -> dict[tuple[Token, ...], int]:
    target = FakeModel(toy(1), VOCAB)
    rng = np.random.default_rng(5)
    options = DecodeOptions(
        sampling=sampling, draft_length=length, max_tokens=LENGTH, uniform=rng.random
    )
    counts: dict[tuple[Token, ...], int] = {}
    for _ in range(DRAWS):
        text: list[Token] = []
        for event in decode(target, drafter, [0], options):  # type: ignore[arg-type]
            if isinstance(event, FirstToken):
                text.append(event.token)
            elif isinstance(event, Round):
                text.extend(event.tokens)
        counts[tuple(text)] = counts.get(tuple(text), 0) + 1
    return counts


def chi_square(counts: dict[tuple[Token, ...], int], sampling: Sampling) -> float:
    """The statistic's distance from its mean in standard deviations."""
    logits_of = toy(1)
    cells, total = 0, 0.0
    for text in itertools.product(range(VOCAB), repeat=LENGTH):
        chance = 1.0
        for i, token in enumerate(text):
            before = (0, *text[:i])
            recent = sampling.window(before)
            chance *= distribution(logits_of(before), sampling, recent).prob(token)
        expected = chance * DRAWS
        if chance == 0:
            assert text not in counts
        elif expected > 5:
            cells += 1
            total += (counts.get(text, 0) - expected) ** 2 / expected
    freedom = cells - 1
    return (total - freedom) / math.sqrt(2 * freedom)


SAMPLINGS = {
    "plain": Sampling(),
    "hot": Sampling(temperature=1.6),
    "top-k": Sampling(temperature=0.8, top_k=3),
    "top-p and penalties": Sampling(
        temperature=0.9, top_p=0.9, repeat_penalty=1.4, presence_penalty=0.3
    ),
}


@pytest.mark.parametrize("name", list(SAMPLINGS))
def test_law_e_whole_texts_come_as_often_as_the_target_says(name: str) -> None:
    sampling = SAMPLINGS[name]
    draft = FakeModel(toy(2), VOCAB)
    counts = frequencies(DraftModelDrafter(draft, VOCAB), sampling, 2)
    assert abs(chi_square(counts, sampling)) < 6


@pytest.mark.parametrize("name", list(SAMPLINGS))
def test_law_e_holds_while_the_controller_learns_and_chooses(name: str) -> None:
    """One controller for all the texts: its choices depend on those before, and on times."""
    sampling = SAMPLINGS[name]
    drafter = auto(toy(2), VOCAB)
    assert abs(chi_square(frequencies(drafter, sampling, 4), sampling)) < 6


def test_law_e_holds_for_point_masses_in_the_engine() -> None:
    drafter = Scripted(lambda text, limit: [(text[-1] + 1) % VOCAB, 2, 0][:limit])
    assert abs(chi_square(frequencies(drafter, Sampling(), 2), Sampling())) < 6


def test_law_e_another_target_fails_the_frequencies() -> None:
    """Negative control: texts drawn at another temperature are told apart."""
    draft = FakeModel(toy(2), VOCAB)
    counts = frequencies(DraftModelDrafter(draft, VOCAB), Sampling(temperature=1.15), 2)
    assert chi_square(counts, Sampling()) > 20


@pytest.mark.parametrize(
    ("draft", "rows", "verdict"),
    [
        ([], [3], Verdict(range(0), 3)),
        ([3], [3, 1], Verdict(range(1), 1)),
        ([3, 1], [3, 2, 0], Verdict(range(1), 2)),
        ([0], [3, 1], Verdict(range(0), 3)),
    ],
)
def test_greedy_keeps_what_the_target_would_have_said(
    draft: list[Token], rows: list[Token], verdict: Verdict
) -> None:
    assert verify_greedy(draft, lambda row: rows[row]) == verdict


def test_rows_beyond_a_rejection_are_not_looked_at() -> None:
    seen: list[int] = []

    def target(row: int) -> Distribution:
        seen.append(row)
        return dense(1.0, 0.0)

    verify_sampled([1, 0, 0], [None] * 3, target, lambda: 0.5)
    assert seen == [0]


def test_choice_and_distribution_agree_on_the_most_likely() -> None:
    for seed in range(20):
        row = np.random.default_rng(seed).normal(size=300).astype(np.float32)
        for sampling in (Sampling(), Sampling(top_k=5), Sampling(min_p=0.3), Sampling(top_p=0.5)):
            found = distribution(row, sampling)
            best = int(found.probs.argmax())
            assert (best if found.ids is None else int(found.ids[best])) == choose(row, sampling)
