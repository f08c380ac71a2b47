"""What a head can guess."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.train.shards import Shard
from tests.train.models import NO_TORCH, text

pytest.importorskip("torch", reason=NO_TORCH)

from edgespec.train import making


def shard(*answers: list[int], rows: int = 0) -> Shard:
    texts = tuple(text([0, *answer], 1, of=100) for answer in answers)
    return Shard(0, False, 0.0, texts, np.zeros((rows, 1), np.float16), None)


def test_the_vocabulary_is_what_is_most_probable_in_all() -> None:
    """10 is likeliest once (0.6); 21 never, and second four times (1.0); 20 is so four times (2.4)."""
    shards = [shard([20, 20], [10]), shard([20, 20])]
    assert making.frequent(shards, 1).tolist() == [20]
    assert making.frequent(shards, 2).tolist() == [20, 21]
    assert making.frequent(shards, 4).tolist() == [10, 20, 21, 22]
    assert making.frequent(shards, 100).tolist() == [10, 11, 12, 20, 21, 22]
    assert making.coverage(shards, making.frequent(shards, 2)) == pytest.approx(0.8)


def test_the_first_shards_are_enough_to_look_at() -> None:
    shards = [shard([1], rows=3) for _ in range(5)]
    assert [len(making.few(shards, count)) for count in (1, 3, 4, 100)] == [1, 1, 2, 5]
