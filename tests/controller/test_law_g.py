"""Law G: never more than 3 % behind plain decoding, within 5 % of the best fixed length in hindsight.

On recorded answers of a real pair, replayed on machines of different kinds (`tests.simulator`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edgespec.costs import between
from tests.simulator import (
    CPU_BF16,
    CPU_LEVEL,
    CPU_Q4,
    CUDA_LIKE,
    MACHINES,
    Machine,
    Replay,
    Trace,
    automatically,
    by_category,
    fixed,
    plainly,
    read_traces,
)

LENGTHS = (1, 2, 3, 4, 6, 8, 12)


@cache
def traces() -> list[Trace]:
    return read_traces(Path(__file__).parents[1] / "traces" / "coder-bf16.jsonl.gz")


def mean(ratios: Iterable[float]) -> float:
    """Geometric."""
    return math.exp(float(np.mean([math.log(ratio) for ratio in ratios])))


def gains(played: list[Replay], plain: list[Replay]) -> list[float]:
    return [ours.speed / theirs.speed for ours, theirs in zip(played, plain, strict=True)]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_law_g(machine: Machine) -> None:
    plain = plainly(traces(), machine)
    auto = gains(automatically(traces(), machine), plain)
    assert min(auto) > 0.97
    best = max(mean(gains(fixed(traces(), machine, n), plain)) for n in LENGTHS)
    assert mean(auto) > 0.95 * max(best, 1.0)


@pytest.mark.parametrize("machine", [CPU_BF16, CPU_LEVEL, CUDA_LIKE], ids=lambda m: m.name)
def test_it_is_well_ahead_of_every_fixed_length(machine: Machine) -> None:
    """No constant suits edits and prose; each category by itself is at least as well served."""
    plain = plainly(traces(), machine)
    auto = gains(automatically(traces(), machine), plain)
    fixed_gains = {n: gains(fixed(traces(), machine, n), plain) for n in LENGTHS}
    assert mean(auto) > 1.1 * max(mean(own) for own in fixed_gains.values())
    for category, places in by_category(traces()):
        ours = mean(auto[i] for i in places)
        best = max(mean(own[i] for i in places) for own in fixed_gains.values())
        assert ours > 0.93 * best, category


@pytest.mark.parametrize("seed", range(8))
def test_law_g_holds_on_a_noisy_machine(seed: int) -> None:
    """Passes that differ by a tenth, and one in fifty that is interrupted."""
    rng = np.random.default_rng(seed)

    def noise() -> float:
        return float(rng.lognormal(0, 0.1)) * (5.0 if rng.random() < 0.02 else 1.0)

    quiet, noisy = CPU_Q4, Machine("noisy", CPU_Q4.verify, CPU_Q4.draft, noise)
    played = automatically(traces(), noisy, quiet.costs)
    kept = [
        plain.seconds / quiet_seconds(replay, quiet)
        for replay, plain in zip(played, plainly(traces(), quiet), strict=True)
    ]
    assert mean(kept) > 0.98
    assert min(kept) > 0.94


def quiet_seconds(replay: Replay, machine: Machine) -> float:
    """What the decisions of a noisy run would have cost without the noise."""
    # A step's own noise averages out over a draft; its count is not in the event.
    return sum(
        between(machine.verify, event.proposed + 1) + event.draft_seconds / 1.1
        for event in replay.rounds
    )


def test_costs_that_change_midway_are_followed_within_an_answer() -> None:
    """Rows become dear in the middle of a session, one by itself a third: then drafting loses."""
    machine = Machine("changing", dict(CPU_LEVEL.verify), dict(CPU_LEVEL.draft))
    told = machine.costs
    token = 1.33 * CPU_LEVEL.verify[1]
    answers = [trace for trace in traces() if trace.category in {"code", "prose", "reasoning"}]
    played: list[int] = []

    def change() -> None:
        played.append(1)
        if len(played) == 4:
            machine.verify = {n: token * cost / 0.025 for n, cost in CPU_Q4.verify.items()}
            machine.draft = {n: token * cost / 0.025 for n, cost in CPU_Q4.draft.items()}

    replays = automatically(answers, machine, told, change)
    assert sum(r.accepted for r in replays[3].rounds) > 20
    # One trial among the thirty tokens that are left is one in thirty.
    assert rate(rounds_after(replays[4], 64)) * token > 0.93
    for replay in replays[5:]:
        assert replay.speed * token > 0.95


def test_copies_that_went_well_do_not_spoil_the_next_answer() -> None:
    """What copying earned is not what the next text earns: there is no hurry in it."""
    machine = Machine(
        "steady",
        {1: 0.15, 2: 0.153, 4: 0.2, 8: 0.26, 16: 0.33, 32: 0.6},
        {1: 0.045, 16: 0.1, 512: 2.0},
    )
    named = {trace.name: trace for trace in traces()}
    for name in ("extract-json", "prose-sky"):
        alone = automatically([named[name]], machine)[-1]
        for before in ("edit-rename", "edit-docstrings", "edit-follow-up"):
            after = automatically([named[before], named[name]], machine)[-1]
            assert after.speed > 0.94 * alone.speed, (before, name)


def rounds_after(replay: Replay, tokens: int) -> list[tuple[int, float]]:
    done, late = 0, []
    for event in replay.rounds:
        if done >= tokens:
            late.append((len(event.tokens), event.seconds))
        done += len(event.tokens)
    return late


def rate(rounds: list[tuple[int, float]]) -> float:
    return sum(tokens for tokens, _ in rounds) / sum(seconds for _, seconds in rounds)


def test_a_draft_of_noise_costs_next_to_nothing() -> None:
    """Random weights: unsure of everything, and wrong."""
    noise = [
        Trace(
            trace.name,
            trace.category,
            trace.prompt,
            trace.text,
            tuple(((trace.vocab_size - 1, 0.01), (0, 0.01)) for _ in trace.chains),
        )
        for trace in traces()
    ]
    for machine in (CPU_BF16, CPU_Q4, CUDA_LIKE):
        for gain in gains(automatically(noise, machine), plainly(noise, machine)):
            assert gain > 0.97


@pytest.mark.parametrize("machine", [CPU_BF16, CPU_Q4], ids=lambda machine: machine.name)
def test_a_prompt_that_comes_again_does_not_fool_it(machine: Machine) -> None:
    """An answer given three times, then others: what was easy does not make the next ones easy."""
    again = [trace for trace in traces()[:6] for _ in range(3)] + traces()[6:]
    assert min(gains(automatically(again, machine), plainly(again, machine))) > 0.97
