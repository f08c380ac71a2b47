"""Drafting from the target's states: laws B to D with a head that checks what it is fed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from edgespec.drafters.base import Draft, Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.headed import HeadedDrafter
from edgespec.drafters.tree import TreeDrafter
from edgespec.engine import DecodeOptions
from edgespec.errors import Cancelled
from edgespec.events import Reason, Round
from edgespec.model import HiddenStates, Logits, Token
from edgespec.sampling import Sampling, distribution
from tests.chances import distance, law, texts
from tests.eagle_fakes import FakeHead
from tests.fakes import FakeModel, chaotic, noisy
from tests.test_engine_laws import plainly, run

GREEDY = Sampling(temperature=0)
WARM = Sampling(temperature=1.0)


def chain(head: FakeHead, target_vocab: int) -> HeadedDrafter:
    model = FeatureModel(head)
    return HeadedDrafter(DraftModelDrafter(model, target_vocab), model, "eagle3")


def tree(head: FakeHead, target_vocab: int) -> HeadedDrafter:
    model = FeatureModel(head)
    return HeadedDrafter(TreeDrafter(model, target_vocab), model)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sampling", [GREEDY, WARM])
def test_law_c_a_head_that_knows_the_target_is_accepted_in_full(
    seed: int, sampling: Sampling
) -> None:
    rng = np.random.default_rng(seed)
    logits_of, prompt = chaotic(6, seed), rng.integers(0, 6, int(rng.integers(1, 60))).tolist()
    options = DecodeOptions(sampling=sampling, draft_length=5, max_tokens=40, uniform=rng.random)
    drafter = chain(FakeHead(logits_of, 6), 6)
    _, _, events = run(FakeModel(logits_of, 6), drafter, prompt, options)
    rounds = [event for event in events if isinstance(event, Round)]
    assert all(one.proposed == one.accepted for one in rounds)
    assert [one.proposed for one in rounds[:-1]] == [5] * (len(rounds) - 1)


@pytest.mark.parametrize("make", [chain, tree])
def test_law_e_through_the_engine(make: Callable[[FakeHead, int], HeadedDrafter]) -> None:
    """Whole answers by enumeration, to the last bits of float32; guesses are drawn from the head."""
    logits_of, guess = chaotic(3, 5, depth=2), chaotic(3, 6, depth=2)
    sampling = Sampling(temperature=0.7)

    def answer(uniform: Callable[[], float]) -> tuple[Token, ...]:
        options = DecodeOptions(sampling, draft_length=2, max_tokens=3, uniform=uniform)
        drafter = make(FakeHead(guess, 3), 3)
        return tuple(run(FakeModel(logits_of, 3), drafter, [0, 1], options)[0])

    wanted = texts(lambda text: distribution(logits_of((0, 1, *text)), sampling), 3, 3)
    assert distance(law(answer), wanted) < 1e-6


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("make", [chain, tree])
def test_it_goes_on_over_turns_and_cancelled_ones(
    make: Callable[[FakeHead, int], HeadedDrafter], seed: int
) -> None:
    """Laws A, B and D: each answer is plain decoding's, and its drafts are those of a new drafter."""
    rng = np.random.default_rng(seed)
    logits_of, vocab = chaotic(5, seed), 5
    head = FakeHead(noisy(logits_of, 3, 0.7), vocab, capacity=int(rng.integers(20, 200)))
    target, drafter = FakeModel(logits_of, vocab), make(head, vocab)
    prompt = rng.integers(0, vocab, int(rng.integers(1, 40))).tolist()
    for _ in range(6):
        options = DecodeOptions(
            sampling=GREEDY,
            draft_length=int(rng.integers(1, 8)),
            max_tokens=int(rng.integers(2, 30)),
        )
        broken = rng.random() < 0.4
        who = head if rng.random() < 0.5 else target
        who.fail_at = who.fed + int(rng.integers(1, 40)) if broken else None
        emitted, reason, events = run(target, drafter, prompt, options)
        who.fail_at = None
        expected = plainly(FakeModel(logits_of, vocab), prompt, options)
        assert emitted == expected[: len(emitted)]
        if reason is not Reason.CANCELLED:
            assert emitted == expected
            again = make(FakeHead(noisy(logits_of, 3, 0.7), vocab, capacity=head.capacity), vocab)
            _, _, fresh = run(FakeModel(logits_of, vocab), again, prompt, options)
            assert _drafted(events) == _drafted(fresh)
        if emitted:
            assert list(target.tokens) == [*prompt, *emitted[:-1]]
        shared = int(rng.integers(0, len(prompt) + len(emitted) + 1))
        text = [*prompt, *emitted][: shared if rng.random() < 0.5 else None]
        prompt = [*text, *rng.integers(0, vocab, int(rng.integers(1, 20))).tolist()]


def _drafted(events: Sequence[object]) -> list[tuple[int, int]]:
    return [(event.proposed, event.accepted) for event in events if isinstance(event, Round)]


def test_a_turn_reads_only_what_is_new() -> None:
    logits_of = chaotic(5, 1)
    target, head = FakeModel(logits_of, 5), FakeHead(logits_of, 5)
    drafter = chain(head, 5)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=11)
    prompt = [1, 2, 3, 4] * 10
    emitted, _, _ = run(target, drafter, prompt, options)
    target.fed = head.fed = 0
    drafter.states_held([*prompt, *emitted, 1, 2, 3])
    assert drafter.states_held([*prompt, *emitted, 1, 2, 3]) == len(prompt) + len(emitted) - 1
    run(target, drafter, [*prompt, *emitted, 1, 2, 3], DecodeOptions(max_tokens=1))
    assert target.fed == 4
    assert head.fed <= 2 * 8  # a round's last pairs wait for the next draft


