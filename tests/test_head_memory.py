"""A drafting head in the memory plan: it counts as RAM, and goes before the context does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgespec.memory_plan import Machine, Wish, plan
from edgespec.memory_words import notices, refusal
from tests.machines import BIG, GIB, MIB, machine

HEAD = 200 * MIB
WISH = Wish(BIG, head=HEAD)


@pytest.mark.parametrize("gpus", [(), (24,), (4,)])
def test_it_takes_ram(gpus: tuple[float, ...]) -> None:
    with_head, without = plan(WISH, machine(*gpus)), plan(replace(WISH, head=0), machine(*gpus))
    assert with_head.head == HEAD
    assert without.head == 0
    assert with_head.rooms[-1].used - without.rooms[-1].used == HEAD
    assert with_head.rooms[:-1] == without.rooms[:-1]
    assert not any("head" in text for text in notices(with_head))


def just_too_small() -> Machine:
    """Half of the head has room beside the target with its cache at 8 bits."""
    free = machine(ram=64)
    used = plan(replace(WISH, head=0, kv_type="q8_0"), free).rooms[-1].used
    reserve = free.ram.reserve
    return Machine(replace(free.ram, free=used + reserve + HEAD // 2))


def test_it_is_given_up_before_the_context() -> None:
    made = plan(WISH, just_too_small())
    assert made.fits
    assert made.head == 0
    assert made.context == WISH.context
    (said,) = [text for text in notices(made) if "head" in text]
    assert "no room for the drafting head of 200 MiB" in said
    assert "--draft lookup" in said


def test_precision_of_the_cache_is_given_up_for_it() -> None:
    small = just_too_small()
    made = plan(WISH, Machine(replace(small.ram, free=small.ram.free + HEAD)))
    assert (made.head, made.target.cost.kv_type) == (HEAD, "q8_0")


def test_a_refusal_says_that_it_fits_not_even_without() -> None:
    made = plan(WISH, machine(ram=4, free=1))
    assert not made.fits
    assert "even with 2048 tokens of context and no draft" in refusal(made).message
    assert (
        refusal(made).message
        == refusal(plan(replace(WISH, head=GIB), machine(ram=4, free=1))).message
    )


def test_a_number_of_layers_that_is_insisted_on_keeps_it() -> None:
    made = plan(replace(WISH, gpu_layers=-1), machine(2, ram=4, free=0.1))
    assert made.forced
    assert made.head == HEAD
    assert made.rooms[-1].used > HEAD
