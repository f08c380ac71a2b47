"""Drafters whose guesses branch: within their bounds, on the likeliest paths, their cache with the text.

Laws A to D are those of all drafters (test_engine_laws.py), law E is in test_tree_law.py; here is what
only trees can get wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgespec.drafters.base import Draft, Drafter, Policy
from edgespec.drafters.branching import BranchingDrafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.kseq import KSeqDrafter
from edgespec.drafters.tree import TreeDrafter
from edgespec.engine import Acceptance, DecodeOptions, decode
from edgespec.errors import Cancelled
from edgespec.events import Round
from edgespec.model import ROOT, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Sampling, distribution, without
from tests.fakes import FakeModel, chaotic, noisy

Text = tuple[Token, ...]
GREEDY, WARM = Sampling(temperature=0), Sampling(temperature=1.0)
PENALTIES = Sampling(temperature=1.0, presence_penalty=0.7, repeat_penalty=1.2)


def any_policy(rng: np.random.Generator, draw: bool, **room: int) -> Policy:
    sampling = Sampling(temperature=float(rng.uniform(0.5, 1.5))) if draw else GREEDY
    return Policy(sampling, rng.random, draw, **room)  # type: ignore[arg-type]


def depth(draft: Draft) -> int:
    return max((len(draft.path(node)) for node in range(len(draft.tokens))), default=0)


def leaves(draft: Draft) -> int:
    return sum(not below for below in draft.children()[:-1])


@pytest.mark.parametrize("draw", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_a_tree_keeps_within_all_bounds_and_says_what_it_was_drawn_from(
    seed: int, draw: bool
) -> None:
    """The fake model itself refuses too many rows, leaves or tokens."""
    rng = np.random.default_rng(seed)
    vocab, text = int(rng.integers(2, 9)), [0, 1, 0]
    logits_of = chaotic(vocab, seed)
    width, branches = int(rng.integers(1, 9)), int(rng.integers(2, 9))
    capacity = int(rng.integers(3, 40))
    model = FakeModel(logits_of, vocab, max_rows=width, branches=branches, capacity=capacity)
    nodes, budget, limit, most = (int(n) for n in rng.integers([1, 1, 1, 2], [20, 20, 9, 9]))
    policy = any_policy(rng, draw, nodes=nodes, branches=most)
    makers: list[Drafter] = [
        TreeDrafter(model, vocab, budget, float(rng.choice([0.0, 0.05, 0.3]))),
        KSeqDrafter(model, vocab, int(rng.integers(2, 6))),
    ]
    for drafter in makers:
        drafter.begin(text)
        draft = drafter.propose(limit, policy)
        assert 0 < len(draft.tokens) <= max(nodes, 0 if draft.parents else limit)
        assert depth(draft) <= limit
        if draft.parents:
            assert len(draft.tokens) <= (budget if draft.source == "tree" else nodes)
            assert leaves(draft) <= most
            assert all(parent < node for node, parent in enumerate(draft.parents))
        for node, token in enumerate(draft.tokens):
            way = [*text, *(draft.tokens[i] for i in draft.path(node)[:-1])]
            siblings = draft.children()[draft.parents[node] if draft.parents else node - 1]
            elder = [draft.tokens[i] for i in siblings if i < node]
            assert token not in elder
            proposal = draft.proposals[node]
            if not draw:
                assert proposal is None
                continue
            assert proposal is not None
            q = distribution(logits_of(tuple(way)), policy.sampling)
            for other in [] if draft.samples else elder:
                q = without(q, other)
            assert np.abs(proposal.probs - q.probs).max() < 1e-5
        drafter.accept([0])
        assert list(model.tokens) == [*text, 0][: len(model.tokens)]
        model.truncate(0)


MAKERS: dict[str, Callable[[FakeModel, int], BranchingDrafter]] = {
    "tree": lambda model, vocab: TreeDrafter(model, vocab, 12, 0.0),
    "k-SEQ": lambda model, vocab: KSeqDrafter(model, vocab, 3),
}


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("seed", range(10))
def test_what_became_text_is_not_read_again(name: str, seed: int) -> None:
    """Of an accepted path all that was computed is kept; at most its last token was not."""
    rng = np.random.default_rng(seed)
    vocab, text = 6, [1, 2, 3]
    model = FakeModel(chaotic(vocab, seed), vocab)
    drafter = MAKERS[name](model, vocab)
    drafter.begin(text)
    for _ in range(8):
        draft = drafter.propose(4, any_policy(rng, True, nodes=15, branches=16))
        computed = {model._text_to(node) for node in range(len(model._nodes))}
        path = draft.path(int(rng.integers(0, len(draft.tokens))))
        tokens = [draft.tokens[node] for node in path]
        below = {draft.tokens[i] for i in draft.children()[path[-1]]}
        own = next(token for token in range(vocab) if token not in below)
        drafter.accept([*tokens, own])
        whole = [*text, *tokens, own]
        kept = [end for end in range(len(text), len(whole)) if tuple(whole[:end]) in computed]
        assert list(model.tokens) == whole[: max([len(text), *kept])]
        assert drafter.unread <= 2
        text = whole


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("fail_at", range(4, 20))
def test_a_round_that_was_interrupted_leaves_nothing_behind(name: str, fail_at: int) -> None:
    """In any pass of the draft model, or in the target's, after which nobody calls `accept`."""
    vocab, text = 6, [1, 2, 3]
    model = FakeModel(chaotic(vocab, 1), vocab)
    drafter = MAKERS[name](model, vocab)
    draw = fail_at % 2 == 0 or name == "k-SEQ"
    policy = Policy(WARM if draw else GREEDY, lambda: 0.6, draw, nodes=15, branches=16)
    drafter.begin(text)
    model.fail_at = fail_at
    try:
        drafter.propose(4, policy)
    except Cancelled:
        assert list(model.tokens) == text[: len(model.tokens)]
    model.fail_at = None
    other = FakeModel(chaotic(vocab, 1), vocab)
    fresh = MAKERS[name](other, vocab)
    fresh.begin(text)
    expected = fresh.propose(4, policy)
    again = drafter.propose(4, policy)
    assert (again.tokens, again.parents) == (expected.tokens, expected.parents)
    for one in (drafter, fresh):
        one.accept([expected.tokens[0], 4])
    assert list(model.tokens) == list(other.tokens)
    assert drafter.propose(4, policy).tokens == fresh.propose(4, policy).tokens
    drafter.begin([1, 2, 5])
    fresh.begin([1, 2, 5])
    drafter.accept([again.tokens[0], 4])
    fresh.accept([again.tokens[0], 4])
    assert drafter.propose(4, policy).tokens == fresh.propose(4, policy).tokens


