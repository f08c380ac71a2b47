"""Texts of grammars: which fit, and some at random."""

from __future__ import annotations

import llguidance
import numpy as np

from edgespec.grammar import gbnf, matching

_BYTES = matching.vocabulary([bytes([byte]) for byte in range(256)])
_END = 256
CLOSING = frozenset(b'"}],')


def machine(lark: str) -> llguidance.LLMatcher:
    """Reads texts byte by byte. Raises GrammarProblem."""
    return matching.matcher(lark, _BYTES)


def of_gbnf(grammar: str) -> llguidance.LLMatcher:
    return machine(gbnf.to_lark(grammar))


def after(start: llguidance.LLMatcher, text: str | bytes) -> llguidance.LLMatcher | None:
    """What reads on after a text; None where none can follow it."""
    state = start.deep_copy()
    for byte in text.encode() if isinstance(text, str) else text:
        if state.validate_tokens([byte]) == 0:
            return None
        assert state.consume_token(byte), state.get_error()
    return state


def fits(start: llguidance.LLMatcher, text: str | bytes) -> bool:
    state = after(start, text)
    return state is not None and state.is_accepting()


def begins(start: llguidance.LLMatcher, text: str | bytes) -> bool:
    """Whether a text could go on so as to fit."""
    return after(start, text) is not None


def wander(start: llguidance.LLMatcher, rng: np.random.Generator, most: int = 1500) -> str | None:
    """A text that fits; marks that close something are likely, so that it comes to an end.

    None where it did not within so many bytes.
    """
    text = bytearray()
    state = start.deep_copy()
    while len(text) < most:
        bits = np.frombuffer(state.compute_bitmask(), np.uint8)
        ways = np.unpackbits(bits, bitorder="little").nonzero()[0].tolist()
        assert ways, bytes(text)
        if _END in ways and (ways == [_END] or rng.random() < 0.3):
            return text.decode()
        closing = [way for way in ways if way in CLOSING]
        choices = closing if closing and rng.random() < 0.3 else [w for w in ways if w != _END]
        text.append(int(rng.choice(choices)))
        assert state.consume_token(text[-1]), state.get_error()
    return None
