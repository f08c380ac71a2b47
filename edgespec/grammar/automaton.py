"""Which byte may follow which text: a grammar as a machine whose states are numbers.

A stack holds what is left of the rules that a text has begun; a state is the set of all stacks that
the text allows, as in llama.cpp's src/llama-grammar.cpp. Here equal stacks, and equal states, are one
and have a number, so that a table of states by bytes can remember every step that was ever taken. The
table grows as texts are read; regular parts of a grammar come back to the same few states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import UsageError
from edgespec.grammar.gbnf import Grammar, Symbol

DEAD = 0
"""The state after a text that no continuation can save."""
MOST_STACKS = 2000
"""A grammar that reads a text in more ways is given up; left recursion has no end of them."""
MOST_STATES = 50_000
"""More are forgotten. A row of the table has 1 KiB."""
MOST_STEPS = 3_000_000
"""Of looking at how rules begin: some seconds."""

_DONE = 0  # the empty stack: the text is whole


class _TooManyError(Exception):
    """A state of more stacks than can be kept track of."""


class Automaton:
    """Reads texts of one grammar. One thread at a time."""

    def __init__(self, grammar: Grammar) -> None:
        """Raises GrammarProblem for a rule without an end, or one that begins with itself."""
        self._flat: list[Symbol | None] = []
        """All sequences of all rules, each with None at its end."""
        self._starts: list[list[int]] = []
        """By rule, where its sequences begin in `_flat`."""
        for rule in grammar.rules:
            self._starts.append([])
            for alternate in rule.alternates:
                self._starts[-1].append(len(self._flat))
                self._flat.extend((*alternate, None))
        self._root = grammar.root
        self._refuse_endless(grammar)
        self._refuse_left_recursion(grammar)
        self._forget()

    def _forget(self) -> None:
        """Know no state but the dead one and the first."""
        self._stacks: list[tuple[int, int]] = [(-1, -1)]
        """By number: the place in `_flat` that must be matched next, and the stack below it."""
        self._stack_numbers: dict[tuple[int, int], int] = {}
        self._states: list[frozenset[int]] = [frozenset()]
        self._state_numbers: dict[frozenset[int], int] = {frozenset(): DEAD}
        self._rows = np.zeros((64, 256), np.int32)
        self._known = np.zeros(64, np.bool_)
        self._known[DEAD] = True
        self.start = self._state(self._begin(self._root))
        """The state of the empty text."""

    def step(self, state: int, byte: int) -> int:
        """The state after one more byte; DEAD where it cannot stand. Raises UsageError."""
        if not self._known[state]:
            self._learn(state)
        return int(self._rows[state, byte])

    def rows(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """int32[known, 256]: what follows each state by byte; true for at least the given states.

        Raises UsageError.
        """
        wanted = np.zeros(len(self._states), np.bool_)
        wanted[states] = True
        for state in (wanted & ~self._known[: len(wanted)]).nonzero()[0]:
            self._learn(int(state))
        return self._rows

    def ends(self, state: int) -> bool:
        """Whether the text may end here."""
        return _DONE in self._states[state]

    @property
    def is_full(self) -> bool:
        """Whether so many states are known that `renew` should be called."""
        return len(self._states) > MOST_STATES

    def renew(self, state: int) -> int:
        """Forget all states but one, which gets another number; the others mean nothing from now on."""
        kept = [self._places(stack) for stack in self._states[state]]
        self._forget()
        stacks = []
        for places in kept:
            stack = _DONE
            for at in places:
                stack = self._stack(at, stack)
            stacks.append(stack)
        return self._state(frozenset(stacks))

    def _places(self, stack: int) -> list[int]:
        """The places that a stack holds, the lowest first."""
        found = []
        while stack != _DONE:
            at, stack = self._stacks[stack]
            found.append(at)
        return found[::-1]

    def _learn(self, state: int) -> None:
        """Fill the row of a state."""
        following: list[list[int]] = [[] for _ in range(256)]
        for stack in self._states[state]:
            if stack == _DONE:
                continue
            at, below = self._stacks[stack]
            after = self._stack(at + 1, below)
            bytes_ = self._flat[at]
            assert isinstance(bytes_, frozenset)
            for byte in bytes_:
                following[byte].append(after)
        made: dict[tuple[int, ...], int] = {}
        for byte, stacks in enumerate(following):
            if not stacks:
                continue
            key = tuple(stacks)
            if key not in made:
                made[key] = self._state(self._tops_or_usage_error(key))
            self._rows[state, byte] = made[key]
        self._known[state] = True

    def _tops_or_usage_error(self, stacks: Iterable[int]) -> frozenset[int]:
        try:
            return self._tops(stacks)
        except _TooManyError:
            raise UsageError(
                f"The grammar can read the answer in more than {MOST_STACKS} ways.",
                "Write it so that a text fits in one way only.",
            ) from None

    def _tops(self, stacks: Iterable[int]) -> frozenset[int]:
        """All stacks with bytes on top, or none at all, that the given ones can become.

        llama_grammar_advance_stack. Raises _TooManyError, also where the stacks would grow for ever.
        """
        todo = list(stacks)
        seen = set(todo)
        tops: list[int] = []
        while todo:
            stack = todo.pop()
            at, below = self._stacks[stack]
            symbol = None if stack == _DONE else self._flat[at]
            if not isinstance(symbol, int):
                tops.append(stack)
                continue
            rest = self._stack(at + 1, below)
            for start in self._starts[symbol]:
                inner = self._stack(start, rest)
                if inner not in seen:
                    seen.add(inner)
                    todo.append(inner)
            if len(seen) > MOST_STACKS:
                raise _TooManyError
        return frozenset(tops)

    def _stack(self, at: int, below: int) -> int:
        """The number of a stack; at the end of a sequence that is the one below."""
        if self._flat[at] is None:
            return below
        key = (at, below)
        number = self._stack_numbers.get(key)
        if number is None:
            number = self._stack_numbers[key] = len(self._stacks)
            self._stacks.append(key)
        return number

    def _state(self, stacks: frozenset[int]) -> int:
        number = self._state_numbers.get(stacks)
        if number is None:
            number = self._state_numbers[stacks] = len(self._states)
            self._states.append(stacks)
            if number == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
                self._known = np.concatenate([self._known, np.zeros_like(self._known)])
        return number

    def _begin(self, rule: int) -> frozenset[int]:
        return self._tops(self._stack(start, _DONE) for start in self._starts[rule])

    def _refuse_left_recursion(self, grammar: Grammar) -> None:
        """Begin each rule once. Raises GrammarProblem."""
        steps = 0
        for number, rule in enumerate(grammar.rules):
            self._stacks = [(-1, -1)]
            self._stack_numbers = {}
            try:
                self._begin(number)
            except _TooManyError:
                raise grammar.problem(
                    number,
                    f"{rule.name!r} begins with itself (left recursion), or in more than "
                    f"{MOST_STACKS} ways",
                ) from None
            steps += len(self._stacks)
            if steps > MOST_STEPS:
                raise grammar.problem(number, "the grammar is too large")

    def _refuse_endless(self, grammar: Grammar) -> None:
        """Find rules that no text can fulfil: each way through them needs them again.

        Raises GrammarProblem.
        """
        needs: list[int] = []  # by sequence, how many of its rules are not known to have an end
        owner: list[int] = []
        used_in: list[list[int]] = [[] for _ in grammar.rules]
        for number, rule in enumerate(grammar.rules):
            for alternate in rule.alternates:
                inner = [symbol for symbol in alternate if isinstance(symbol, int)]
                for symbol in inner:
                    used_in[symbol].append(len(needs))
                needs.append(len(inner))
                owner.append(number)
        ended = _spread(needs, owner, used_in)
        for number, rule in enumerate(grammar.rules):
            if number not in ended:
                raise grammar.problem(number, f"{rule.name!r} never comes to an end")


def _spread(
    needs: list[int], owner: Sequence[int], used_in: Sequence[Sequence[int]]
) -> frozenset[int]:
    """The rules with an end: those with a sequence that needs no rule, and so on."""
    ended: set[int] = set()
    todo = [owner[number] for number, count in enumerate(needs) if count == 0]
    while todo:
        rule = todo.pop()
        if rule in ended:
            continue
        ended.add(rule)
        for sequence in used_in[rule]:
            needs[sequence] -= 1
            if needs[sequence] == 0:
                todo.append(owner[sequence])
    return frozenset(ended)
