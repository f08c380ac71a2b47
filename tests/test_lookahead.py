"""Lookahead against the method written down plainly: the same window, n-grams and guesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from edgespec.drafters.base import NOTHING, Draft, Observer, Policy
from edgespec.drafters.lookahead import LookaheadDrafter, Pool, rows_of
from edgespec.engine import DecodeOptions
from edgespec.events import Round
from edgespec.model import ROOT, Logits, Token
from edgespec.sampling import Sampling
from tests.fakes import FakeModel, chaotic
from tests.test_engine_laws import run

GREEDY = Sampling(temperature=0)
AMPLE = Policy(GREEDY, lambda: 0.0, draw=False, nodes=200, branches=64)
SHAPES = [(1, 3, 1), (2, 3, 2), (3, 3, 1), (2, 4, 3), (4, 5, 2), (7, 3, 7)]
Way = tuple[Token, ...]
LogitsOf = Callable[[Way], Logits]


def ways(draft: Draft) -> tuple[list[Way], list[Way]]:
    """What the guesses of a draft say, one for each leaf; and the text to each node of its window."""
    said = [tuple(draft.tokens[i] for i in draft.path(node)) for node in range(len(draft.tokens))]
    first = len(said) - draft.window
    inner = set(draft.parents[:first])
    return [way for i, way in enumerate(said[:first]) if i not in inner], said[first:]


class Plain:
    """The method as the paper tells it, with lists and searches instead of pools and trees."""

    def __init__(self, next_of: Callable[[Way], Token], shape: tuple[int, int, int]) -> None:
        self.next_of = next_of
        self.width, self.ngram, self.most = shape
        self.text: list[Token] = []

    def begin(self, prompt: list[Token], *, from_text: bool) -> None:
        self.from_text = from_text
        self.text = []
        self.seen: list[Way] = []
        """Every n-gram, in the order in which it was found."""
        self.accept(prompt)
        self.window = [
            [
                prompt[(i * len(prompt) // self.width + level) % len(prompt)]
                for i in range(self.width)
            ]
            for level in range(self.ngram - 1)
        ]
        """By level, oldest first, the token of each column."""

    def accept(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self.text.append(token)
            if self.from_text and len(self.text) >= self.ngram:
                self.seen.append(tuple(self.text[-self.ngram :]))

    def guesses(self, limit: int) -> list[Way]:
        """The latest different n-grams after the last token, cut to `limit`."""
        found: list[Way] = []
        for gram in reversed(self.seen):
            if gram[0] == self.text[-1] and gram[1:] not in found and len(found) < self.most:
                found.append(gram[1:])
        return list(dict.fromkeys(rest[:limit] for rest in found))

    def column(self, i: int) -> Way:
        """What stands before the new token of column `i`, after the text."""
        ahead = [self.window[0][before] for before in range(1, i + 1)]
        return (*ahead, *(level[i] for level in self.window[1:]))

    def nodes(self) -> list[Way]:
        """The text to every node of the window."""
        found = [tuple(self.window[0][1 : i + 1]) for i in range(1, self.width)]
        for i in range(self.width):
            whole = self.column(i)
            found += [whole[:length] for length in range(i + 1, len(whole) + 1)]
        return found

    def step(self) -> None:
        """One Jacobi iteration."""
        new = [self.next_of((*self.text, *self.column(i))) for i in range(self.width)]
        firsts = [self.text[-1], *self.window[0][1:]]
        self.window = [*self.window[1:], new]
        for i, first in enumerate(firsts):
            self.seen.append((first, *(level[i] for level in self.window)))


class Watched(LookaheadDrafter):
    """Compares itself with the plain method at every call."""

    plain: Plain
    guessed = 0

    def begin(self, prompt: Sequence[Token]) -> None:
        self.plain.text = []
        super().begin(prompt)
        self.plain.begin(list(prompt), from_text=self._from_text)

    def propose(self, limit: int, policy: Policy) -> Draft:
        draft = super().propose(limit, policy)
        guesses, window = ways(draft)
        assert guesses == self.plain.guesses(limit)
        assert sorted(window) == sorted(self.plain.nodes())
        self.guessed += len(guesses)
        return draft

    def observe(self, own: Sequence[Token]) -> None:
        super().observe(own)
        self.plain.step()

    def accept(self, tokens: Sequence[Token]) -> None:
        super().accept(tokens)
        if self.plain.text:  # `begin` accepts the prompt as well
            self.plain.accept(tokens)


def best_of(logits_of: LogitsOf) -> Callable[[Way], Token]:
    return lambda text: int(logits_of(text).argmax())


def roomy(logits_of: LogitsOf, vocab: int) -> FakeModel:
    return FakeModel(logits_of, vocab, batch_size=256, max_rows=256, branches=64)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("from_text", [True, False])
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.5)])
def test_window_n_grams_and_guesses_are_those_of_the_plain_method(
    shape: tuple[int, int, int], from_text: bool, sampling: Sampling
) -> None:
    guessed = accepted = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        vocab = int(rng.integers(3, 9))
        logits_of = chaotic(vocab, seed, depth=2)
        drafter = Watched(*shape, from_text=from_text)
        drafter.plain = Plain(best_of(logits_of), shape)
        options = DecodeOptions(
            sampling=sampling,
            draft_length=int(rng.integers(1, 6)),
            max_tokens=40,
            uniform=rng.random,
        )
        for _ in range(2):  # the second text knows nothing of the first
            prompt = rng.integers(0, vocab, int(rng.integers(1, 12))).tolist()
            _, _, events = run(roomy(logits_of, vocab), drafter, prompt, options)
            accepted += sum(e.accepted for e in events if isinstance(e, Round))
        guessed += drafter.guessed
    assert guessed > 100
    assert accepted > 20


def test_one_column_off_is_told_apart_from_the_plain_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: the arg-max of another row, or the n-gram of another column."""
    logits_of = chaotic(6, 1, depth=2)
    options = DecodeOptions(sampling=GREEDY, draft_length=4, max_tokens=40)

    def check() -> None:
        drafter = Watched(3, 3, 3)
        drafter.plain = Plain(best_of(logits_of), (3, 3, 3))
        run(roomy(logits_of, 6), drafter, [1, 2, 3, 4], options)

    check()
    told = LookaheadDrafter.observe
    monkeypatch.setattr(LookaheadDrafter, "observe", lambda self, own: told(self, own[::-1]))
    with pytest.raises(AssertionError):
        check()