def test_a_tree_takes_no_more_passes_than_a_chain() -> None:
    vocab = 6
    model = FakeModel(chaotic(vocab, 1), vocab)
    calls: list[int] = []
    feed = model._feed
    model._feed = lambda tokens: calls.append(1) or feed(tokens)  # type: ignore[method-assign, func-returns-value]
    for limit in range(1, 6):
        drafter = TreeDrafter(model, vocab, 15, 0.0)
        drafter.begin([0])
        calls.clear()
        drafter.propose(limit, Policy(WARM, lambda: 0.5, True, nodes=15, branches=16))
        assert len(calls) <= limit
        model.keep(())
        model.truncate(0)


def ranked(probs: dict[Text, list[float]]) -> FakeModel:
    """By text after the prompt `(0,)` what follows; nothing in particular elsewhere."""
    even = np.zeros(4, np.float32)
    rows = {(0, *text): np.log(np.array(row, np.float32)) for text, row in probs.items()}
    return FakeModel(lambda text: rows.get(text, even), 4)


def test_a_greedy_tree_is_made_of_the_most_likely_paths() -> None:
    """By hand: .6 .3 .08 .02 first, .9 .1 - - below the first, .5 .4 .1 - below the second."""
    model = ranked(
        {
            (): [0.02, 0.6, 0.3, 0.08],
            (1,): [0.9, 0.1, 1e-6, 1e-6],
            (2,): [0.1, 1e-6, 0.5, 0.4],
            (1, 0): [1e-6, 1e-6, 1e-6, 1.0],
        }
    )
    drafter = TreeDrafter(model, 4, 6, 0.0)
    drafter.begin([0])
    draft = drafter.propose(3, Policy(GREEDY, lambda: 0.0, False, nodes=15, branches=16))
    paths = {tuple(draft.tokens[i] for i in draft.path(node)) for node in range(6)}
    # .6, .54, .54, .3, .15, .12
    assert paths == {(1,), (1, 0), (1, 0, 3), (2,), (2, 2), (2, 3)}
    drafter.least = 0.2
    draft = drafter.propose(3, Policy(GREEDY, lambda: 0.0, False, nodes=15, branches=16))
    assert sorted(draft.tokens) == [0, 1, 2, 3]


def test_a_sure_draft_is_drafted_as_a_chain() -> None:
    """Nothing branches where the draft has no doubt, and a chain is told as one."""
    rows = np.array([-50, 50, -50, -50], np.float32)
    for draw in (True, False):
        drafter = TreeDrafter(FakeModel(lambda text: rows, 4), 4, 12)
        drafter.begin([0])
        policy = Policy(WARM if draw else GREEDY, lambda: 0.4, draw, nodes=15, branches=16)
        draft = drafter.propose(5, policy)
        assert (draft.tokens, draft.parents) == ((1,) * 5, ())


def test_the_budget_may_depend_on_the_limit() -> None:
    drafter = TreeDrafter(FakeModel(chaotic(6, 2), 6), 6, lambda limit: 3 * limit, 0.0)
    drafter.begin([0])
    for limit in (1, 2, 4):
        policy = Policy(WARM, lambda: 0.5, True, nodes=15, branches=16)
        assert len(drafter.propose(limit, policy).tokens) == 3 * limit
        drafter.budget = 5
        assert len(drafter.propose(limit, policy).tokens) == 5
        drafter.budget = lambda limit: 3 * limit


