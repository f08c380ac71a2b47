"""Which tokens may follow: the tree of tokens, and the constraint that the engine uses."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.errors import UsageError
from edgespec.grammar import automaton as machines
from edgespec.grammar import constraint as constraints
from edgespec.grammar.automaton import DEAD, Automaton
from edgespec.grammar.constraint import Constraints, GrammarConstraint
from edgespec.grammar.vocabulary import Vocabulary
from edgespec.model import Token, Tokenizer
from tests.grammar.texts import automaton
from tests.text_fakes import ENDS, FakeTokenizer

SIZE = 268
"""Of the fake vocabulary, and two entries that pad it."""
GRAMMARS = [
    'root ::= "hello" " world"? "\\n"{0,3}',
    "root ::= [^a-m]{2,4}",
    'root ::= [é-ü漢]+ | [0-9] root | "hel" "lo"+',
    'root ::= "" | "(" root ")"',
]


class Padded(FakeTokenizer):
    """With entries at the end that have no text, as padded vocabularies have."""

    def piece(self, token: Token, *, special: bool = False) -> bytes:
        return b"" if token >= self._first_control + len(self._controls) else super().piece(token)

    def is_end(self, token: Token) -> bool:
        return token < self._first_control + len(self._controls) and super().is_end(token)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(Padded(), SIZE)


def one_by_one(tokenizer: Tokenizer, machine: Automaton, state: int) -> list[bool]:
    """The same question asked of each token by itself."""
    allowed = []
    for token in range(SIZE):
        after = state if tokenizer.piece(token) else DEAD
        for byte in tokenizer.piece(token):
            after = machine.step(after, byte)
        allowed.append(machine.ends(state) if tokenizer.is_end(token) else after != DEAD)
    return allowed


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_the_tree_says_what_each_token_says(grammar: str, vocabulary: Vocabulary) -> None:
    rng = np.random.default_rng(0)
    machine, tokenizer = automaton(grammar), Padded()
    for _ in range(12):
        state = machine.start
        for _ in range(int(rng.integers(0, 9))):
            allowed = vocabulary.allowed(machine, state)
            assert allowed.tolist() == one_by_one(tokenizer, machine, state)
            texts = [t for t in allowed.nonzero()[0].tolist() if not tokenizer.is_end(t)]
            if not texts:
                break
            for byte in tokenizer.piece(int(rng.choice(texts))):
                state = machine.step(state, byte)


def test_a_vocabulary_may_have_equal_texts_and_texts_within_texts() -> None:
    class Words(Padded):
        def piece(self, token: Token, *, special: bool = False) -> bytes:
            return [b"a", b"ab", b"a", b"abc", b"b", b"", b"abcabcabc"][token]

        def is_end(self, token: Token) -> bool:
            return token == 5

    words = Vocabulary(Words(), 7)
    machine = automaton('root ::= "abc"*')
    assert words.allowed(machine, machine.start).tolist() == [1, 1, 1, 1, 0, 1, 1]
    state = machine.step(machine.start, ord("a"))
    assert words.allowed(machine, state).tolist() == [0, 0, 0, 0, 1, 0, 0]


def follower(grammar: str, vocabulary: Vocabulary) -> GrammarConstraint:
    return GrammarConstraint(automaton(grammar), vocabulary)


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_the_best_is_the_best_of_what_is_left(grammar: str, vocabulary: Vocabulary) -> None:
    rng = np.random.default_rng(1)
    constraint = follower(grammar, vocabulary)
    for _ in range(20):
        constraint.reset()
        for _ in range(12):
            # Whole numbers, so that many are equal.
            logits = rng.integers(-3, 4, SIZE).astype(np.float32)
            before = logits.copy()
            masked = constraint.apply(logits)
            assert np.array_equal(logits, before)
            assert masked.dtype == np.float32
            best = constraint.best(logits)
            assert best == int(masked.argmax())
            assert masked[best] > -np.inf
            assert np.array_equal(masked[masked > -np.inf], logits[masked > -np.inf])
            constraint.accept(best)
            if Padded().is_end(best):
                break


def test_ends_are_allowed_where_the_text_may_end_and_control_tokens_nowhere(
    vocabulary: Vocabulary,
) -> None:
    tokenizer = Padded()
    constraint = follower('root ::= "hello" " world"?', vocabulary)
    zeros = np.zeros(SIZE, np.float32)
    hello, world = tokenizer.tokenize("hello world", special=False)
    ends = [tokenizer.control(text) for text in ENDS]

    def open_tokens() -> list[Token]:
        return [int(token) for token in (constraint.apply(zeros) == 0).nonzero()[0]]

    assert open_tokens() == [ord("h"), hello]
    constraint.accept(hello)
    assert open_tokens() == [ord(" "), world, *ends]
    assert constraint.complete
    constraint.accept(world)
    assert open_tokens() == ends
    constraint.accept(ends[0])
    assert open_tokens() == ends
    constraint.reset()
    assert open_tokens() == [ord("h"), hello]


def test_what_may_not_follow_is_not_accepted(vocabulary: Vocabulary) -> None:
    constraint = follower('root ::= "ab"', vocabulary)
    end, begin = Padded().control("</s>"), Padded().control("<s>")
    for token in (ord("b"), end, begin, SIZE - 1):
        with pytest.raises(ValueError, match="does not follow"):
            constraint.accept(token)
    constraint.accept(ord("a"))
    assert constraint.best(np.zeros(SIZE, np.float32)) == ord("b")


def test_an_answer_goes_on_where_it_is(vocabulary: Vocabulary) -> None:
    constraint = follower('root ::= "hello" " world"', vocabulary)
    constraint.begin(Padded().tokenize("hello wo", special=False))
    assert constraint.best(np.zeros(SIZE, np.float32)) == ord("r")
    constraint.begin(())
    assert constraint.best(np.zeros(SIZE, np.float32)) == ord("h")
    with pytest.raises(UsageError, match="does not follow the grammar"):
        constraint.begin(Padded().tokenize("hullo", special=False))


def test_half_a_character_goes_on_as_a_whole_one(vocabulary: Vocabulary) -> None:
    constraint = follower("root ::= [é漢]", vocabulary)
    zeros = np.zeros(SIZE, np.float32)
    assert (constraint.apply(zeros) == 0).nonzero()[0].tolist() == [0xC3, 0xE6]
    constraint.accept(0xE6)
    assert (constraint.apply(zeros) == 0).nonzero()[0].tolist() == ["漢".encode()[1]]


def test_a_model_that_cannot_write_it_is_an_error() -> None:
    class Letters(Padded):
        def piece(self, token: Token, *, special: bool = False) -> bytes:
            return b"x" if token < 256 else b""

    constraint = GrammarConstraint(automaton('root ::= "x" "y"'), Vocabulary(Letters(), SIZE))
    constraint.accept(1)
    with pytest.raises(UsageError, match="no token of this model can write"):
        constraint.apply(np.zeros(SIZE, np.float32))
    with pytest.raises(UsageError, match="no token of this model can write"):
        constraint.best(np.zeros(SIZE, np.float32))


def test_masks_are_kept_and_forgotten(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constraints, "MOST_MASKS", 3)
    asked = 0
    whole = Vocabulary.allowed

    def counted(self: Vocabulary, machine: Automaton, state: int) -> np.ndarray:
        nonlocal asked
        asked += 1
        return whole(self, machine, state)

    monkeypatch.setattr(Vocabulary, "allowed", counted)
    constraint = follower('root ::= "\\"" [^"]* "\\"" "."{5}', vocabulary)
    zeros = np.zeros(SIZE, np.float32)
    for letter in b'"aaaaaaaaaa':
        constraint.apply(zeros)
        constraint.accept(letter)
    assert asked == 2, "inside the string it is always the same"
    for letter in b'"....':
        constraint.apply(zeros)
        constraint.accept(letter)
    assert len(constraint._masks) == 3


def test_a_state_with_another_number_is_the_same_state(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "MOST_STATES", 8)
    rng = np.random.default_rng(3)
    grammar = 'root ::= "[" (root ("," root)*)? "]" | [0-9]'
    often, never = follower(grammar, vocabulary), follower(grammar, vocabulary)
    monkeypatch.setattr(never, "_renew", lambda: None)
    for _ in range(60):
        logits = rng.normal(size=SIZE).astype(np.float32)
        logits[ord("[")] += 2
        assert np.array_equal(often.apply(logits), never.apply(logits))
        token = never.best(logits)
        if Padded().is_end(token):
            often.reset()
            never.reset()
            continue
        often.accept(token)
        never.accept(token)
    assert len(never._automaton._states) > len(often._automaton._states)


def test_a_session_makes_each_grammar_once() -> None:
    made = Constraints(Padded(), SIZE)
    assert made.after(None, [1, 2]) is None
    first = made.after('root ::= "ab"', [ord("a")])
    assert first is not None
    assert first.best(np.zeros(SIZE, np.float32)) == ord("b")
    again = made.after('root ::= "ab"', [])
    assert again is first
    assert again.best(np.zeros(SIZE, np.float32)) == ord("a")
    assert made.after('root ::= "cd"', []) is not first
    with pytest.raises(UsageError, match="cannot be used: line 1, column 10"):
        made.after("root ::= ?", [])