def test_an_example_by_hand() -> None:
    """W = 2, N = 3: one token of level 0 and two of level 1 below a text that counts modulo ten."""
    drafter = LookaheadDrafter(2, 3, 2, from_text=False)
    drafter.begin([7, 8, 1, 2])
    assert isinstance(drafter, Observer)
    first = drafter.propose(5, AMPLE)
    # Columns (7 8) and (1 2); 7 is in the place of the text's last token, 2.
    assert (first.tokens, first.parents, first.window) == ((8, 1, 2), (ROOT, ROOT, 1), 3)
    drafter.observe([9, 5, 3])
    drafter.accept([8])
    # Pooled: 2 8 9 and 1 2 3; columns now (8 9) and (2 3).
    second = drafter.propose(5, AMPLE)
    assert (second.tokens, second.parents, second.window) == ((9, 2, 3), (ROOT, ROOT, 1), 3)
    drafter.observe([0, 5, 4])
    drafter.accept([1])
    third = drafter.propose(5, AMPLE)
    assert (third.tokens, third.parents) == ((2, 3, 0, 3, 4), (ROOT, 0, ROOT, ROOT, 3))
    assert third.proposals == (None,) * 5
    assert third.source == "lookahead"
    assert drafter.propose(1, AMPLE).tokens[:1] == (2,)


def test_the_pool_forgets_the_oldest_and_a_repeated_n_gram_is_new_again() -> None:
    pool = Pool(2)
    for rest in ((1, 2), (3, 4), (1, 2), (5, 6)):
        pool.add(9, rest)
    assert pool.after(9) == [(5, 6), (1, 2)]
    assert pool.after(1) == []


