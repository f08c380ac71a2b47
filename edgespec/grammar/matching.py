"""llguidance with limits, and its errors as sentences."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import llguidance
import numpy as np

from edgespec.grammar.problem import GrammarProblem

_LIMITS = llguidance.LLParserLimits(
    max_items_in_row=20_000,  # an object of 2000 properties has four in a row for each
    step_max_items=1_000_000,  # some 50 ms
    step_lexer_fuel=2_000_000,  # some 150 ms
    verbose_errors=False,
)
_PREFIX = re.compile(r"^(parser error: |at \d+\(\d+\): failed to compile JSON schema: )", re.I)
_NOTHING = "NoExtension"
_STACK = 256 << 20
"""Bytes; only what is used takes memory. llguidance descends from rule to rule, 4 KiB each, and the
process ends where the stack does. It bounds a schema itself, and `gbnf.MAX_RULES` a grammar."""


class Pieces:
    """A vocabulary as llguidance.TokenizerWrapper wants it, by what tokens are made of.

    Nothing ends a text but one token more, which no model has: what ends a generation, and when, is
    known to whoever asks.
    """

    bos_token_id = None

    def __init__(self, pieces: Sequence[bytes]) -> None:
        """Tokens with an empty piece never follow."""
        self.tokens = [*pieces, b"\xff<end>"]
        self.eos_token_id = len(pieces)
        self.special_token_ids = [len(pieces)]

    def __call__(self, text: str | bytes) -> list[int]:
        """For tokens that a grammar forces, which are not asked for."""
        return []


def vocabulary(pieces: Sequence[bytes]) -> llguidance.LLTokenizer:
    """What matchers need of a model: takes seconds for a large one."""
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Pieces(pieces)))


def matcher(lark: str, tokenizer: llguidance.LLTokenizer) -> llguidance.LLMatcher:
    """What follows the beginning of a text. Raises GrammarProblem, with a place in `lark` if any."""
    made = _with_room(lambda: llguidance.LLMatcher(tokenizer, lark, log_level=0, limits=_LIMITS))
    if made.is_error():
        raise GrammarProblem(reason(made))
    return made


def check(lark: str) -> None:
    """Raises GrammarProblem for a grammar that cannot be used with any model.

    What is too large for llguidance shows within the first steps.
    """
    made = matcher(lark, vocabulary([bytes([byte]) for byte in range(256)]))
    for _ in range(3):
        following = np.unpackbits(
            np.frombuffer(made.compute_bitmask(), np.uint8), bitorder="little"
        )
        if made.is_error():
            raise GrammarProblem(reason(made))
        byte = int(following.argmax())
        if byte > 255 or not made.consume_token(byte):
            break
    if made.is_error():
        raise GrammarProblem(reason(made))


def reason(broken: llguidance.LLMatcher) -> str:
    """Why a matcher gave up, as the end of a sentence."""
    if broken.get_error().startswith(
        "panic"
    ):  # caught within llguidance; what it says is for its authors
        return "it is too large"
    text = re.split(r"\n<|\n +\d+ \|", broken.get_error())[0]
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^")]
    what = _PREFIX.sub("", " ".join(lines)).partition("; consider")[0]
    what = what.rstrip(".")[:200]
    return "no text fits it" if what.startswith(_NOTHING) else what


def is_stuck(broken: llguidance.LLMatcher) -> bool:
    """Whether a matcher gave up because no token may follow and the text may not end."""
    return broken.get_error().startswith(_NOTHING)


def _with_room(make: Callable[[], llguidance.LLMatcher]) -> llguidance.LLMatcher:
    before = threading.stack_size(_STACK)
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(make).result()
    finally:
        threading.stack_size(before)
