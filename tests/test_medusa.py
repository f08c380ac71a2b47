"""Laws A to E for drafting with Medusa heads, and the tree that their guesses make."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from edgespec.drafters.base import NOTHING, Draft, Policy, StateReader
from edgespec.drafters.medusa import MedusaDrafter, likeliest, sparse_tree
from edgespec.engine import DecodeOptions, decode
from edgespec.events import Reason, Round
from edgespec.model import ROOT, Logits, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Sampling, distribution
from edgespec.verify import verify_tree
from tests.chances import distance, law, texts
from tests.fakes import FakeModel, chaotic
from tests.head_fakes import FakeHeads
from tests.test_engine_laws import GREEDY, follow, plainly, run, setting
from tests.test_verify import markov
from tests.test_verify_trees import EXACT, Model, decoded

LogitsOf = Callable[[tuple[Token, ...]], Logits]
Maker = Callable[[LogitsOf, int], MedusaDrafter]


def perfect(logits_of: LogitsOf, vocab: int) -> MedusaDrafter:
    return MedusaDrafter(FakeHeads(logits_of, vocab), least=0)


def good(logits_of: LogitsOf, vocab: int) -> MedusaDrafter:
    return MedusaDrafter(FakeHeads(logits_of, vocab, scale=1))


def bad(logits_of: LogitsOf, vocab: int) -> MedusaDrafter:
    return MedusaDrafter(
        FakeHeads(logits_of, vocab, scale=50, count=7), budget=lambda _: 15, least=0
    )


def narrow(logits_of: LogitsOf, vocab: int) -> MedusaDrafter:
    """Knows every other token only."""
    return MedusaDrafter(FakeHeads(logits_of, vocab, known=range(1, vocab, 2)))


MAKERS: dict[str, Maker] = {"perfect": perfect, "good": good, "bad": bad, "narrow": narrow}
CASES = [(name, seed) for name in MAKERS for seed in range(12)]


def target_of(seed: int, vocab: int, branches: int = 16) -> tuple[LogitsOf, FakeModel]:
    logits_of = chaotic(vocab, seed, depth=2)
    return logits_of, FakeModel(logits_of, vocab, branches=branches)


class Watched(MedusaDrafter):
    """Keeps its drafts."""

    def __init__(self, heads: FakeHeads, least: float = 0.02) -> None:
        super().__init__(heads, least=least)
        self.drafts: list[Draft] = []

    def propose(self, limit: int, policy: Policy) -> Draft:
        self.drafts.append(super().propose(limit, policy))
        return self.drafts[-1]


@pytest.mark.parametrize(("name", "seed"), CASES)
@pytest.mark.parametrize("branches", [1, 16])
def test_law_a_greedy_text_is_that_of_plain_decoding(name: str, seed: int, branches: int) -> None:
    vocab, prompt, options = setting(seed)
    logits_of, target = target_of(seed, vocab, branches)
    emitted, reason, _ = run(target, MAKERS[name](logits_of, vocab), prompt, options)
    assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options)
    assert reason is (Reason.END if emitted[-1] in options.end_tokens else Reason.LENGTH)


@pytest.mark.parametrize(("name", "seed"), CASES)
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0, top_k=3)])
def test_law_b_the_cache_is_exact_after_every_event(
    name: str, seed: int, sampling: Sampling
) -> None:
    vocab, prompt, options = setting(seed)
    uniform = np.random.default_rng(seed).random
    options = replace(options, sampling=sampling, uniform=uniform)
    for stop_after in (0, 3, 10_000):
        logits_of, target = target_of(seed, vocab)
        drafter = MAKERS[name](logits_of, vocab)
        follow(target, prompt, decode(target, drafter, prompt, options), stop_after)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("branches", [1, 16])
def test_law_c_heads_that_know_the_target_are_accepted_in_full(seed: int, branches: int) -> None:
    vocab, prompt, _ = setting(seed)
    logits_of, target = target_of(seed, vocab, branches)
    options = DecodeOptions(sampling=GREEDY, draft_length=5, max_tokens=41)
    _, _, events = run(target, perfect(logits_of, vocab), prompt, options)
    rounds = [event for event in events if isinstance(event, Round)]
    if branches == 1:  # four heads, and the target's own
        assert [len(event.tokens) for event in rounds] == [5] * 8
        assert all(event.accepted == event.tested == event.proposed == 4 for event in rounds)
    assert all(event.accepted >= 1 for event in rounds[:-1])  # a tree may prefer width to depth


@pytest.mark.parametrize("seed", range(10))
def test_law_c_with_shared_noise(seed: int) -> None:
    """Where the last tokens do not matter, heads know the distribution of every token to come."""
    fixed = np.random.default_rng(seed).normal(size=7).astype(np.float32)
    heads = FakeHeads(lambda text: fixed, 7)
    sampling = Sampling(temperature=0.8, top_p=0.9)
    options = DecodeOptions(
        sampling, draft_length=4, max_tokens=41, acceptance="shared-noise", noise=SharedNoise(seed)
    )
    target = FakeModel(lambda text: fixed, 7, branches=1)
    _, _, events = run(target, MedusaDrafter(heads, least=0), [1, 2], options)
    rounds = [event for event in events if isinstance(event, Round)]
    assert [len(event.tokens) for event in rounds] == [5] * 8


def policy(seed: int, sampling: Sampling = GREEDY, **changes: object) -> Policy:
    uniform = np.random.default_rng(seed).random
    made = Policy(sampling, uniform, draw=not sampling.greedy, nodes=15, branches=16)
    return replace(made, **changes)  # type: ignore[arg-type]


def told(drafter: MedusaDrafter, text: Sequence[Token]) -> None:
    """What the engine says of the state that the last token was said from."""
    before = (-1, -1, *text)[-3:-1]
    drafter.read_states(len(text) - 1, np.array([(len(text) - 1, *before)], np.float32))


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0, repeat_penalty=1.3)])
def test_law_d_a_drafter_fed_step_by_step_proposes_what_a_fresh_one_does(
    name: str, seed: int, sampling: Sampling
) -> None:
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(3, 8))
    logits_of = chaotic(vocab, seed, depth=2)
    text: list[Token] = rng.integers(0, vocab, int(rng.integers(2, 30))).tolist()
    old = MAKERS[name](logits_of, vocab)
    old.begin(text)
    for step in range(12):
        limit = int(rng.integers(1, 9))
        fresh = MAKERS[name](logits_of, vocab)
        fresh.begin(text)
        told(old, text)
        told(fresh, text)
        noise = SharedNoise(seed) if step % 2 and not sampling.greedy else None
        asked = policy(seed + step, sampling, noise=noise)
        draft = old.propose(limit, asked)
        assert draft == fresh.propose(limit, asked)
        new = [*draft.tokens[: int(rng.integers(0, 4))], int(rng.integers(0, vocab))]
        old.accept(new)
        text += new
        if step == 6:  # a new text that shares only its beginning
            text = [*text[: len(text) // 2], 0, 1]
            old.begin(text)


def test_it_guesses_only_from_the_state_that_the_last_token_was_said_from() -> None:
    drafter = perfect(chaotic(5, 1, depth=2), 5)
    asked = policy(0)
    drafter.begin([1, 2, 3])
    assert drafter.propose(4, asked) == NOTHING
    told(drafter, [1, 2, 3])
    assert drafter.propose(4, asked).tokens
    drafter.accept([4])
    assert drafter.propose(4, asked) == NOTHING
    drafter.read_states(3, np.empty((0, 3), np.float32))
    assert drafter.propose(4, asked) == NOTHING
    told(drafter, [1, 2, 3, 4])
    assert drafter.propose(4, asked).tokens
    drafter.begin([1, 2])
    assert drafter.propose(4, asked) == NOTHING


def test_it_needs_no_state_of_a_prompt_computed_again() -> None:
    drafter = perfect(chaotic(5, 1, depth=2), 5)
    assert isinstance(drafter, StateReader)
    assert drafter.states_held([1, 2, 3]) == 3


def test_it_keeps_the_state_though_the_view_changes() -> None:
    drafter = perfect(chaotic(5, 1, depth=2), 5)
    view = np.array([(2, 1, 2)], np.float32)
    drafter.begin([1, 2, 3])
    drafter.read_states(2, view)
    before = drafter.propose(4, policy(0))
    view[:] = (2, 0, 0)
    assert drafter.propose(4, policy(0)) == before


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", list(MAKERS))
def test_law_e_of_a_round_at_a_temperature(name: str, seed: int) -> None:
    """By enumeration: the next three tokens, whatever the heads say."""
    draft = drafted(name, seed)
    found = law(
        lambda uniform: decoded(lambda q, u: draft, verify_tree, p_of(seed), p_of(seed), 3, uniform)
    )
    assert abs(sum(found.values()) - 1) < EXACT
    assert distance(found, texts(p_of(seed), 3, 3)) < EXACT


def drafted(name: str, seed: int) -> Draft:
    drafter = MAKERS[name](chaotic(3, seed, depth=2), 3)
    drafter.begin([0, 1, 2])
    told(drafter, [0, 1, 2])
    draft = drafter.propose(3, policy(0, Sampling(temperature=1.0)))
    assert set(draft.proposals) <= {None}
    return (
        draft if draft.parents else replace(draft, parents=tuple(range(-1, len(draft.tokens) - 1)))
    )


def p_of(seed: int) -> Model:
    return markov(seed, 3)


def test_law_e_dies_where_a_guess_counts_as_drawn() -> None:
    """Negative control: the most likely tokens, verified as if they were drawn from the heads."""
    heads = FakeHeads(chaotic(3, 1, depth=2), 3)
    row = heads.logits(np.array([2, 0, 1], np.float32), 1)[0]
    q = distribution(row, Sampling(temperature=1.0))
    wrong = Draft((int(row.argmax()),), (q,), parents=(ROOT,))
    found = law(
        lambda uniform: decoded(lambda _, u: wrong, verify_tree, p_of(1), p_of(1), 1, uniform)
    )
    assert distance(found, texts(p_of(1), 3, 1)) > 0.01


@pytest.mark.parametrize("name", list(MAKERS))
def test_law_e_through_the_engine(name: str) -> None:
    """Whole answers by enumeration, to the last bits of float32."""
    logits_of = chaotic(3, 5, depth=2)
    sampling = Sampling(temperature=0.7)

    def answer(uniform: Callable[[], float]) -> tuple[Token, ...]:
        options = DecodeOptions(sampling, draft_length=2, max_tokens=3, uniform=uniform)
        drafter = MAKERS[name](logits_of, 3)
        return tuple(run(FakeModel(logits_of, 3), drafter, [0, 1], options)[0])

    wanted = texts(lambda text: distribution(logits_of((0, 1, *text)), sampling), 3, 3)
    assert distance(law(answer), wanted) < 1e-6


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("acceptance", ["equal", "shared-noise"])
@pytest.mark.parametrize("seed", range(6))
def test_a_seed_gives_the_text_of_plain_decoding(name: str, acceptance: str, seed: int) -> None:
    vocab, prompt, _ = setting(seed)
    logits_of = chaotic(vocab, seed, depth=2)

    def text(length: int) -> list[Token]:
        options = DecodeOptions(
            Sampling(temperature=0.9, top_p=0.95),
            draft_length=length,
            max_tokens=40,
            acceptance=acceptance,  # type: ignore[arg-type]
            uniform=np.random.default_rng(seed).random,
            noise=SharedNoise(seed),
        )
        return run(FakeModel(logits_of, vocab), MAKERS[name](logits_of, vocab), prompt, options)[0]

    assert text(0) == text(6) == text(2)


def test_children_are_what_the_noise_picks_first() -> None:
    logits_of = chaotic(9, 4, depth=2)
    heads = FakeHeads(logits_of, 9, known=[0, 2, 3, 5, 8])
    drafter = MedusaDrafter(heads, least=0)
    drafter.begin([1, 2, 3])
    told(drafter, [1, 2, 3])
    noise, sampling = SharedNoise(3), Sampling(temperature=1.3)
    draft = drafter.propose(3, policy(0, sampling, noise=noise, draw=False))
    rows = heads.logits(np.array([2, 1, 2], np.float32), 3)
    for node in range(len(draft.tokens)):
        place = len(draft.path(node)) - 1
        siblings = [i for i in range(node + 1) if draft.parents[i] == draft.parents[node]]
        full = np.full(9, -np.inf, np.float32)
        full[heads.vocabulary] = rows[place]
        picked = noise.best(distribution(full, sampling), 3 + place, len(siblings))
        assert [draft.tokens[i] for i in siblings] == picked
    assert len(draft.tokens) > 3


def test_penalties_of_the_text_change_the_guesses() -> None:
    """Known ids lie at other places than in the target's vocabulary."""
    logits_of = chaotic(9, 4, depth=2)
    heads = FakeHeads(logits_of, 9, known=[1, 4, 6, 7])
    text = [1, 8, 4, 2, 4]
    asked = Sampling(temperature=0, repeat_penalty=3.0, presence_penalty=1.0)
    drafter = MedusaDrafter(heads, least=0)
    drafter.begin(text)
    told(drafter, text)
    draft = drafter.propose(2, policy(0, asked))
    clear = heads.logits(np.array([4, 4, 2], np.float32), 1)[0].astype(np.float64)
    for place in (0, 1):  # of the tokens 1 and 4; 8 and 2 are not known
        clear[place] = clear[place] * 3 if clear[place] <= 0 else clear[place] / 3
        clear[place] -= 1
    assert draft.tokens[0] == heads.vocabulary[clear.argmax()]