def test_a_turn_that_goes_on_from_the_last_pair_needs_no_state_again() -> None:
    """The pair of its last token has another one now; the feature in it is kept."""
    head = FakeHead(chaotic(5, 1), 5)
    drafter = chain(head, 5)
    drafter.states_held([1, 2, 3, 4])
    drafter.read_states(4, _states([1, 2, 3, 4]))
    assert list(head.tokens) == [2, 3, 4]
    assert drafter.states_held([1, 2, 3, 1, 1]) == 3
    drafter.read_states(5, _states([1, 2, 3, 1, 1])[3:])
    assert list(head.tokens) == [2, 3, 1, 1]


def test_what_a_cancelled_read_has_read_is_read_again() -> None:
    text = [1, 2, 3, 4, 1, 2]
    found = []
    for stop in (0, 2):
        head = FakeHead(chaotic(5, 1), 5)
        model = FeatureModel(head)
        model.states_held(text)
        head.fail_at = 5 + stop + 1 if stop else None  # 5 states are encoded, and some pairs read
        if stop:
            with pytest.raises(Cancelled):
                model.read_states(6, _states(text))
            assert (len(head.tokens), len(model.tokens)) == (stop, 1)
        else:
            model.read_states(6, _states(text))
        head.fail_at = None
        model.accept([3])
        found.append(model.extend([*text, 3][len(model.tokens) :], rows=1).tolist())
    assert found[0] == found[1]


def _states(text: Sequence[Token]) -> HiddenStates:
    """Those of `FakeModel`: the place, and the last two tokens."""
    padded = [-1, *text]
    rows = [(at + 1, padded[at], padded[at + 1]) for at in range(len(text))]
    return np.array(rows, np.float32)


def test_a_text_beyond_the_head_s_context_needs_no_states() -> None:
    logits_of = chaotic(5, 1)
    drafter = chain(FakeHead(logits_of, 5, capacity=10), 5)
    assert drafter.states_held([1] * 11) == 11
    assert drafter.states_held([1] * 10) == 0


@pytest.mark.parametrize("capacity", range(3, 30))
def test_a_head_with_a_smaller_context_drafts_to_its_end(capacity: int) -> None:
    logits_of = chaotic(5, 1)
    head = FakeHead(logits_of, 5, capacity=capacity)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=40)
    emitted, _, events = run(FakeModel(logits_of, 5), chain(head, 5), [1, 2, 3], options)
    assert emitted == plainly(FakeModel(logits_of, 5), [1, 2, 3], options)
    rounds = [event for event in events if isinstance(event, Round)]
    last = max((i for i, one in enumerate(rounds) if one.proposed), default=-1)
    place = 4 + sum(len(one.tokens) for one in rounds[: last + 1])
    assert capacity <= place <= capacity + 6
    assert len(head.tokens) <= capacity


def test_ids_that_only_the_target_has_end_drafting() -> None:
    drafter = chain(FakeHead(chaotic(5, 1), 5), 7)
    drafter.states_held([1, 2, 6, 1])
    drafter.read_states(4, _states([1, 2, 6, 1]))
    drafter.begin([1, 2, 6, 1])
    drafter.accept([2])
    assert drafter.propose(3, _policy()) == Draft()


def test_a_draft_is_the_same_when_it_is_asked_for_again() -> None:
    drafter = chain(FakeHead(chaotic(5, 1), 5), 5)
    drafter.states_held([1, 2])
    drafter.read_states(2, _states([1, 2]))
    drafter.begin([1, 2])
    drafter.accept([3])
    first = drafter.propose(3, _policy()).tokens
    assert drafter.propose(3, _policy()).tokens == first
    assert drafter.propose(1, _policy()).tokens == first[:1]
    assert len(first) == 3


def test_missing_states_draft_nothing_until_the_next_prompt() -> None:
    drafter = chain(FakeHead(chaotic(5, 1), 5), 5)
    drafter.begin([1, 2])
    drafter.accept([3])
    assert drafter.propose(3, _policy()) == Draft()
    drafter.read_states(3, np.array([[3, 2, 3]], np.float32))
    drafter.accept([1])
    assert drafter.propose(3, _policy()) == Draft()
    assert drafter.states_held([1, 2, 3, 1]) == 0


def test_only_the_draft_s_own_vocabulary_is_proposed() -> None:
    """Where a head cannot guess a token, its logit is -inf."""
    inner = chaotic(8, 2)

    def some(text: tuple[Token, ...]) -> Logits:
        logits = inner(text)
        logits[::2] = -np.inf
        return logits

    rng = np.random.default_rng(0)
    for sampling in (WARM, Sampling(top_k=6, top_p=0.99, min_p=1e-6, repeat_penalty=1.2)):
        drafter = chain(FakeHead(some, 8), 8)
        drafter.states_held([1, 2])
        drafter.read_states(2, _states([1, 2]))
        drafter.begin([1, 2])
        drafter.accept([3])
        for _ in range(20):
            draft = drafter.propose(6, Policy(sampling, rng.random, draw=True))
            assert all(token % 2 for token in draft.tokens)
            for proposal in draft.proposals:
                assert proposal is not None
                assert abs(sum(proposal.prob(token) for token in range(1, 8, 2)) - 1) < 1e-6
                assert not any(proposal.prob(token) for token in range(0, 8, 2))


def _policy() -> Policy:
    return Policy(GREEDY, np.random.default_rng(0).random, draw=False)
