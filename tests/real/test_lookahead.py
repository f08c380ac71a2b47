"""Lookahead on real weights: the text stays, and the target's own n-grams turn out right."""

from __future__ import annotations

import pytest

from edgespec.drafters.lookahead import LookaheadDrafter, rows_of
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.model import Token
from tests.real import rig
from tests.real.conftest import OpenPair

PROMPTS = {
    "count": "Count from 1 to 30, separated by commas.",
    "code": "Write a Python function that adds two numbers.",
}
SHAPE = 3, 3, 3
TOKENS = 28


@pytest.mark.parametrize(("name", "from_text"), [("count", False), ("code", True)])
def test_the_text_is_that_of_plain_decoding_and_guesses_are_right(
    smollm2: OpenPair, name: str, from_text: bool
) -> None:
    """Without the text's own n-grams all guesses come from the window."""
    pair = smollm2("none")
    prompt = rig.encode(pair, rig.question(PROMPTS[name]))
    steps = rig.oracle(pair, prompt, TOKENS)
    rig.empty(pair)
    options = DecodeOptions(sampling=rig.GREEDY, max_tokens=TOKENS)
    drafter = LookaheadDrafter(*SHAPE, from_text=from_text)
    tokens: list[Token] = []
    rounds: list[Round] = []
    for event in decode(pair.target.model, drafter, prompt, options):
        if isinstance(event, FirstToken):
            tokens.append(event.token)
        elif isinstance(event, Round):
            tokens.extend(event.tokens)
            rounds.append(event)
    rig.compare(tokens, steps)
    assert sum(one.accepted for one in rounds) >= 3
    assert len(rounds) < TOKENS - 2
    assert max(one.rows for one in rounds) <= rows_of(*SHAPE)
