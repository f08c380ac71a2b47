"""What running states take: one for each layer, more of them where they are kept, and copies in RAM."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgespec.memory import COPIES, MOST_SNAPSHOTS, Device, ModelCost
from tests.machines import BIG, GIB, MIB

RAM = Device("CPU", "cpu", 16 * GIB, 16 * GIB)


def cost(state: int, rows: int = 32, *, snapshots: bool = True) -> ModelCost:
    return ModelCost(replace(BIG, state=state, snapshots=snapshots), 4096, "f16", rows)


@pytest.mark.parametrize(
    ("state", "rows", "expected"),
    [
        (1024, 32, MOST_SNAPSHOTS),
        (1024, 4, 3),
        (1024, 1, 0),
        (2 * MIB, 32, 4),  # a sixteenth of 4.9 GiB, and 64 MiB for each of all layers
        (64 * MIB, 32, 0),
        (0, 32, 0),
    ],
)
def test_as_many_snapshots_as_are_cheap(state: int, rows: int, expected: int) -> None:
    assert cost(state, rows).snapshots == expected
    assert cost(state, rows, snapshots=False).snapshots == 0


def test_snapshots_count_where_the_layer_is_and_copies_in_ram() -> None:
    with_states, without = cost(1024), cost(0)
    for layer in (1, 32):
        extra = with_states.kv_cache(layer) - without.kv_cache(layer)
        assert extra == 1024 * (1 + MOST_SNAPSHOTS)
    assert with_states.kv_cache(0) == 0
    assert with_states.in_ram(RAM, 33).total - without.in_ram(RAM, 33).total == COPIES * 32 * 1024
