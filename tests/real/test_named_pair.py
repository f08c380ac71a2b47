"""A target and a draft of one family as people use them. EDGESPEC_PAIR_DIR names their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgespec.pair import Pair
from tests.real import rig

FOLDER = os.environ.get("EDGESPEC_PAIR_DIR")
PROMPTS = (
    "Write a Python function that returns the n-th Fibonacci number.",
    "Write a SQL query that counts the orders of each customer.",
)
PAIRS = {
    "q4": (
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
    "bf16": ("qwen2.5-coder-1.5b-instruct-bf16.gguf", "qwen2.5-coder-0.5b-instruct-q4_0.gguf"),
}

pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="EDGESPEC_PAIR_DIR is not set"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    target, draft = (Path(FOLDER or "") / name for name in PAIRS[request.param])
    for path in (target, draft):
        if not path.exists():
            pytest.skip(f"EDGESPEC_PAIR_DIR has no {path.name}")
    load = rig.load(str(draft), model=str(target), context=512, length=4)
    opened = Pair.open(replace(load, threads=None))
    yield opened
    opened.close()


@pytest.mark.parametrize("text", PROMPTS)
def test_the_draft_changes_nothing(pair: Pair, text: str) -> None:
    assert pair.method == "draft"
    prompt = rig.encode(pair, rig.question(text))
    steps = rig.oracle(pair, prompt, 32)
    rig.compare(rig.drafted(pair, prompt, 4, 32), steps)


def test_the_draft_is_accepted(pair: Pair) -> None:
    told = rig.listen(rig.chat(pair, length=4, max_tokens=16).reply(PROMPTS[0]))
    assert told.end.stats.acceptance is not None
    assert told.end.stats.acceptance > 0.4
