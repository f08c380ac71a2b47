"""The index of contexts against a slow search, and lookup that learns against its rule as it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from edgespec.drafters import contexts
from edgespec.drafters.base import Policy
from edgespec.drafters.contexts import DEPTH, PLACES, SEPARATOR, Contexts, GrowingText, parted
from edgespec.drafters.suffix import SuffixDrafter
from edgespec.engine import DecodeOptions
from edgespec.model import Token
from edgespec.sampling import Sampling
from tests.fakes import FakeModel, chaotic
from tests.test_engine_laws import plainly, run

GREEDY = Sampling(temperature=0)
POLICY = Policy(GREEDY, lambda: 0.0, draw=False)


def told(text: Sequence[Token], end: Sequence[Token]) -> tuple[int, list[int]]:
    """The longest match of the end of `end`, and the places in `text` that follow it."""
    shared = [0] * len(text)
    for place in range(1, len(text)):
        most = min(place, len(end), DEPTH)
        while shared[place] < most and text[place - 1 - shared[place]] == end[-1 - shared[place]]:
            shared[place] += 1
    longest = max(shared, default=0)
    return longest, [place for place, length in enumerate(shared) if 0 < length == longest]


@pytest.fixture(params=[4, 1024], ids=["sorted often", "never sorted"])
def tail(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(contexts, "_TAIL", request.param)
    return int(request.param)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("seed", range(60))
def test_a_growing_text_finds_what_a_slow_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(1, 6))
    ours = GrowingText()
    text: list[Token] = rng.integers(0, vocab, int(rng.integers(0, 40))).tolist()
    ours.begin(text)
    for step in range(12):
        more = rng.integers(0, vocab, int(rng.integers(0, 4))).tolist()
        matched, places = ours.longest(more)
        longest, slow = told([*text, *more], [*text, *more])
        assert (matched, places.tolist()) == (longest, slow[-PLACES:])
        new = rng.integers(0, vocab, int(rng.integers(1, 20))).tolist()
        ours.append(new)
        text += new
        if step == 7:  # another text that begins alike
            text = [*text[: int(rng.integers(0, len(text)))], 0]
            ours.begin(text)


@pytest.mark.parametrize("seed", range(60))
def test_an_index_of_several_texts_finds_what_a_slow_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(1, 5))
    texts = [rng.integers(0, vocab, int(rng.integers(0, 50))).tolist() for _ in range(4)]
    tokens = parted(texts)
    index = Contexts(tokens)
    for _ in range(10):
        end = rng.integers(0, vocab, int(rng.integers(0, DEPTH + 1))).tolist()
        matched, low, high = index.longest(np.array(end, np.int32))
        longest, slow = told(tokens.tolist(), end)
        slow = [place for place in slow if tokens[place] != SEPARATOR]
        if slow:
            assert (matched, sorted(index.order[low:high].tolist())) == (longest, slow)
            assert set(index.some(low, high).tolist()) <= set(slow)
            assert index.newest(low, high).tolist() == slow[-PLACES:]


def test_token_ids_of_any_size_are_in_order() -> None:
    """Compared as bytes, 256 must not come before 1."""
    text = np.array([256, 7, 1, 8, 65_536, 9, 255, 10, 200_000, 11], np.int32)
    index = Contexts(text)
    for place in range(1, len(text)):
        matched, low, high = index.longest(text[place - 1 : place])
        assert (matched, index.order[low:high].tolist()) == (1, [place])


def test_a_sorted_index_can_be_kept() -> None:
    tokens = parted([[1, 2, 3, 1, 2], [2, 3]])
    first = Contexts(tokens)
    again = Contexts(tokens, first.order)
    end = np.array([1, 2], np.int32)
    assert again.longest(end) == first.longest(end) != (0, 0, 0)


def test_of_many_places_those_spread_over_all_are_told() -> None:
    index = Contexts(parted([[1, 2] * 500]))
    _, low, high = index.longest(np.array([1], np.int32))
    places = index.some(low, high)
    assert high - low == 500
    assert PLACES // 2 <= len(places) <= PLACES
    assert places[0] < 100
    assert ((places > 300) & (places < 700)).sum() > 15
    assert places[-1] > 900


def test_behind_the_last_text_nothing_follows() -> None:
    index = Contexts(parted([[1, 2], [3, 4, 5]]))
    rows = index.after(np.array([4, 1]), 4).tolist()
    assert rows == [[4, 5, SEPARATOR, SEPARATOR], [2, SEPARATOR, 3, 4]]


# What is proposed.


def drafter(text: Sequence[Token], **options: object) -> SuffixDrafter:
    made = SuffixDrafter(**{"least": 0.0, **options})  # type: ignore[arg-type]
    made.begin(text)
    return made


def proposed(text: Sequence[Token], limit: int, **options: object) -> tuple[Token, ...]:
    return drafter(text, **options).propose(limit, POLICY).tokens


def followed(text: list[Token], limit: int, least: int) -> tuple[Token, ...]:
    """The rule, slowly: what most of the places go on with, and of equally many the newest."""
    matched, places = told(text, text)
    places = places[-PLACES:] if matched >= least else []
    rows = []
    for place in places:
        row = list(text)
        for _ in range(limit):
            row.append(row[place + len(row) - len(text)])
        rows.append(row[len(text) :])
    tokens: list[Token] = []
    while rows and len(tokens) < limit:
        counts = Counter(row[len(tokens)] for row in rows)
        best = [token for token, count in counts.items() if count == max(counts.values())]
        token = next(row[len(tokens)] for row in rows[::-1] if row[len(tokens)] in best)
        rows = [row for row in rows if row[len(tokens)] == token]
        tokens.append(token)
    return tuple(tokens)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("seed", range(60))
def test_most_of_the_places_decide_and_of_equally_many_the_newest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    least = int(rng.integers(1, 4))
    text: list[Token] = rng.integers(0, int(rng.integers(1, 5)), int(rng.integers(1, 90))).tolist()
    ours = drafter(text, min_match=least)
    for _ in range(5):
        limit = int(rng.integers(1, 9))
        draft = ours.propose(limit, POLICY)
        assert draft.tokens == followed(text, limit, least)
        assert draft.proposals == (None,) * len(draft.tokens)
        new = rng.integers(0, 3, 3).tolist()
        ours.accept(new)
        text += new


def test_frequent_beats_recent() -> None:
    assert proposed([1, 2, 7, 0, 1, 2, 7, 5, 1, 2, 8, 0, 1, 2], 1) == (7,)


def test_recent_beats_old() -> None:
    assert proposed([1, 2, 7, 0, 1, 2, 8, 0, 1, 2], 1) == (8,)


def test_long_beats_frequent() -> None:
    assert proposed([5, 1, 2, 7, 0, 1, 2, 8, 0, 1, 2, 8, 5, 1, 2], 1) == (7,)


def test_a_repetition_goes_on() -> None:
    assert proposed([1, 2, 3, 1, 2, 3, 1, 2], 7) == (3, 1, 2, 3, 1, 2, 3)


def test_a_short_match_is_none() -> None:
    assert proposed([1, 2, 7, 0, 1, 2], 3, min_match=3) == ()
    assert proposed([1, 2, 7, 0, 1, 2], 3, min_match=2) == (7, 0, 1)


def test_a_repetition_goes_on_with_what_is_drafted_too() -> None:
    assert drafter([9, 1, 2, 3, 1]).continuation((2,), 7) == (2, (3, 1, 2, 3, 1, 2, 3))


def test_more_may_be_asked_for_than_before() -> None:
    ours = drafter([1, 2, 3, 4, 5, 1, 2])
    assert ours.propose(2, POLICY).tokens == (3, 4)
    assert ours.propose(4, POLICY).tokens == (3, 4, 5, 1)
    assert ours.propose(1, POLICY).tokens == (3,)


def test_places_that_agree_are_trusted_more_than_one_alone_and_less_when_they_part() -> None:
    chances = [
        drafter(text).expected((), 1)[0][1]
        for text in (
            [1, 2, 7, 1, 2, 8, 1, 2, 9, 1, 2],
            [1, 2, 7, 1, 2, 7, 1, 2, 9, 1, 2],
            [1, 2, 7, 5, 1, 2],
            [1, 2, 7, 3, 1, 2, 7, 4, 1, 2],
        )
    ]
    assert chances == sorted(set(chances))


def test_drafted_tokens_are_looked_up_and_forgotten() -> None:
    ours = drafter([1, 2, 3, 4, 5, 6, 9])
    assert ours.continuation((3, 4), 2) == (2, (5, 6))
    assert ours.continuation((8,), 2) == (0, ())
    assert ours.continuation((), 2) == (0, ())
    ours.accept([2])
    assert ours.continuation((), 2) == (1, (3, 4))


def test_a_corpus_is_used_where_the_text_has_nothing() -> None:
    corpus = [Contexts(parted([[1, 2, 3, 4], [8, 9]]))]
    assert proposed([0, 2], 5, corpus=corpus) == (3, 4)
    assert proposed([0, 8], 5, corpus=corpus) == (9,)
    assert proposed([0, 4], 5, corpus=corpus) == ()
    assert proposed([0, 9], 5, corpus=corpus) == ()


def test_the_text_comes_before_a_corpus_that_knows_no_more() -> None:
    corpus = [Contexts(parted([[1, 2, 3, 4]]))]
    assert proposed([1, 2, 5, 0, 1, 2], 1, corpus=corpus) == (5,)


def test_a_corpus_comes_before_a_text_that_knows_less() -> None:
    corpus = [Contexts(parted([[*range(10, 40), 3, 4]]))]
    assert proposed([39, 5, *range(10, 40)], 1, corpus=corpus) == (3,)


def test_a_longer_match_in_a_corpus_that_says_nothing_does_not_come_first() -> None:
    corpus = [Contexts(parted([[8, 1, 2, token] for token in range(10, 20)]))]
    assert proposed([1, 2, 5, 8, 1, 2], 1, corpus=corpus) == (5,)


# What it learns.


def served(ours: SuffixDrafter, right: bool, rounds: int) -> list[int]:
    """Lengths of proposals while the text repeats itself, or never does as it did before."""
    lengths = []
    for number in range(rounds):
        tokens = ours.propose(4, POLICY).tokens
        lengths.append(len(tokens))
        ahead = [token for token, _ in ours.expected((), 4)]
        ours.accept(ahead if right and ahead else [1_000 + number, 1, 2, 3])
    return lengths


def test_it_does_not_propose_what_is_refused_and_does_so_again_when_it_is_accepted() -> None:
    ours = SuffixDrafter()
    ours.begin([1, 2, 3, 4, 1, 2, 3])
    wrong = served(ours, False, 60)
    assert wrong[0] > 0
    assert wrong[-10:] == [0] * 10
    right = served(ours, True, 60)
    assert right[-10:] == [4] * 10


def test_what_it_learnt_stays_for_the_next_text_until_it_forgets() -> None:
    ours = SuffixDrafter()
    text = [1, 2, 3, 4, 1, 2, 3]
    ours.begin(text)
    fresh = ours.expected((), 3)
    served(ours, False, 60)
    ours.begin(text)
    taught = ours.expected((), 3)
    assert [token for token, _ in taught] == [token for token, _ in fresh]
    assert taught[0][1] < fresh[0][1]
    ours.forget()
    ours.begin(text)
    assert ours.expected((), 3) == fresh


def test_only_tokens_up_to_the_first_wrong_one_are_learnt_from() -> None:
    ours = drafter([1, 2, 3, 4, 5, 6, 7, 1, 2, 3])
    before = ours.expected((), 4)
    ours.accept([4, 99, 6, 7])
    ours.begin([1, 2, 3, 4, 5, 6, 7, 1, 2, 3])
    after = ours.expected((), 4)
    assert after[0][1] > before[0][1]
    assert after[1][1] < before[1][1]
    assert after[3] == before[3]


@pytest.mark.parametrize("seed", range(20))
def test_laws_a_and_b_hold_while_it_learns(seed: int) -> None:
    vocab = 2 + seed % 5
    ours = SuffixDrafter(corpus=[Contexts(parted([[0, 1] * 9, list(range(vocab)) * 3]))])
    for answer in range(3):
        logits_of = chaotic(vocab, seed + answer, depth=2)
        target = FakeModel(logits_of, vocab)
        prompt = [answer % vocab, 1]
        options = DecodeOptions(sampling=GREEDY, draft_length=6, max_tokens=80)
        emitted, _, _ = run(target, ours, prompt, options)
        assert emitted == plainly(FakeModel(logits_of, vocab), prompt, options)
        assert list(target.tokens) == prompt + emitted[:-1]