def test_guesses_share_beginnings_and_are_tried_latest_first() -> None:
    drafter = LookaheadDrafter(1, 4, 3)
    drafter.begin([1, 2, 3, 4, 1, 2, 5, 6, 1, 2, 3, 7, 1])
    draft = drafter.propose(9, AMPLE)
    guesses, _ = ways(draft)
    assert guesses == [(2, 3, 7), (2, 5, 6), (2, 3, 4)]
    assert len(draft.tokens) - draft.window == 6
    assert ways(drafter.propose(2, AMPLE))[0] == [(2, 3), (2, 5)]
    assert ways(drafter.propose(1, AMPLE))[0] == [(2,)]


@pytest.mark.parametrize("seed", range(60))
def test_limits_are_kept_and_columns_go_before_guesses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 6)), int(rng.integers(3, 6)), int(rng.integers(1, 6))
    width, ngram, most = shape
    drafter = LookaheadDrafter(*shape)
    drafter.begin(rng.integers(0, 3, 40).tolist())
    for _ in range(30):
        limit = int(rng.integers(1, 7))
        policy = replace(AMPLE, nodes=int(rng.integers(0, 40)), branches=int(rng.integers(1, 12)))
        whole, _ = ways(drafter.propose(limit, AMPLE))
        draft = drafter.propose(limit, policy)
        if policy.branches < 2 or policy.nodes < ngram - 2:
            assert draft is NOTHING
            continue
        check_tree(draft, limit, policy)
        guesses, _ = ways(draft)
        assert guesses == [way for way in whole if way in guesses], "another order"
        columns = (draft.window + 1) // (ngram - 1)
        assert draft.window == columns * (ngram - 1) - 1
        assert 1 <= columns <= width
        if columns > 1:
            assert guesses == whole
        if columns < width:  # one more would not have fitted
            full = len(draft.tokens) + ngram - 1 > policy.nodes
            assert full or columns + len(guesses) == policy.branches
        assert len(draft.tokens) + 1 <= rows_of(*shape)
        assert len(guesses) <= most
        drafter.observe(rng.integers(0, 3, draft.window).tolist())
        drafter.accept(rng.integers(0, 3, int(rng.integers(1, 4))).tolist())


def check_tree(draft: Draft, limit: int, policy: Policy) -> None:
    """What every draft has to keep to."""
    nodes = len(draft.tokens)
    assert 0 < nodes <= policy.nodes
    assert nodes == len(draft.parents) == len(draft.proposals)
    assert all(ROOT <= parent < node for node, parent in enumerate(draft.parents))
    assert len(set(range(nodes)) - set(draft.parents)) <= policy.branches
    for node, below in enumerate(draft.children()):
        tokens = [draft.tokens[child] for child in below]
        assert len(set(tokens)) == len(tokens), f"equal guesses below {node}"
    guesses, _ = ways(draft)
    assert all(len(way) <= limit for way in guesses)
    first = nodes - draft.window
    assert all(parent < first for parent in draft.parents[:first])
    assert all(parent >= first or parent == ROOT for parent in draft.parents[first:])


def test_the_least_that_fits_is_a_column_alone_then_guesses_come() -> None:
    drafter = LookaheadDrafter(3, 3, 2)
    drafter.begin([1, 2, 3, 1, 4, 5, 1])
    sizes = {}
    for nodes in range(13):
        draft = drafter.propose(2, replace(AMPLE, nodes=nodes))
        sizes[nodes] = (len(draft.tokens) - draft.window, draft.window)
    assert [sizes[n] for n in range(6)] == [(0, 0), (0, 1), (0, 1), (2, 1), (2, 1), (4, 1)]
    assert [sizes[n] for n in range(6, 10)] == [(4, 1), (4, 3), (4, 3), (4, 5)]
    assert sizes[12] == (4, 5)


@pytest.mark.parametrize("shape", [(0, 3, 1), (1, 2, 1), (1, 3, 0)])
def test_what_is_no_window_is_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="no lookahead"):
        LookaheadDrafter(*shape)
