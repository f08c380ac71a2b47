"""Drafting never changes a greedy answer, on real weights."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgespec.pair import Pair
from edgespec.settings import Load
from tests.conftest import ModelFiles
from tests.real import rig
from tests.real.conftest import LONGEST, OpenPair
from tests.real.rig import METHODS, Step

PROMPTS = {
    "count": "Count from 1 to 30, separated by commas.",
    "code": "Write a Python function that adds two numbers.",
    "list": "List the planets of the solar system.",
}
TOKENS = 48

# SmolLM2-135M-Instruct.Q4_1, greedy, as llama.cpp decodes it one token at a time.
# fmt: off
GOLDEN = {
    "count": [33, 30, 216, 33, 198, 34, 30, 216, 34, 198, 35, 30, 216, 35, 198, 36, 30, 216, 36,
              198, 37, 30, 216, 37],
    "code": [3725, 5367, 198, 1604, 803, 79, 28707, 24, 2871, 33, 28, 861, 34, 727, 472, 1003, 861,
             33, 1232, 861, 34, 198, 3725, 198],
    "list": [504, 10729, 3829, 42, 198, 33, 30, 18593, 198, 34, 30, 16293, 198, 35, 30, 2591, 198,
             36, 30, 7621, 198, 37, 30, 14713],
}
# fmt: on

_steps: dict[str, list[Step]] = {}


def expected(pair: Pair, name: str) -> list[Step]:
    if name not in _steps:
        prompt = rig.encode(pair, rig.question(PROMPTS[name]))
        _steps[name] = rig.oracle(pair, prompt, TOKENS)
    return _steps[name]


def steps_of(*tokens: int, margins: float | list[float] = 5.0) -> list[Step]:
    each = margins if isinstance(margins, list) else [margins] * len(tokens)
    return [Step(token, margin, b"x") for token, margin in zip(tokens, each, strict=True)]


def test_the_comparison_fails_for_another_token_where_the_choice_was_clear() -> None:
    with pytest.raises(AssertionError, match="token 1 is 9 and not 2"):
        rig.compare([1, 9, 3], steps_of(1, 2, 3))
    with pytest.raises(AssertionError):
        rig.compare([1, 2], steps_of(1, 2, 3))
    assert rig.compare([1, 9, 9], steps_of(1, 2, 3, margins=[5.0, 0.3, 5.0])) == 1
    assert rig.compare([1, 2, 3], steps_of(1, 2, 3)) == 3


def test_the_comparison_of_texts_fails_for_what_no_near_tie_explains() -> None:
    steps = steps_of(1, 2, 3, margins=0.3)
    for wrong in ("xx", "xxxx", ""):
        with pytest.raises(AssertionError):
            rig.compare_text(wrong, "xxx", steps)
    with pytest.raises(AssertionError):
        rig.compare_text("xxy", "xxx", steps_of(1, 2, 3))
    assert not rig.compare_text("xxy", "xxx", steps)


def test_a_corrupted_token_of_a_real_answer_is_found(smollm2: OpenPair) -> None:
    steps = expected(smollm2("none"), "count")
    tokens = [step.token for step in steps]
    place = max(range(TOKENS), key=lambda n: steps[n].margin)
    tokens[place] += 1
    with pytest.raises(AssertionError, match=f"token {place} is"):
        rig.compare(tokens, steps)


@pytest.mark.parametrize("name", PROMPTS)
def test_plain_decoding_gives_the_golden_tokens(smollm2: OpenPair, name: str) -> None:
    steps = expected(smollm2("none"), name)[: len(GOLDEN[name])]
    rig.compare(GOLDEN[name], steps)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROMPTS)
def test_all_drafters_give_the_tokens_of_plain_decoding(
    smollm2: OpenPair, name: str, method: str
) -> None:
    pair = smollm2(method)
    prompt = rig.encode(pair, rig.question(PROMPTS[name]))
    rig.compare(rig.drafted(pair, prompt, 7, TOKENS), expected(smollm2("none"), name))


@pytest.mark.parametrize("length", [1, 2, 16])
@pytest.mark.parametrize("method", METHODS[1:])
def test_the_length_of_the_draft_changes_nothing(
    smollm2: OpenPair, method: str, length: int
) -> None:
    pair = smollm2(method)
    prompt = rig.encode(pair, rig.question(PROMPTS["count"]))
    tokens = rig.drafted(pair, prompt, length, TOKENS // 2)
    rig.compare(tokens, expected(smollm2("none"), "count")[: TOKENS // 2])


def test_more_threads_change_nothing(smollm2: OpenPair, models: ModelFiles) -> None:
    steps = expected(smollm2("none"), "code")[:6]
    pair = Pair.open(replace(rig.load(models.draft("self"), context=256), threads=2))
    try:
        prompt = rig.encode(pair, rig.question(PROMPTS["code"]))
        rig.compare(rig.drafted(pair, prompt, 7, 6), steps)
    finally:
        pair.close()


def test_the_good_draft_is_accepted_and_the_bad_one_is_not(smollm2: OpenPair) -> None:
    shares = {}
    for method in ("self", "bad"):
        session = rig.chat(smollm2(method), length=4, max_tokens=24)
        told = rig.listen(session.reply(PROMPTS["count"]))
        assert told.end.stats.acceptance is not None
        shares[method] = told.end.stats.acceptance
    assert shares["self"] > 0.9
    assert shares["bad"] < 0.1


def test_a_sampled_answer_is_repeated_by_its_seed(smollm2: OpenPair) -> None:
    def answer(seed: int) -> str:
        session = rig.chat(smollm2("self"), length=4, max_tokens=16, seed=seed, sampling=rig.WARM)
        return rig.listen(session.reply("Tell me a story.")).text

    first = answer(1)
    assert answer(1) == first
    assert answer(2) != first


def test_defaults_open_the_small_model_and_say_so() -> None:
    pair = Pair.open(Load(context=64, threads=1))
    try:
        assert pair.method == "auto"
        assert any("SmolLM2" in text and "--model" in text for text in pair.notices)
    finally:
        pair.close()


def test_kept_pairs_can_verify_the_longest_draft(smollm2: OpenPair) -> None:
    assert smollm2("none").target.model.max_rows == LONGEST + 1
