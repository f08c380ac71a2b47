"""Which tokens may follow: the tree of tokens, and the constraint that the engine uses."""

from __future__ import annotations

import llguidance
import numpy as np
import pytest

from edgespec.errors import UsageError
from edgespec.grammar import gbnf, matching, schema
from edgespec.grammar.constraint import Constraints, GrammarConstraint, Vocabulary
from edgespec.model import Token, Tokenizer
from tests.grammar.texts import begins, fits, of_gbnf
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
        return (
            b""
            if token >= self._first_control + len(self._controls)
            else super().piece(token, special=special)
        )

    def is_end(self, token: Token) -> bool:
        return token < self._first_control + len(self._controls) and super().is_end(token)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(Padded(), SIZE)


def follower(grammar: str, vocabulary: Vocabulary) -> GrammarConstraint:
    return GrammarConstraint(gbnf.to_lark(grammar), vocabulary)


def one_by_one(tokenizer: Tokenizer, start: llguidance.LLMatcher, text: bytes) -> list[bool]:
    """Which tokens may follow a text, each asked by its bytes."""
    return [
        fits(start, text)
        if tokenizer.is_end(token)
        else bool(piece := tokenizer.piece(token)) and begins(start, text + piece)
        for token in range(SIZE)
    ]


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_what_follows_is_what_each_token_says(grammar: str, vocabulary: Vocabulary) -> None:
    """Also where the grammar leaves one text only: a model may write it as it likes."""
    rng = np.random.default_rng(0)
    bytewise, tokenizer = of_gbnf(grammar), Padded()
    constraint = follower(grammar, vocabulary)
    for _ in range(8):
        constraint.reset()
        text = b""
        for _ in range(int(rng.integers(1, 9))):
            allowed = constraint.apply(np.zeros(SIZE, np.float32)) == 0
            assert allowed.tolist() == one_by_one(tokenizer, bytewise, text)
            ways = [t for t in allowed.nonzero()[0].tolist() if not tokenizer.is_end(t)]
            if not ways:
                break
            token = int(rng.choice(ways))
            text += tokenizer.piece(token)
            constraint.accept(token)


def test_what_a_schema_leaves_one_text_for_may_be_written_in_any_tokens(
    vocabulary: Vocabulary,
) -> None:
    constraint = GrammarConstraint(schema.to_lark({"const": "hello"}), vocabulary)
    zeros = np.zeros(SIZE, np.float32)
    constraint.accept(ord('"'))
    hello = Padded().tokenize("hello", special=False)[0]
    assert (constraint.apply(zeros) == 0).nonzero()[0].tolist() == [ord("h"), hello]


def test_a_vocabulary_may_have_equal_texts_and_texts_within_texts() -> None:
    class Words(Padded):
        def piece(self, token: Token, *, special: bool = False) -> bytes:
            return [b"a", b"ab", b"a", b"abc", b"b", b"", b"abcabcabc"][token]

        def is_end(self, token: Token) -> bool:
            return token == 5

    constraint = follower('root ::= "abc"*', Vocabulary(Words(), 7))
    zeros = np.zeros(7, np.float32)
    assert (constraint.apply(zeros) == 0).tolist() == [1, 1, 1, 1, 0, 1, 1]
    constraint.accept(0)
    assert (constraint.apply(zeros) == 0).tolist() == [0, 0, 0, 0, 1, 0, 0]


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
    constraint.begin([hello, ends[1]])
    assert open_tokens() == [ord(" "), world, *ends]
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

    constraint = follower('root ::= "x" "y"', Vocabulary(Letters(), SIZE))
    constraint.accept(1)
    with pytest.raises(UsageError, match="no token of this model can write"):
        constraint.apply(np.zeros(SIZE, np.float32))
    with pytest.raises(UsageError, match="no token of this model can write"):
        constraint.best(np.zeros(SIZE, np.float32))


def test_a_mask_is_made_once_a_place_and_for_the_best_only_where_it_must(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = follower('root ::= "ab"', vocabulary)
    made = 0

    class Counted:
        def __init__(self, matcher: llguidance.LLMatcher) -> None:
            self._matcher = matcher

        def __getattr__(self, name: str) -> object:
            nonlocal made
            made += name == "compute_bitmask"
            return getattr(self._matcher, name)

    monkeypatch.setattr(constraint, "_matcher", Counted(constraint._matcher))
    logits = np.zeros(SIZE, np.float32)
    logits[ord("a")] = 1
    assert constraint.best(logits) == ord("a")
    assert made == 0
    assert constraint.best(-logits) == ord("a")
    assert constraint.best(logits) == ord("a")
    assert made == 1
    constraint.apply(logits)
    assert made == 1
    constraint.accept(ord("a"))
    constraint.apply(logits)
    assert made == 2


def test_a_grammar_that_becomes_too_much_is_an_error_at_the_next_place(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = llguidance.LLParserLimits(max_items_in_row=40, verbose_errors=False)
    monkeypatch.setattr(matching, "_LIMITS", few)
    constraint = follower('root ::= ("a"{0,9} root?){0,9}', vocabulary)
    zeros = np.zeros(SIZE, np.float32)
    for _ in range(9):
        constraint.accept(ord("a"))
        if constraint._matcher.is_error():
            break
    for ask in (constraint.apply, constraint.best):
        with pytest.raises(UsageError, match="too much to keep track of: Current row has"):
            ask(zeros)
    constraint.reset()
    assert constraint.best(zeros) == ord("a")


def test_a_session_makes_each_grammar_once() -> None:
    grammar = gbnf.to_lark('root ::= "ab"')
    made = Constraints(Padded(), SIZE)
    assert made.after(None, [1, 2]) is None
    first = made.after(grammar, [ord("a")])
    assert first is not None
    assert first.best(np.zeros(SIZE, np.float32)) == ord("b")
    again = made.after(grammar, [])
    assert again is first
    assert again.best(np.zeros(SIZE, np.float32)) == ord("a")
    assert made.after(gbnf.to_lark('root ::= "cd"'), []) is not first
    with pytest.raises(UsageError, match="cannot be used: "):
        made.after("start: ?", [])
