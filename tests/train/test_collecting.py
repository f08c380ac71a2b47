"""Collecting: what is held out, when it ends, and that it can be stopped anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from edgespec.errors import UsageError
from edgespec.llama.weights import Weights
from edgespec.model import Token
from edgespec.train.collecting import Bounds, Collected, Collector, _in_order
from edgespec.train.prompts import Prompt, Split, split
from edgespec.train.shards import Shards, Text
from edgespec.train.speaking import Speaker
from tests.tiny_models import tiny_model
from tests.train.models import opened

ALL = Bounds(seconds=1e9, rows=1 << 40, size=1 << 40)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    found = Weights(tiny_model("llama", tmp_path_factory.mktemp("m") / "llama.gguf"))
    yield found
    found.close()


def encoded(text: str) -> list[Token]:
    return [65 + ord(sign) % 40 for sign in text]


def parts(groups: int = 80) -> Split:
    """Of 7 and 8 tokens."""
    prompts = [Prompt(f"{n} what" + "?" * (n % 5 == 0), f"{n}") for n in range(10, 10 + groups)]
    return split(prompts)


def collect(
    weights: Weights,
    folder: Path,
    bounds: Bounds = ALL,
    *,
    passes: int | None = None,
    room: int = 100,
) -> list[Collected]:
    """All that is told; stopped after so many passes."""
    chorus = opened(weights)
    place, ticks = Shards(folder), count()
    collector = Collector(
        Speaker(chorus, (), length=12, seed=0),
        place,
        parts(),
        encoded,
        room=room,
        clock=lambda: float(next(ticks)),
    )
    told = []
    with closing(collector.steps(bounds)) as steps:
        for found in steps:
            told.append(found)
            if len(told) - 1 == passes:
                break
    chorus.close()
    return told


def texts(folder: Path, *, held: bool | None = None) -> dict[int, Text]:
    """By the number of their prompts; each is answered once."""
    found = [
        text
        for shard in Shards(folder).all()
        if held is None or shard.held is held
        for text in shard.texts
    ]
    numbers = {text.prompt: text for text in found}
    assert len(numbers) == len(found)
    return numbers


def test_all_prompts_are_answered_once(weights: Weights, tmp_path: Path) -> None:
    collect(weights, tmp_path)
    for held in (True, False):
        wanted = {tuple(encoded(one.text)) for one in (parts().held if held else parts().trained)}
        said = texts(tmp_path, held=held).values()
        assert {text.tokens[: text.start] for text in said} == wanted
    assert sorted(texts(tmp_path)) == list(range(80))
    numbers = [shard.number for shard in Shards(tmp_path).all()]
    assert numbers == list(range(len(numbers)))


def test_held_out_answers_are_greedy_spread_and_half_of_the_others_are(
    weights: Weights, tmp_path: Path
) -> None:
    collect(weights, tmp_path)
    held, others = texts(tmp_path, held=True), texts(tmp_path, held=False)
    assert sorted(held) == [12 * n for n in range(len(parts().held))]
    assert all(text.greedy for text in held.values())
    assert all(text.greedy == (number % 2 == 0) for number, text in others.items())


def test_held_out_answers_are_greedy_also_where_there_are_many() -> None:
    found = _in_order([[1], [2]], [[3], [4], [5], [6]])
    assert [one.number for one in found] == list(range(6))
    assert [(one.tokens, one.held, one.greedy) for one in found] == [
        ([3], True, True),
        ([1], False, False),
        ([2], False, True),
        ([4], True, True),
        ([5], True, True),
        ([6], True, True),
    ]


@pytest.mark.parametrize("passes", [1, 5, 40, 150])
def test_stopped_nothing_is_lost_or_said_twice(
    weights: Weights, tmp_path: Path, passes: int
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    collect(weights, one)
    collect(weights, other, passes=passes)
    first = collect(weights, other)[0]
    whole, parted = texts(one), texts(other)
    assert sorted(whole) == sorted(parted)
    cut = [n for n in whole if whole[n].tokens != parted[n].tokens]
    # Those on their way when it was stopped end there; shorter ones are said again.
    assert len(cut) <= 4
    assert bool(cut) is (passes % 12 >= 8)
    for number in cut:
        assert whole[number].tokens[: len(parted[number].tokens)] == parted[number].tokens
    assert first.seconds == pytest.approx(passes if first.rows or first.size else 0, abs=1)


@pytest.mark.parametrize(
    "bounds", [Bounds(1e9, 50, 1 << 40), Bounds(1e9, 1 << 40, 5000), Bounds(30, 1 << 40, 1 << 40)]
)
def test_it_ends_at_each_bound(weights: Weights, tmp_path: Path, bounds: Bounds) -> None:
    last = collect(weights, tmp_path, bounds)[-1]
    assert last.rows >= bounds.rows or last.size >= bounds.size or last.seconds >= bounds.seconds
    assert 4 < len(texts(tmp_path)) < 70
    assert len(collect(weights, tmp_path, bounds)) == 1


def test_prompts_that_are_too_long_are_left_out(weights: Weights, tmp_path: Path) -> None:
    collect(weights, tmp_path, room=7)
    assert {text.start for text in texts(tmp_path).values()} == {7}
    with pytest.raises(UsageError, match="6 tokens or fewer"):
        collect(weights, tmp_path / "none", room=6)


def test_a_shard_without_its_index_is_none(weights: Weights, tmp_path: Path) -> None:
    collect(weights, tmp_path)
    place, whole = Shards(tmp_path), texts(tmp_path)
    last = place.numbers[-1]
    before = np.array(place.read(last).final, np.float32)
    (tmp_path / f"{last:05}.json").unlink()
    (tmp_path / f"{last:05}.final.npy").write_bytes(b"half")
    assert place.numbers == list(range(last))
    collect(weights, tmp_path)
    assert place.numbers == list(range(last + 1))
    assert [text.tokens for text in texts(tmp_path).values()] == [
        text.tokens for text in whole.values()
    ]
    assert np.abs(place.read(last).final - before).max() < 0.1