@pytest.mark.parametrize("seed", range(8))
def test_penalties_do_not_change_the_text(seed: int) -> None:
    sampling = Sampling(temperature=0, repeat_penalty=1.7, frequency_penalty=0.6, penalty_window=6)
    options = DecodeOptions(sampling=sampling, draft_length=5, max_tokens=40)
    logits_of = chaotic(5, seed, depth=2)
    emitted = [
        run(
            FakeModel(logits_of, 5), good(logits_of, 5), [1, 2, 3], replace(options, draft_length=n)
        )[0]
        for n in (0, 5)
    ]
    assert emitted[0] == emitted[1]


@pytest.mark.parametrize("fail_at", [1, 20, 40, 50, 60])
def test_an_interrupted_pass_ends_the_answer_with_an_exact_cache(fail_at: int) -> None:
    logits_of, target = target_of(5, 5)
    prompt: list[Token] = [1, 2, 3, 4, 0] * 8
    target.fail_at = fail_at
    drafter = good(logits_of, 5)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=60)
    emitted, reason, _ = run(target, drafter, prompt, options)
    assert reason is Reason.CANCELLED
    whole = plainly(FakeModel(logits_of, 5), prompt, options)
    assert emitted == whole[: len(emitted)]
    target.fail_at = None
    assert run(target, drafter, prompt, options)[0] == whole


