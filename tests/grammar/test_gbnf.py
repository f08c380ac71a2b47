"""GBNF: what is read, what it means, and where a mistake is."""

from __future__ import annotations

import itertools
import re

import llguidance
import numpy as np
import pytest

from edgespec.grammar import gbnf, matching, terminals
from edgespec.grammar.problem import GrammarProblem
from tests.grammar.texts import after, begins, fits, machine, of_gbnf, wander

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
    ("root ::= [^a]", ["\x01"], ["\x00", "a"]),
    ("root ::= [\\uD000-\\uE100]", ["\ud000", "\ud7ff", "\ue000"], ["\ucfff", "\ue101"]),
    ("root ::= [\\uD700-\\uD9FF]", ["\ud700", "\ud7ff"], ["\ue000"]),
    ("root ::= [\\uDA00-\\uE100]", ["\ue000", "\ue100"], ["\ud7ff"]),
    # What a lexer would cut otherwise
    ('root ::= ("a" | "ab") "bc"', ["abc", "abbc"], ["ab", "abb"]),
    ('root ::= a "bc" root | "x"\na ::= "a" | "ab"', ["abcx", "abbcabcx"], ["abc"]),
    ('root ::= "[" w "x" root? "]"\nw ::= [a-z]+', ["[abx]", "[axx[bx]]"], ["[x]", "[ab]"]),
    ('root ::= "(" "a"* "aa" root? ")"', ["(aa)", "(aaaa(aa))"], ["(a)"]),
    # Which begin with themselves
    ('root ::= root "a" | "b"', ["b", "baa"], ["", "a", "ab"]),
    ('root ::= root "+" root | [0-9]', ["1", "1+2+3"], ["+", "1+"]),
    ('root ::= a root "x" | "y"\na ::= b\nb ::= "z"?', ["y", "yx", "zyx", "zyxx"], ["zy", "x"]),
    ('root ::= "a" root "x" | "a" root "y" | "b"', ["a" * 200 + "b" + "xy" * 100], ["ab"]),
    ("root ::= root root | [ab] |", ["", "ab" * 50], ["c"]),
]


@pytest.mark.parametrize(("grammar", "inside", "outside"), CASES)
def test_texts_that_fit_and_texts_that_do_not(
    grammar: str, inside: list[str], outside: list[str]
) -> None:
    machine = of_gbnf(grammar)
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
    (r'root ::= "\q"', r"line 1, column 11: '\q' is no escape"),
    (r'root ::= "\x4"', r"line 1, column 11: '\x' is no escape"),
    (r'root ::= "\uD800"', "line 1, column 11: this is no character"),
    (r'root ::= "\x00"', "line 1, column 11: this is no character"),
    (r'root ::= "\U00110000"', "line 1, column 11: this is no character"),
    (r"root ::= [^\x01-\U0010FFFF]", "line 1, column 10: no character is in this set"),
    (r"root ::= [^\uE000-\U0010FFFF\x01-\uD7FF]", "line 1, column 10: no character is in this"),
    ("root ::= a\na ::= b\nb ::= a", "line 1, column 1: 'root' never comes to an end"),
    ('root ::= "a" root', "line 1, column 1: 'root' never comes to an end"),
    ('root ::= "a" | x\nx ::= "b" (x{1,2} | x+)', "line 2, column 1: 'x' never comes to an end"),
    ("root ::= <think> .*", "line 1, column 10: rules about tokens are not known"),
    ("root ::= !<[7]>", "line 1, column 10: rules about tokens are not known"),
    ("root ::= ~", "line 1, column 10: '~' cannot stand here"),
    ("root ::= " + "(" * 101 + '"a"' + ")" * 101, "more than 100 parentheses"),
]


@pytest.mark.parametrize(("grammar", "message"), MISTAKES)
def test_a_mistake_has_its_place(grammar: str, message: str) -> None:
    with pytest.raises(GrammarProblem) as caught:
        gbnf.to_lark(grammar)
    assert message in str(caught.value)


@pytest.mark.parametrize("item", ['("a")', ' "a"?'])
def test_too_many_rules_are_refused(item: str) -> None:
    with pytest.raises(
        GrammarProblem, match=r"line 1, column .*: the grammar becomes too large here"
    ):
        gbnf.to_lark("root ::= " + item * (gbnf.MAX_RULES + 1))


def test_what_may_be_left_out_may_be_endless() -> None:
    machine = of_gbnf('root ::= "a" root? | "b" (root{0,3} root* "c")')
    assert fits(machine, "aabc")


@pytest.mark.parametrize("more", ["", " root?"])
def test_large_counts_are_no_large_grammars(more: str) -> None:
    machine = of_gbnf(f'root ::= (("a"{{9000}}){{9000}} | "b"{{900000}} | "c"){more}')
    assert begins(machine, "a" * 50)
    assert begins(machine, "b" * 50)
    assert fits(machine, "c")
    assert begins(machine, "cb") == bool(more)


TOO_LARGE = [
    ('root ::= "' + "a" * 70_000 + '" root?', r"^it is too large$"),
    ("root ::=" + " [a-c]*" * 4000, r"^Current row has \d+ items; max is \d+$"),
]


@pytest.mark.parametrize("number", range(len(TOO_LARGE)))
def test_what_llguidance_gives_up_is_a_sentence(number: int) -> None:
    grammar, message = TOO_LARGE[number]
    with pytest.raises(GrammarProblem, match=message):
        matching.check(gbnf.to_lark(grammar))


