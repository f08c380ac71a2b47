"""GBNF: what is read, what it means, and where a mistake is."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from edgespec.errors import UsageError
from edgespec.grammar import automaton as machines
from edgespec.grammar.gbnf import MAX_SYMBOLS, parse
from edgespec.grammar.problem import GrammarProblem
from tests.grammar.texts import after, automaton, begins, fits, wander

CASES = [
    ('root ::= "ab" "c"', ["abc"], ["", "ab", "abcd", "abd"]),
    ('root ::= "a" | "b" "c"', ["a", "bc"], ["", "b", "ac"]),
    ('root ::= ("a" | "b")* "c"', ["c", "abbac"], ["ab", "ca"]),
    ('root ::= "ab"*', ["", "ab", "abab"], ["a", "aba", "abb"]),
    ('root ::= "a"? "b"+', ["b", "ab", "abbb"], ["a", "aab"]),
    ('root ::= "a"{3}', ["aaa"], ["aa", "aaaa"]),
    ('root ::= "a"{2,3} "b"', ["aab", "aaab"], ["ab", "aaaab"]),
    ('root ::= "a"{ 2 , } "b"', ["aab", "aaaaaab"], ["ab"]),
    ('root ::= "a"{0}', [""], ["a"]),
    ('root ::= ("a" "b"{1,2}){2}', ["abab", "abbab", "abbabb"], ["ab", "abbbab"]),
    ("root ::= [a-cx]", ["a", "c", "x"], ["d", "", "ab", "-"]),
    (r"root ::= [^a-c\n]", ["d", "é", "漢", "🙂", " "], ["a", "\n", "de"]),
    ("root ::= [é-ü漢]", ["é", "ö", "漢"], ["z", "ý", "字"]),
    ("root ::= .", ["a", "\n", "é", "🙂"], ["", "ab"]),
    ("root ::= [a-]", ["a", "-"], ["b"]),
    (r'root ::= "\x41\u00e9\U0001F642\t\"\\\[\]\-"', ['Aé🙂\t"\\[]-'], ["A"]),
    ('root ::= pair\npair ::= [0-9] comma [0-9]\ncomma ::= ","', ["1,2"], ["12", "1,"]),
    ('root ::= "(" root ")" | ""', ["", "()", "((()))"], ["(", "(()", "())"]),
    ('root ::= (\n "a"\n # why\n | "b"\n)\n', ["a", "b"], ["ab"]),
    ('# first\nroot ::= "a" # the end\n\n  | "b"\nother ::= "c"', ["a", "b"], ["c"]),
    ('root ::= "a"\r\n | x\r\nx ::= "b"', ["a", "b"], ["ab"]),
    ('root ::= ("a"?)* "b"', ["b", "ab", "aaab"], ["a"]),
    ('root ::= a "x"\na ::= b\nb ::= "y" |', ["x", "yx"], ["y", ""]),
    ("root ::= [\\x00-\\x1F]", ["\x01", "\n"], [" ", "\x00"]),
]


@pytest.mark.parametrize(("grammar", "inside", "outside"), CASES)
def test_texts_that_fit_and_texts_that_do_not(
    grammar: str, inside: list[str], outside: list[str]
) -> None:
    machine = automaton(grammar)
    assert [text for text in inside if not fits(machine, text)] == []
    assert [text for text in outside if fits(machine, text)] == []
    assert [text for text in inside if not begins(machine, text)] == []


MISTAKES = [
    ('root ::= "a', "line 1, column 12: the text ends too early"),
    ('root ::= "a" )', "line 1, column 14: ')' cannot stand here"),
    ('root ::= ("a"\n', "line 2, column 1: ')' was expected"),
    ("root = x", "line 1, column 6: '::=' was expected"),
    ('root ::= "a"\n\n  ::= "b"', "line 3, column 3: the name of a rule was expected, not ':'"),
    ('root ::= x\ny ::= "a"', "line 1, column 10: there is no rule 'x'"),
    ('start ::= "a"', "there is no rule 'root'"),
    ("", "there is no rule 'root'"),
    ('root ::= "a"\nroot ::= "b"', "line 2, column 1: the rule 'root' is there already, at line 1"),
    ("root ::= *", "line 1, column 10: there is nothing that '*' could repeat"),
    ('root ::= "a"{2', "line 1, column 15: '}' was expected"),
    ('root ::= "a"{x}', "line 1, column 14: a whole number was expected"),
    ('root ::= "a"{9999999999}', "line 1, column 14: a whole number was expected"),
    ('root ::= "a"{3,2}', "line 1, column 13: 2 times at most is less than 3 at least"),
    ("root ::= [z-a]", "line 1, column 11: this range ends before it begins"),
    ("root ::= []", "line 1, column 10: no character is in this set"),
    (r"root ::= [^\x01-\U0010FFFF]", "line 1, column 10: no character is in this set"),
    (r'root ::= "\q"', r"line 1, column 11: '\q' is no escape"),
    (r'root ::= "\x4"', r"line 1, column 11: '\x' is no escape"),
    (r'root ::= "\uD800"', "line 1, column 11: this is no character"),
    (r'root ::= "\x00"', "line 1, column 11: this is no character"),
    (r'root ::= "\U00110000"', "line 1, column 11: this is no character"),
    ("root ::= <think> .*", "line 1, column 10: rules about tokens are not known"),
    ("root ::= !<[7]>", "line 1, column 10: rules about tokens are not known"),
    ("root ::= ~", "line 1, column 10: '~' cannot stand here"),
    ('root ::= "a"\nx ::= x "b" | "c"', "line 2, column 1: 'x' begins with itself"),
    ('root ::= a root "x" | "y"\na ::= b\nb ::= "z"?', "'root' begins with itself"),
    ("root ::= a\na ::= b\nb ::= a", "never comes to an end"),
    ('root ::= "a" root', "line 1, column 1: 'root' never comes to an end"),
    ('root ::= "a"{200001}', "the grammar becomes too large here"),
    ("root ::= " + "(" * 101 + '"a"' + ")" * 101, "more than 100 parentheses"),
]


@pytest.mark.parametrize(("grammar", "message"), MISTAKES)
def test_a_mistake_has_its_place(grammar: str, message: str) -> None:
    with pytest.raises(GrammarProblem) as caught:
        automaton(grammar)
    assert message in str(caught.value)


def test_what_would_grow_without_end_is_refused_at_once() -> None:
    """Ways through a grammar double from rule to rule; llama.cpp looks at them all."""
    chain = "\n".join(f'r{n} ::= r{n + 1} "x" | r{n + 1} "y"' for n in range(60))
    with pytest.raises(GrammarProblem, match="in more than 2000 ways"):
        automaton(f'root ::= r0\n{chain}\nr60 ::= "z"')


def test_a_chain_of_many_rules_is_no_deep_recursion() -> None:
    chain = "\n".join(f"r{n} ::= r{n + 1}" for n in range(800))
    assert fits(automaton(f'root ::= r0\n{chain}\nr800 ::= "z"'), "z")


def test_a_text_that_fits_in_too_many_ways_is_an_error_and_no_hang() -> None:
    machine = automaton('root ::= "a" root "x" | "a" root "y" | "b"')
    with pytest.raises(UsageError, match="more than 2000 ways"):
        after(machine, "a" * 40)


def test_a_count_is_kept_that_llama_cpp_takes_for_none() -> None:
    machine = automaton('root ::= "a"{0,2500} "b"')
    assert fits(machine, "a" * 2500 + "b")
    assert not begins(machine, "a" * 2501)


def test_the_size_is_that_of_what_is_made() -> None:
    parse(f'root ::= ("a" "b"){{{MAX_SYMBOLS - 9}}}')
    with pytest.raises(GrammarProblem, match="too large"):
        parse(f'root ::= ("a" "b"){{{MAX_SYMBOLS // 2}}} "c"{{{MAX_SYMBOLS // 2}}}')


def expression(rng: np.random.Generator, depth: int) -> tuple[str, str]:
    """The same thing at random, as GBNF and as a regular expression."""
    kind = int(rng.integers(0, 6 if depth else 2))
    if kind == 0:
        letter = str(rng.choice(["a", "b", "ab"]))
        return f'"{letter}"', f"(?:{letter})"
    if kind == 1:
        letters = str(rng.choice(["[ab]", "[^a]", "[^b]"]))
        return letters, letters
    parts = [expression(rng, depth - 1) for _ in range(int(rng.integers(1, 4)))]
    if kind in (2, 3):
        mark = " " if kind == 2 else " | "
        glue = "" if kind == 2 else "|"
        return f"({mark.join(p for p, _ in parts)})", f"(?:{glue.join(p for _, p in parts)})"
    times = str(rng.choice(["*", "?", "+", "{2}", "{1,3}", "{0,2}", "{2,}"]))
    return f"({parts[0][0]}){times}", f"(?:{parts[0][1]}){times}"


def test_regular_grammars_are_what_regular_expressions_are() -> None:
    rng = np.random.default_rng(5)
    texts = ["".join(letters) for n in range(6) for letters in itertools.product("ab", repeat=n)]
    for _ in range(300):
        grammar, regular = expression(rng, 3)
        machine, compiled = automaton(f"root ::= {grammar}"), re.compile(regular)
        fitting = [text for text in texts if fits(machine, text)]
        assert fitting == [text for text in texts if compiled.fullmatch(text)], (grammar, regular)
        for text in fitting:
            assert all(begins(machine, text[:n]) for n in range(len(text)))


def test_a_state_that_is_alive_can_come_to_an_end() -> None:
    """Where every byte was allowed, the text is not lost."""
    rng = np.random.default_rng(2)
    machine = automaton('root ::= x{1,4}\nx ::= "a" y | [^ab]\ny ::= "b" x | "c"')
    ended = [wander(machine, rng) for _ in range(200)]
    assert all(text is not None and fits(machine, text) for text in ended)


@pytest.mark.parametrize(
    "code", [0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
)
def test_sets_of_characters_end_where_they_say(code: int) -> None:
    around = [code + step for step in (-65, -64, -1, 0, 1, 63, 64)]
    valid = [one for one in around if one <= 0x10FFFF and not 0xD800 <= one <= 0xDFFF]
    upto = automaton(f"root ::= [\\x01-\\U{code:08X}]")
    others = automaton(f"root ::= [^\\x02-\\U{code:08X}]")
    assert [one for one in valid if fits(upto, chr(one))] == [one for one in valid if one <= code]
    assert [one for one in valid if fits(others, chr(one))] == [one for one in valid if one > code]


def test_bytes_that_are_no_utf8_are_dead_at_once() -> None:
    machine = automaton("root ::= .*")
    for wrong in (
        b"\x80",
        b"\xc0",
        b"\xc1",
        b"\xe0\x80",
        b"\xed\xa0",
        b"\xf0\x80",
        b"\xf4\x90",
        b"\xf5",
        b"\xff",
    ):
        assert not begins(machine, wrong), wrong
    for half in ("é".encode()[:1], "漢".encode()[:2], "🙂".encode()[:3]):
        assert begins(machine, half)
        assert not machine.ends(after(machine, half))


def test_forgetting_keeps_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "MOST_STATES", 10)
    machine = automaton('root ::= "[" root{0,3} "]" | "(" root ")" | "."')
    fresh = automaton('root ::= "[" root{0,3} "]" | "(" root ")" | "."')
    text, state, renewed = "[([.(.).]).]", machine.start, 0
    for byte in text.encode():
        state = machine.step(state, byte)
        if machine.is_full:
            state = machine.renew(state)
            renewed += 1
            assert not machine.is_full
    assert renewed
    assert machine.ends(state)
    assert fits(fresh, text)
    assert begins(machine, "[([")
    assert not begins(machine, "[)")


def test_states_come_back() -> None:
    """A loop costs nothing the second time: what is remembered does not grow with the text."""
    machine = automaton('root ::= "\\"" [^"]* "\\""')
    once = after(machine, '"abc')
    known = len(machine._states)
    assert after(machine, '"abc' + "déf漢🙂" * 50) == once
    assert len(machine._states) <= known + 8
