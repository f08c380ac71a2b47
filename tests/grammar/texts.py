"""Texts of grammars: which fit, and some at random."""

from __future__ import annotations

import numpy as np

from edgespec.grammar.automaton import DEAD, Automaton
from edgespec.grammar.gbnf import parse


def automaton(grammar: str) -> Automaton:
    return Automaton(parse(grammar))


def after(machine: Automaton, text: str | bytes) -> int:
    """The state after a text."""
    state = machine.start
    for byte in text.encode() if isinstance(text, str) else text:
        state = machine.step(state, byte)
    return state


def fits(machine: Automaton, text: str) -> bool:
    return machine.ends(after(machine, text))


def begins(machine: Automaton, text: str | bytes) -> bool:
    """Whether a text could go on so as to fit."""
    return after(machine, text) != DEAD


def wander(machine: Automaton, rng: np.random.Generator, most: int = 3000) -> str | None:
    """A text that fits, every step of which is as likely as any other that leads elsewhere.

    None where it did not come to an end within so many bytes.
    """
    text = bytearray()
    state = machine.start
    while len(text) < most:
        row = machine.rows(np.array([state], np.int32))[state]
        ways = np.unique(row[row != DEAD])
        if machine.ends(state) and (len(ways) == 0 or rng.random() < 0.3):
            return text.decode()
        state_after = int(rng.choice(ways))
        text.append(int(rng.choice((row == state_after).nonzero()[0])))
        state = state_after
    return None
