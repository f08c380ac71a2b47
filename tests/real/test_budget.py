"""The reader gets as many tokens as asked for, and nothing after the model's own end."""

from __future__ import annotations

import pytest

from edgespec.events import Reason
from edgespec.pair import Pair
from tests.real import rig
from tests.real.conftest import OpenPair
from tests.real.rig import METHODS

COUNT = "Count from 1 to 30, separated by commas."
ONE_WORD = "Say only the word yes."


@pytest.fixture(params=METHODS)
def pair(request: pytest.FixtureRequest, smollm2: OpenPair) -> Pair:
    return smollm2(request.param)


@pytest.mark.parametrize("budget", [1, 2, 5, 8, 17])
def test_the_budget_is_met_exactly(pair: Pair, budget: int) -> None:
    session = rig.chat(pair, length=8, max_tokens=budget)
    told = rig.listen(session.reply(COUNT))
    stats = told.end.stats
    assert told.end.reason is Reason.LENGTH
    assert stats.tokens == told.counts[-1] == len(session.messages[-1].tokens) == budget
    assert stats.round_tokens == budget - 1
    assert stats.accepted <= stats.tested <= stats.proposed
    assert stats.accepted + stats.rounds == stats.round_tokens
    assert not session.messages[-1].complete


def test_nothing_follows_the_end(pair: Pair, smollm2: OpenPair) -> None:
    plain = smollm2("none")
    steps = rig.oracle(plain, rig.encode(plain, rig.question(ONE_WORD)), 12)
    assert plain.target.weights.tokenizer.is_end(steps[-1].token), "the answer is not short"
    session = rig.chat(pair, length=8, max_tokens=40)
    told = rig.listen(session.reply(ONE_WORD))
    assert "<|" not in told.text
    if rig.compare_text(told.text, rig.said(steps), steps):
        assert told.end.reason is Reason.END
        assert told.end.stats.tokens == len(steps) - 1 == len(session.messages[-1].tokens)
        assert told.end.stats.round_tokens == told.end.stats.tokens - 1
        assert session.messages[-1].complete