def test_no_more_heads_are_asked_than_tokens_are_wanted() -> None:
    heads = FakeHeads(chaotic(5, 1, depth=2), 5, count=4)
    drafter = MedusaDrafter(heads)
    drafter.begin([1, 2, 3])
    told(drafter, [1, 2, 3])
    for limit in (1, 3, 9):
        drafter.propose(limit, policy(0))
    assert heads.asked == [1, 3, 4]


class Counted:
    """A pace that stops after so many tokens, or before the first."""

    def __init__(self, steps: int, keeps: int) -> None:
        self.steps, self.keeps = steps, keeps

    def step(self, drafted: Sequence[Token]) -> bool:
        self.steps -= 1
        return self.steps >= 0

    def keep(self, confidence: float) -> bool:
        assert 0 < confidence <= 1
        self.keeps -= 1
        return self.keeps >= 0


@pytest.mark.parametrize(("steps", "keeps", "length"), [(9, 9, 4), (2, 9, 2), (9, 3, 3), (0, 9, 0)])
def test_a_pace_ends_a_chain(steps: int, keeps: int, length: int) -> None:
    heads = FakeHeads(chaotic(5, 1, depth=2), 5)
    drafter = MedusaDrafter(heads, least=0)
    drafter.begin([1, 2, 3])
    told(drafter, [1, 2, 3])
    draft = drafter.propose(6, policy(0, pace=Counted(steps, keeps)))
    assert len(draft.tokens) == length
    assert not draft.parents
    assert len(heads.asked) == (steps > 0)


