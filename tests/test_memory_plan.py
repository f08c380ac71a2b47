"""The memory plan on machines that nobody has to own."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from edgespec.memory import KV_TYPES, Device, ModelCost
from edgespec.memory_plan import LEAST_CONTEXT, Machine, Plan, Wish, plan
from edgespec.memory_words import notices, refusal, summary
from tests.machines import BIG, GIB, MIB, SMALL, apple, machine, model

BOTH = Wish(BIG, SMALL)


def named(made: Plan) -> tuple[bool, int, int | None, str, int]:
    """Whether it fits, layers of target and draft on GPUs, KV type, context."""
    draft = made.draft.gpu_layers if made.draft else None
    return made.fits, made.target.gpu_layers, draft, made.target.cost.kv_type, made.context


def check(made: Plan) -> None:
    """What must hold of any plan."""
    for place in made.models:
        assert sum(share.layers for share in place.shares) == place.cost.count
    if made.fits:
        for room in made.rooms:
            assert 0 <= room.used <= room.device.usable
        assert made.context >= min(made.wish.context, LEAST_CONTEXT)
    if made.context < min(made.wish.context, made.wish.target.context or made.wish.context):
        assert made.draft is None, "the draft is given up before the context"


def test_no_gpu_and_enough_ram_changes_nothing() -> None:
    made = plan(BOTH, machine())
    assert named(made) == (True, 0, 0, "f16", 4096)
    assert notices(made) == []
    assert summary(made) == "big-8b and small-1b in RAM, with 4096 tokens of context."


def test_a_gpu_of_24_gb_takes_all() -> None:
    made = plan(replace(BOTH, context=32_768), machine(24))
    assert named(made) == (True, 33, 17, "f16", 32_768)
    assert notices(made) == []
    assert summary(made) == "big-8b and small-1b on GPU0, with 32768 tokens of context."
    (gpu, ram) = made.rooms
    assert gpu.used > 9 * GIB
    assert ram.used < GIB


def test_a_gpu_of_8_gb_takes_all_at_4096_and_shortens_the_cache_for_more() -> None:
    assert named(plan(BOTH, machine(8))) == (True, 33, 17, "f16", 4096)
    longer = plan(replace(BOTH, context=18_432), machine(8))
    assert named(longer) == (True, 33, 17, "q8_0", 18_432)
    (said,) = notices(longer)
    assert "q8_0" in said
    assert "differ" in said
    assert "--kv-type f16" in said


def test_then_the_draft_leaves_the_gpu_and_then_layers_of_the_target() -> None:
    draft_in_ram = plan(BOTH, machine(6))
    assert named(draft_in_ram) == (True, 33, 0, "f16", 4096)
    assert notices(draft_in_ram) == ["small-1b stays in RAM: there is no room on a GPU."]
    partial = plan(BOTH, machine(4))
    fits, layers, draft, kv_type, context = named(partial)
    assert (fits, draft, kv_type, context) == (True, 0, "f16", 4096)
    assert 15 < layers < 30
    assert f"{layers} of 33 layers of big-8b are on GPU0" in notices(partial)[0]
    tiny = plan(BOTH, machine(0.6))
    assert named(tiny) == (True, 0, 0, "f16", 4096)
    assert tiny.target.on_gpus == ()


def test_the_draft_is_given_up_before_the_context() -> None:
    made = plan(BOTH, machine(ram=8, free=5.8))
    assert named(made) == (True, 0, None, "f16", 4096)
    (said,) = notices(made)
    assert "no room for the draft small-1b" in said
    assert "before the context" in said
    less = plan(BOTH, machine(ram=8, free=5.2))
    fits, _, draft, _, context = named(less)
    assert (fits, draft) == (True, None)
    assert LEAST_CONTEXT <= context < 4096
    assert f"The context is {context} tokens" in notices(less)[1]


def test_what_cannot_fit_is_refused_with_what_would() -> None:
    made = plan(BOTH, machine(ram=8, free=3))
    assert not made.fits
    assert notices(made) == []
    problem = refusal(made)
    assert problem.message.startswith("big-8b does not fit: it needs ")
    assert "more RAM than there is (3.0 GiB free, 256 MiB of it kept in reserve)" in problem.message
    assert "even with 2048 tokens of context and no draft" in problem.message
    assert problem.hint.startswith("Use a smaller quantisation, of at most 2.")
    assert "--mmap" in problem.hint
    assert summary(made) == problem.message
    hopeless = refusal(plan(BOTH, machine(ram=4, free=0.5)))
    assert hopeless.hint.startswith("Use a smaller model.")


def test_a_context_that_would_fit_is_named() -> None:
    greedy = model("greedy", 1, layers=32, width=4096, inner=8192, kv=4096)
    made = plan(Wish(greedy, context=2048, kv_type="f16"), machine(ram=4, free=2.6))
    assert not made.fits
    hint = refusal(made).hint
    named_context = int(hint.split("--ctx ")[1].split(",")[0])
    assert 256 <= named_context < 2048
    wish = Wish(greedy, context=named_context, kv_type="f16")
    assert plan(wish, machine(ram=4, free=2.6)).fits
    more = replace(wish, context=named_context + 256)
    assert not plan(more, machine(ram=4, free=2.6)).fits


def test_apple_silicon_counts_what_the_gpu_takes_as_ram() -> None:
    all_there = plan(BOTH, apple(16, 10))
    assert named(all_there) == (True, 33, 17, "f16", 4096)
    metal, ram = all_there.rooms
    assert metal.used > 5 * GIB
    assert ram.used > metal.used
    busy = plan(BOTH, apple(16, 6))
    assert named(busy)[2] is None, "the working set has room, the RAM has none"
    alone = replace(apple(16, 6), gpus=(replace(apple(16, 6).gpus[0], shares_ram=False),))
    assert named(plan(BOTH, alone))[2] == 17


def test_two_gpus_share_the_target_and_one_has_the_draft() -> None:
    made = plan(BOTH, machine(4, 4))
    assert named(made) == (True, 33, 17, "f16", 4096)
    first, second = made.target.shares[:2]
    assert [share.device for share in made.target.on_gpus] == ["GPU1", "GPU0"]
    assert first.layers + second.layers == 33
    assert made.draft is not None
    assert len(made.draft.on_gpus) == 1
    assert summary(made).startswith("big-8b on GPU0 and GPU1")


@pytest.mark.parametrize("small", [0, 1])
def test_the_draft_goes_where_it_fits_and_the_target_makes_room(small: int) -> None:
    sizes = [8.0, 8.0]
    sizes[small] = 1.4
    made = plan(replace(BOTH, context=16_384, kv_type="f16"), machine(*sizes))
    assert named(made)[:3] == (True, 33, 17)
    assert made.draft is not None
    (alone,) = made.draft.on_gpus
    assert alone.device == f"GPU{1 - small}"
    assert len(made.target.on_gpus) == 2


def test_what_a_person_orders_is_done() -> None:
    assert named(plan(replace(BOTH, gpu_layers=10), machine(24)))[1:3] == (10, 10)
    assert named(plan(replace(BOTH, gpu_layers=0), machine(24)))[1:3] == (0, 0)
    assert named(plan(replace(BOTH, gpu_layers=-1), machine(24)))[1:3] == (33, 17)
    assert named(plan(replace(BOTH, gpu_layers=-1), machine()))[1:3] == (0, 0)
    assert named(plan(replace(BOTH, kv_type="q4_0"), machine(24)))[3] == "q4_0"
    too_much = plan(replace(BOTH, gpu_layers=-1), machine(4))
    assert (too_much.fits, too_much.forced) == (False, True)
    assert named(too_much)[1:3] == (33, 17)
    (said,) = notices(too_much)
    assert "memory of GPU0" in said
    assert "--gpu-layers -1 is tried" in said


def test_a_cache_of_odd_heads_stays_f16() -> None:
    odd = replace(BIG, quantisable=False)
    assert named(plan(Wish(odd, SMALL, context=18_432), machine(8)))[3] == "f16"
    made = plan(Wish(BIG, replace(SMALL, quantisable=False), context=18_432), machine(8))
    assert made.target.cost.kv_type == "q8_0"
    assert made.draft is not None
    assert made.draft.cost.kv_type == "f16"


def test_the_trained_context_bounds_each_model() -> None:
    made = plan(Wish(replace(BIG, context=2048), replace(SMALL, context=512)), machine())
    assert made.context == 2048
    assert made.draft is not None
    assert made.draft.cost.context == 512
    assert notices(made) == []


def test_mapped_weights_need_no_ram_of_their_own() -> None:
    assert not plan(BOTH, machine(ram=8, free=3)).fits
    assert plan(replace(BOTH, mapped=True), machine(ram=8, free=3)).fits


def test_reserves() -> None:
    assert Device("GPU0", "gpu", 0, 4 * GIB).reserve == 512 * MIB
    assert Device("GPU0", "gpu", 0, 100 * GIB).reserve == 8 * GIB
    assert Device("CPU", "cpu", 0, 64 * GIB).reserve == 256 * MIB
    assert Device("CPU", "cpu", 0, 2 * GIB).reserve == 64 * MIB
    assert Device("GPU0", "gpu", 100 * MIB, 4 * GIB).usable == 0


def test_bytes_of_a_cache() -> None:
    sizes = {
        name: sum(
            ModelCost(BIG, 4000, name, 32).kv_cache(layer)
            for layer in range(ModelCost(BIG, 4000, name, 32).count)
        )
        for name in KV_TYPES
    }
    # 32 layers of 1024 keys and as many values, the context rounded up to 4096.
    assert sizes == {
        "f16": 32 * 4096 * 2048 * 2,
        "q8_0": 32 * 4096 * 2048 * 34 // 32,
        "q4_0": 32 * 4096 * 2048 * 18 // 32,
    }


def test_layers_are_counted_from_the_end() -> None:
    cost = ModelCost(
        replace(SMALL, layers=(1, 2, 3), keys=(32, 64, 0), values=(0, 0, 32)), 256, "f16", 1
    )
    assert [cost.weights(layer) for layer in (1, 2, 3)] == [3, 2, 1]
    assert [cost.kv_cache(layer) for layer in range(4)] == [0, 256 * 64, 256 * 128, 256 * 64]
    assert cost.on(machine(8).gpus[0], 0, 2).weights == 3 + SMALL.output + SMALL.copy
    assert cost.in_ram(machine(8).ram, 2).weights == 1 + 2 + SMALL.input


def test_a_shared_matrix_is_held_twice_only_apart() -> None:
    cost = ModelCost(SMALL, 4096, "f16", 1)
    ram, gpu = machine(8).ram, machine(8).gpus[0]
    assert cost.in_ram(ram, 0).weights == SMALL.weights
    apart = cost.in_ram(ram, cost.count).weights + cost.on(gpu, 0, cost.count).weights
    assert apart == SMALL.weights + SMALL.copy


def grown(one: Device, more: int) -> Device:
    return replace(one, free=one.free + more, total=one.total + more)


def rank(made: Plan) -> tuple[bool, bool, bool, int, bool, int, bool]:
    """Bigger is better, in the order in which things are given up, from the last to the first."""
    target = made.target
    return (
        made.fits,
        made.context == made.wish.context,
        made.draft is not None,
        made.context,
        target.gpu_layers == target.cost.count,
        made.draft.gpu_layers if made.draft else 0,
        target.cost.kv_type == "f16",
    )


def random_case(rng: random.Random) -> tuple[Wish, Machine]:
    size = rng.choice([0.5, 2, 4, 8, 20])
    layers = rng.choice([8, 28, 40])
    target = model(
        "target", size, layers=layers, width=2048, inner=8192, kv=rng.choice([256, 1024, 2048]),
        tied=rng.random() < 0.5, quantisable=rng.random() < 0.8,
    )  # fmt: skip
    # Layers of different sizes, as mixed quantisations have.
    sizes = [round(one * rng.uniform(0.6, 1.4)) for one in target.layers]
    target = replace(target, layers=tuple(sizes))
    gpus = [rng.uniform(0.5, 14) for _ in range(rng.choice([0, 1, 1, 2]))]
    wish = Wish(
        target,
        rng.choice([None, SMALL, SMALL]),
        context=rng.choice([512, 4096, 16_384, 65_536]),
        kv_type=rng.choice([None, None, "f16"]),
    )
    free = rng.uniform(0.2, 20)
    made = machine(*gpus, ram=free * rng.uniform(1, 2), free=free)
    if gpus and rng.random() < 0.3:
        made = apple(made.ram.total / GIB, free)
    return wish, made


@pytest.mark.parametrize("seed", range(400))
def test_no_device_is_overfull_and_the_draft_goes_before_the_context(seed: int) -> None:
    check(plan(*random_case(random.Random(seed))))


@pytest.mark.parametrize("seed", range(400))
def test_more_memory_never_makes_a_worse_plan(seed: int) -> None:
    rng = random.Random(seed)
    wish, small = random_case(rng)
    before = plan(wish, small)
    for _ in range(3):
        more = rng.choice([40 * MIB, 400 * MIB, 2 * GIB])
        if small.gpus and rng.random() < 0.6:
            number = rng.randrange(len(small.gpus))
            gpus = list(small.gpus)
            gpus[number] = grown(gpus[number], more)
            big = replace(small, gpus=tuple(gpus))
        else:
            big = replace(small, ram=grown(small.ram, more))
        after = plan(wish, big)
        assert rank(after) >= rank(before)
        if rank(after) == rank(before) and len(small.gpus) == 1 and before.fits:
            assert after.target.gpu_layers >= before.target.gpu_layers
        before, small = after, big
