"""An EAGLE-3 head in the memory plan: its own share, and the states that it reads of the target."""

from __future__ import annotations

from dataclasses import replace

from edgespec.fitting import with_eagle3
from edgespec.llama.head import ROWS
from edgespec.memory import BATCH, ModelCost
from edgespec.memory_plan import Plan, Wish, plan
from tests.machines import BIG, SMALL, machine

HEAD = replace(
    SMALL, architecture="eagle3", vocabulary=BIG.vocabulary, width=BIG.width, inner=BIG.inner
)
WISH = with_eagle3(Wish(BIG, HEAD))
STATES = BATCH * 3 * BIG.width * 4
"""Bytes of the states of a batch."""


def compute(made: Plan, device: str) -> int:
    return sum(share.compute for share in made.target.shares if share.device == device)


def test_only_a_head_reads_states() -> None:
    assert (WISH.reads, WISH.draft_rows) == (3 * BIG.width, ROWS)
    for draft in (None, SMALL):
        assert with_eagle3(Wish(BIG, draft)) == Wish(BIG, draft)


def test_the_target_s_states_take_ram_and_room_in_the_graph() -> None:
    ours, plain = plan(WISH, machine(ram=64)), plan(replace(WISH, reads=0), machine(ram=64))
    assert compute(ours, "CPU") - compute(plain, "CPU") == 4 * STATES


def test_on_a_gpu_the_graph_is_there_and_the_rest_in_ram() -> None:
    ours, plain = plan(WISH, machine(80)), plan(replace(WISH, reads=0), machine(80))
    gpu = ours.machine.gpus[0].name
    assert ours.target.on_gpus
    assert compute(ours, gpu) - compute(plain, gpu) == STATES
    assert compute(ours, "CPU") - compute(plain, "CPU") == 3 * STATES


def test_without_room_for_the_head_there_are_no_states() -> None:
    free = machine(ram=64)
    alone = plan(Wish(BIG), free)
    tight = replace(free.ram, free=alone.rooms[-1].used + free.ram.reserve)
    made = plan(WISH, replace(free, ram=tight))
    assert made.fits
    assert made.draft is None
    assert made.target == alone.target


def test_a_head_s_batch_is_small() -> None:
    head = ModelCost(HEAD, 4096, "f16", ROWS, reads=WISH.reads)
    model = ModelCost(HEAD, 4096, "f16", ROWS)
    compared = [one.compute(layers=True, output=False) for one in (head, model)]
    assert compared[0] < 0.2 * compared[1] + ROWS * WISH.reads * 4
    # A row of its own vocabulary beside that of the target's, and the states that it reads.
    less = replace(HEAD, vocabulary=0)
    rows = [replace(head, shape=shape).compute(layers=True, output=True) for shape in (HEAD, less)]
    assert rows[0] > ROWS * BIG.vocabulary * 5
    assert rows[1] > ROWS * WISH.reads * 4