def test_trees_are_drafted_where_they_can_be() -> None:
    """The laws above would hold for a drafter that never drafts one."""
    heads = FakeHeads(chaotic(8, 2, depth=2), 8, scale=1)
    drafter = Watched(heads)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=60)
    run(FakeModel(chaotic(8, 2, depth=2), 8), drafter, [1, 2], options)
    assert max(len(draft.tokens) for draft in drafter.drafts) == 8  # twice the length
    assert sum(bool(draft.parents) for draft in drafter.drafts) > 5
    assert all(draft.source == "medusa" for draft in drafter.drafts if draft.tokens)


def guesses_at_random(seed: int) -> list[list[tuple[Token, float]]]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(int(rng.integers(1, 4))):
        probs = np.sort(rng.dirichlet(np.ones(5)))[::-1][: int(rng.integers(1, 5))]
        rows.append(
            list(zip(rng.permutation(9)[: len(probs)].tolist(), probs.tolist(), strict=True))
        )
    return rows


@pytest.mark.parametrize("seed", range(40))
def test_the_tree_holds_the_most_probable_candidates(seed: int) -> None:
    guesses = guesses_at_random(seed)
    every = {
        tuple(token for token, _ in way): float(np.prod([prob for _, prob in way]))
        for depth in range(1, len(guesses) + 1)
        for way in itertools.product(*guesses[:depth])
    }
    best = sorted(every.values(), reverse=True)
    for nodes in (1, 4, 9):
        draft = drawn(sparse_tree(guesses, nodes, 99, 0.0))
        ways = [
            tuple(draft.tokens[i] for i in draft.path(node)) for node in range(len(draft.tokens))
        ]
        assert len(set(ways)) == len(ways) == min(nodes, len(every))
        assert np.allclose([every[way] for way in ways], best[:nodes])
    least = best[len(best) // 2]
    draft = drawn(sparse_tree(guesses, 99, 99, least * (1 - 1e-9)))
    assert len(draft.tokens) == sum(worth >= least * (1 - 1e-6) for worth in best)


def drawn(tree: tuple[list[Token], list[int]]) -> Draft:
    tokens, parents = tree
    assert all(parent < node for node, parent in enumerate(parents))
    return Draft(tuple(tokens), (None,) * len(tokens), parents=tuple(parents))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("branches", [1, 2, 4])
def test_the_tree_has_no_more_leaves_than_there_may_be(seed: int, branches: int) -> None:
    guesses = guesses_at_random(seed)
    tokens, parents = sparse_tree(guesses, 12, branches, 0.0)
    leaves = set(range(len(tokens))) - set(parents)
    assert 1 <= len(leaves) <= branches
    if branches == 1:
        assert tokens == [row[0][0] for row in guesses]


def test_no_guesses_make_no_tree() -> None:
    assert sparse_tree([], 5, 5, 0.0) == ([], [])
    assert sparse_tree([[], [(1, 1.0)]], 5, 5, 0.0) == ([], [])
    assert sparse_tree([[(1, 0.01)]], 5, 5, 0.02) == ([], [])


@pytest.mark.parametrize("most", [1, 4, 30])
def test_likeliest_of_each_row(most: int) -> None:
    logits = np.random.default_rng(0).normal(scale=3, size=(3, 20)).astype(np.float32)
    logits[1, 3] = logits[1, 7] = 9  # a tie
    top, probs = likeliest(logits, most)
    for row, ids, found in zip(logits.astype(np.float64), top, probs, strict=True):
        wanted = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        order = np.argsort(-row, kind="stable")[:most]
        assert ids.tolist() == order.tolist()
        assert np.allclose(found, wanted[order])


def test_where_a_row_costs_a_token_no_head_is_asked() -> None:
    heads = FakeHeads(chaotic(5, 1, depth=2), 5)
    drafter = MedusaDrafter(heads, least=1.0)
    drafter.begin([1, 2, 3])
    told(drafter, [1, 2, 3])
    assert drafter.propose(4, policy(0)) == NOTHING
    assert heads.asked == []


@pytest.mark.parametrize("price", [0.0, 0.1, 0.4])
def test_no_guess_is_worth_less_than_its_row(price: float) -> None:
    heads = FakeHeads(chaotic(6, 3, depth=2), 6)
    drafter = MedusaDrafter(heads, lambda _: 99, least=price)
    drafter.begin([1, 2, 3])
    told(drafter, [1, 2, 3])
    draft = drafter.propose(3, policy(0, nodes=99, branches=99))
    _, probs = likeliest(heads.logits(np.array([2, 1, 2], np.float32), 3), 6)
    wanted = sum(
        bool(np.prod(way) >= price)
        for depth in (1, 2, 3)
        for way in itertools.product(*probs[:depth])
    )
    assert len(draft.tokens) == min(wanted, 99)
