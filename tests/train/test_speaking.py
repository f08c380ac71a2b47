"""Answers that grow together are those that grow alone, with the states of their own tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pytest

from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.train.speaking import LIKELY, Asked, Speaker, Spoken
from tests.tiny_models import tiny_model
from tests.train.models import opened

PROMPTS = [[65, 66, 67, 68 + n, *range(70, 70 + 2 * n)] for n in range(6)]
LAYERS = [0, 1, 1]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    found = Weights(tiny_model("llama", tmp_path_factory.mktemp("m") / "llama.gguf"))
    yield found
    found.close()


def asked(*, greedy: bool = True) -> Iterator[Asked]:
    return (Asked(n, prompt, False, greedy) for n, prompt in enumerate(PROMPTS))


def spoken(
    weights: Weights,
    *,
    size: int = 4,
    greedy: bool = True,
    seed: int = 0,
    ends: Collection[int] = (),
    passes: int = 1000,
) -> list[Spoken]:
    """All answers by their numbers; cut after so many passes."""
    chorus = opened(weights, size, LAYERS)
    speaker = Speaker(chorus, ends, length=20, seed=seed)
    found: list[Spoken] = []
    for number, some in enumerate(speaker.speak(asked(greedy=greedy)), start=1):
        found += some
        if number == passes:
            break
    found += speaker.cut()
    assert speaker.cut() == []
    chorus.close()
    return sorted(found, key=lambda one: one.asked.number)


@pytest.mark.parametrize("size", [1, 3])
def test_together_as_alone(weights: Weights, size: int) -> None:
    some, others = spoken(weights), spoken(weights, size=size)
    assert [one.asked.number for one in some] == list(range(len(PROMPTS)))
    for one, other in zip(some, others, strict=True):
        assert one.tokens == other.tokens
        assert list(one.tokens[: len(one.asked.tokens)]) == PROMPTS[one.asked.number]
        assert len(one.tokens) == len(one.asked.tokens) + 20
        assert np.abs(one.final.astype(float) - other.final).max() < 0.1


def test_states_are_those_of_their_tokens(weights: Weights) -> None:
    final = LlamaModel(weights, context=256, threads=1, states="final")
    layers = LlamaModel(weights, context=256, threads=1, states=LAYERS)
    for one in spoken(weights):
        start = len(one.asked.tokens)
        for model, found, first in ((final, one.final, start - 1), (layers, one.layers, 0)):
            assert found is not None
            model.truncate(0)
            rows = []
            for token in one.tokens[:-1]:
                model.extend([token], rows=1)
                rows.append(model.states()[0].copy())
            wanted = np.array(rows[first:])
            assert found.dtype == np.float16
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max() < 0.1
            assert np.abs(found[1:] - wanted[:-1]).max() > 1
    final.close()
    layers.close()


def test_what_was_likely(weights: Weights) -> None:
    model = LlamaModel(weights, context=256, threads=1)
    for one in spoken(weights, greedy=False):
        start = len(one.asked.tokens)
        assert one.likely.shape == one.shares.shape == (20, LIKELY)
        logits = model.extend(one.tokens[:-1], rows=20).astype(np.float64)
        shares = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        assert np.abs(np.take_along_axis(shares, one.likely, axis=1) - one.shares).max() < 0.01
        assert np.abs(-np.sort(-shares, axis=1)[:, :LIKELY] - one.shares).max() < 0.01
        assert len(one.tokens) == start + 20
        model.truncate(0)
    model.close()


def test_the_likeliest_token_is_said_next(weights: Weights) -> None:
    for one in spoken(weights):
        assert one.likely[:, 0].tolist() == list(one.tokens[len(one.asked.tokens) :])


def test_what_is_drawn_is_likely_and_depends_on_the_seed(weights: Weights) -> None:
    first = spoken(weights, greedy=False, seed=1)
    again = spoken(weights, greedy=False, seed=1, size=3)
    other = spoken(weights, greedy=False, seed=2)
    assert [one.tokens for one in first] == [one.tokens for one in again]
    assert [one.tokens for one in first] != [one.tokens for one in other]
    best = [list(one.tokens[len(one.asked.tokens) :]) == one.likely[:, 0].tolist() for one in first]
    assert not all(best)


def test_an_answer_ends_with_its_end(weights: Weights) -> None:
    whole = spoken(weights)
    end = whole[0].tokens[len(PROMPTS[0]) + 3]
    for one, cut in zip(whole, spoken(weights, ends={end}), strict=True):
        answer = list(one.tokens[len(one.asked.tokens) :])
        until = answer.index(end) + 1 if end in answer else len(answer)
        assert list(cut.tokens[len(cut.asked.tokens) :]) == answer[:until]
        assert len(cut.final) == len(cut.likely) == until


def test_what_is_cut_is_the_beginning(weights: Weights) -> None:
    whole = spoken(weights)
    some = spoken(weights, passes=7)
    assert [one.asked.number for one in some] == [0, 1, 2, 3]
    for one in some:
        other = whole[one.asked.number]
        assert one.tokens == other.tokens[: len(one.asked.tokens) + 7]
        assert one.layers is not None
        assert len(one.final) == 7
        assert len(one.layers) == len(one.tokens) - 1