@pytest.mark.parametrize(("nodes", "branches", "own"), [(0, 16, 16), (15, 1, 16), (15, 16, 1)])
@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("draw", [True, False])
def test_without_trees_a_chain_is_drafted(
    name: str, draw: bool, nodes: int, branches: int, own: int
) -> None:
    logits_of = chaotic(6, 3)
    drafts = []
    for make in (MAKERS[name], DraftModelDrafter):
        drafter = make(FakeModel(logits_of, 6, branches=own), 6)
        drafter.begin([1, 2])
        rng = np.random.default_rng(1)
        sampling = WARM if draw else GREEDY
        policy = Policy(sampling, rng.random, draw, nodes=nodes, branches=branches)
        drafts.append(drafter.propose(5, policy).tokens)
    assert drafts[0] == drafts[1]
    assert len(drafts[0]) == 5


@pytest.mark.parametrize("name", list(MAKERS))
def test_nothing_is_drafted_after_what_the_draft_model_cannot_hold_or_read(name: str) -> None:
    policy = Policy(WARM, lambda: 0.5, True, nodes=15, branches=16)
    drafter = MAKERS[name](FakeModel(chaotic(6, 3), 6, capacity=4), 9)
    drafter.begin([1, 2, 3, 4])
    tokens = drafter.propose(5, policy).tokens
    assert tokens
    drafter.accept([tokens[0]])
    assert drafter.propose(5, policy) == Draft()
    drafter.begin([1, 8])
    assert drafter.propose(5, policy) == Draft()


def rounds(target: FakeModel, drafter: Drafter, options: DecodeOptions) -> list[Round]:
    events = decode(target, drafter, [0, 1], options)
    return [event for event in events if isinstance(event, Round)]


@pytest.mark.parametrize(
    ("sampling", "acceptance"),
    [
        (GREEDY, "rejection"),
        (WARM, "rejection"),
        (WARM, "shared-noise"),
        (PENALTIES, "rejection"),
        (PENALTIES, "shared-noise"),
    ],
)
@pytest.mark.parametrize("name", list(MAKERS))
def test_law_c_the_target_s_own_tree_is_followed_to_a_leaf(
    name: str, sampling: Sampling, acceptance: Acceptance
) -> None:
    vocab = 6
    logits_of = chaotic(vocab, 2)
    drafted: list[Draft] = []
    drafter = MAKERS[name](FakeModel(logits_of, vocab), vocab)
    propose = drafter.propose
    drafter.propose = lambda *args: drafted.append(propose(*args)) or drafted[-1]  # type: ignore
    options = DecodeOptions(
        sampling=sampling,
        draft_length=4,
        max_tokens=40,
        uniform=np.random.default_rng(1).random,
        acceptance=acceptance,
        noise=SharedNoise(5),
    )
    for event in rounds(FakeModel(logits_of, vocab), drafter, options):
        draft = drafted.pop(0) if event.proposed else Draft()
        text, node = list(event.tokens), ROOT
        while below := draft.children()[node]:
            own = [child for child in below if draft.tokens[child] == text[0]]
            assert own, "a place of the tree where the text is none of its guesses"
            # What is drawn from p itself is never refused: k-SEQ has the right to, the tree has not.
            assert name != "tree" or own[0] == below[0]
            node = own[0]
            text.pop(0)
        assert len(text) == 1


@pytest.mark.parametrize("acceptance", ["greedy", "rejection", "equal", "shared-noise"])
def test_a_tree_brings_more_tokens_a_round_than_a_chain(acceptance: str) -> None:
    vocab = 8
    logits_of = chaotic(vocab, 2)
    tokens: dict[str, float] = {}
    makers: dict[str, Callable[[FakeModel, int], DraftModelDrafter]] = {
        "chain": DraftModelDrafter,
        **MAKERS,
    }
    for name, make in makers.items():
        drafter = make(FakeModel(noisy(logits_of, 7, 1.0), vocab), vocab)
        rule: Any = "rejection" if acceptance == "greedy" else acceptance
        options = DecodeOptions(
            sampling=GREEDY if acceptance == "greedy" else WARM,
            draft_length=4,
            max_tokens=400,
            uniform=np.random.default_rng(1).random,
            acceptance=rule,
            noise=SharedNoise(3),
        )
        tokens[name] = 399 / len(rounds(FakeModel(logits_of, vocab), drafter, options))
    # The rejection of a drawn guess leaves little to a second one where a vocabulary is so small.
    assert tokens["tree"] > (1.05 if acceptance == "rejection" else 1.15) * tokens["chain"]
    assert tokens["k-SEQ"] > 1.05 * tokens["chain"] or acceptance != "rejection"
