"""What is read of a shard is what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgespec.train.shards import Shards
from edgespec.train.speaking import LIKELY, Asked, Spoken


def spoken(number: int, start: int, count: int, *, layers: bool = True) -> Spoken:
    rng = np.random.default_rng(number)
    return Spoken(
        Asked(number, list(range(start)), True, number % 2 == 0),
        tuple(range(start + count)),
        rng.integers(0, 1000, (count, LIKELY)).astype(np.int32),
        rng.random((count, LIKELY)).astype(np.float16),
        rng.random((count, 3)).astype(np.float16),
        rng.random((start + count - 1, 5)).astype(np.float16) if layers else None,
    )


@pytest.mark.parametrize("layers", [True, False])
def test_read_as_written(tmp_path: Path, layers: bool) -> None:
    written = [spoken(n, 3 + n, 4 + 2 * n, layers=layers) for n in range(3)]
    Shards(tmp_path).write(7, written, 1.5)
    (shard,) = Shards(tmp_path).all()
    assert (shard.number, shard.held, shard.seconds) == (7, True, 1.5)
    for one, text in zip(written, shard.texts, strict=True):
        assert (text.prompt, text.greedy) == (one.asked.number, one.asked.greedy)
        assert (text.tokens, text.start) == (one.tokens, len(one.asked.tokens))
        assert np.array_equal(text.likely, one.likely)
        assert np.array_equal(text.best, one.likely[:, 0])
        assert np.array_equal(text.shares, one.shares)
        assert np.array_equal(shard.final_of(text), one.final)
        if one.layers is not None:
            assert np.array_equal(shard.layers_of(text), one.layers)
    if not layers:
        with pytest.raises(ValueError, match="no layers"):
            shard.layers_of(shard.texts[0])


def test_states_that_do_not_go_with_their_index(tmp_path: Path) -> None:
    place = Shards(tmp_path)
    place.write(0, [spoken(0, 3, 4)], 1.0)
    place.write(1, [spoken(1, 3, 5)], 1.0)
    (tmp_path / "00000.layers.npy").write_bytes((tmp_path / "00001.layers.npy").read_bytes())
    assert place.read(1).number == 1
    with pytest.raises(ValueError, match="does not go with its index"):
        place.read(0)