def test_ways_that_double_from_rule_to_rule_are_no_trouble() -> None:
    """llama.cpp looks at them all."""
    chain = "\n".join(f'r{n} ::= r{n + 1} "x" | r{n + 1} "y"' for n in range(60))
    for last in ('"z"', '"z" | "(" root ")"'):
        machine = of_gbnf(f"root ::= r0\n{chain}\nr60 ::= {last}")
        assert fits(machine, "z" + "xy" * 30)
        assert not fits(machine, "z" + "xy" * 29)


@pytest.mark.parametrize("more", ["", ' "a"'])
@pytest.mark.parametrize("last", ['"z"', '"z" | "(" root ")"'])
@pytest.mark.parametrize("count", [terminals.MAX_IN_ONE - 2, gbnf.MAX_RULES - 2])
def test_a_chain_of_many_rules_neither_ends_the_process_nor_hangs(
    count: int, last: str, more: str
) -> None:
    """On a usual stack llguidance ends it, from some thousands on."""
    chain = "\n".join(f"r{n} ::= r{n + 1}{more}" for n in range(count))
    machine = of_gbnf(f"root ::= r0\n{chain}\nr{count} ::= {last}")
    assert begins(machine, "z")
    assert begins(machine, "zaaa") == bool(more)


def test_a_count_is_kept_that_llama_cpp_takes_for_none() -> None:
    machine = of_gbnf('root ::= "a"{0,2500} "b"')
    assert fits(machine, "a" * 2500 + "b")
    assert not begins(machine, "a" * 2501)


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
    for _ in range(150):
        grammar, regular = expression(rng, 3)
        compiled = re.compile(regular)
        wanted = [text for text in texts if compiled.fullmatch(text)]
        # As one terminal, and as several
        for more in ("", '\nx ::= "c" root'):
            machine = of_gbnf(f"root ::= {grammar}{' x?' if more else ''}{more}")
            fitting = [text for text in texts if fits(machine, text)]
            assert fitting == wanted, (grammar, regular)


SHAPES = [
    "root ::= x root? | y",
    'root ::= x ("c" root)?',
    'root ::= x y+ | "c" root "c"',
    'root ::= x? y* ("c" root "c")? x',
    'root ::= ("c" x "c" | y | z) root?\nz ::= y "c" | root "b" y',
]


def readings(machine: llguidance.LLMatcher, most: int) -> set[tuple[str, bool]]:
    """All beginnings of texts of `abc`, and whether each is whole."""
    found, todo = set(), [("", machine)]
    while todo:
        text, state = todo.pop()
        found.add((text, state.is_accepting()))
        for letter in "abc" if len(text) < most else "":
            following = after(state, letter)
            todo += [(text + letter, following)] if following else []
    return found


def test_terminals_leave_the_language_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where each character is one."""
    rng = np.random.default_rng(3)
    several = 0
    for number in range(200):
        x, y = (expression(rng, int(rng.integers(0, 3)))[0] for _ in range(2))
        grammar = f"{SHAPES[number % len(SHAPES)]}\nx ::= {x}\ny ::= {y}"
        lark = gbnf.to_lark(grammar)
        several += "\nR" in lark
        with monkeypatch.context() as patched:
            patched.setattr(terminals, "_lowered", lambda rules, root: set(range(len(rules))))
            apart = gbnf.to_lark(grammar)
        assert "R" not in apart
        assert readings(machine(lark), 4) == readings(machine(apart), 4), grammar
    assert several > 20


@pytest.mark.parametrize(
    ("grammar", "count"),
    [
        # Strings and numbers end where they seem to; spaces do not, as they stand side by side.
        (
            'root ::= "[" s (v ("," s v)*)? s "]"\nv ::= root | str | num\ns ::= " "*\n'
            'str ::= "\\"" ([^"\\\\] | "\\\\" ["n])* "\\""\nnum ::= "-"? [0-9]+ ("." [0-9]+)?',
            2,
        ),
        ('root ::= w root? | "(" root ")"\nw ::= [a-z]+', 0),
        ('root ::= w root? | "(" root ")"\nw ::= [a-z]+ " "', 1),
        # These begin alike in UTF-8.
        ('root ::= w root? | "(" root ")"\nw ::= "a" "é"* "b"? | "è"', 0),
    ],
)
def test_what_may_be_a_terminal_is_one(grammar: str, count: int) -> None:
    lark = gbnf.to_lark(grammar)
    inner = {
        name for line in lark.splitlines() if line[0] == "r" for name in re.findall(r"R\d+", line)
    }
    assert len(inner) == count, lark


def test_a_state_that_is_alive_can_come_to_an_end() -> None:
    """Where every byte was allowed, the text is not lost."""
    rng = np.random.default_rng(2)
    machine = of_gbnf('root ::= x{1,4}\nx ::= "a" y | [^ab]\ny ::= "b" x | "c"')
    ended = [wander(machine, rng) for _ in range(200)]
    assert all(text is not None and fits(machine, text) for text in ended)


@pytest.mark.parametrize(
    "code", [0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
)
def test_sets_of_characters_end_where_they_say(code: int) -> None:
    around = [code + step for step in (-65, -64, -1, 0, 1, 63, 64)]
    valid = [one for one in around if one <= 0x10FFFF and not 0xD800 <= one <= 0xDFFF]
    upto = of_gbnf(f"root ::= [\\x01-\\U{code:08X}]")
    others = of_gbnf(f"root ::= [^\\x02-\\U{code:08X}]")
    assert [one for one in valid if fits(upto, chr(one))] == [one for one in valid if one <= code]
    assert [one for one in valid if fits(others, chr(one))] == [one for one in valid if one > code]


@pytest.mark.parametrize("grammar", ["root ::= .*", "root ::= . root?"])
def test_bytes_that_are_no_utf8_are_dead_at_once(grammar: str) -> None:
    machine = of_gbnf(grammar)
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
        state = after(machine, half)
        assert state is not None
        assert not state.is_accepting()
