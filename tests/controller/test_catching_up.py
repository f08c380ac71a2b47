"""What is spent once and serves many rounds, and what is only inferred."""

from __future__ import annotations

import pytest

from edgespec.controller import auto
from tests.controller.test_law_g import gains, mean, traces
from tests.simulator import (
    CPU_BF16,
    CPU_LEVEL,
    CPU_Q4,
    Machine,
    automatically,
    plainly,
)


@pytest.mark.parametrize("machine", [CPU_BF16, CPU_LEVEL], ids=lambda machine: machine.name)
def test_a_long_copy_does_not_keep_the_model_from_being_used_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged to one round, the reading never pays, and the longer it is put off the less it does."""
    edits = [trace for trace in traces() if trace.category in {"edit", "grounded"}]
    plain = plainly(edits, machine)
    ours = mean(gains(automatically(edits, machine), plain))
    monkeypatch.setattr(auto, "_CATCHING_UP", 1.0)
    assert ours > 1.03 * mean(gains(automatically(edits, machine), plain))


@pytest.mark.parametrize("factor", [1.2, 1.33, 1.5])
def test_what_plain_decoding_costs_is_looked_at_when_it_is_only_inferred(factor: float) -> None:
    """A machine becomes one where drafting loses: passes of several rows alone do not show that."""
    machine = Machine("changing", dict(CPU_LEVEL.verify), dict(CPU_LEVEL.draft))
    told = machine.costs
    token = factor * CPU_LEVEL.verify[1]
    answers = [trace for trace in traces() if trace.category in {"code", "prose", "reasoning"}]
    played: list[int] = []

    def change() -> None:
        played.append(1)
        if len(played) == 4:
            machine.verify = {n: token * cost / 0.025 for n, cost in CPU_Q4.verify.items()}
            machine.draft = {n: token * cost / 0.025 for n, cost in CPU_Q4.draft.items()}

    replays = automatically(answers, machine, told, change)
    assert all(replay.speed * token > 0.9 for replay in replays[4:])
