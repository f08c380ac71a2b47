"""The machine that a memory plan is made for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgespec import fitting
from edgespec.llama import ggml
from edgespec.memory import Device, own_gpus
from profiles.ram import Ram
from tests.profiles.machines import GIB

RAM = Device("CPU", "cpu", 3 * GIB, 8 * GIB)
CARD = Device("CUDA0", "gpu", 5 * GIB, 6 * GIB, "A card")
BUILT_IN = Device("Vulkan1", "integrated", 0, 0, "In the processor")


def test_a_plan_goes_by_what_a_container_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "main_memory", lambda: Ram(total=2 * GIB, available=GIB))
    monkeypatch.setattr(ggml, "local", lambda: [RAM, BUILT_IN])
    here = fitting.this_machine()
    assert (here.ram.free, here.ram.total) == (GIB, 2 * GIB)
    assert [(one.free, one.total, one.shares_ram) for one in here.gpus] == [(GIB, 2 * GIB, True)]
    assert fitting.device_now("CPU") == here.ram


def test_an_integrated_gpu_counts_where_there_is_no_other() -> None:
    assert own_gpus([RAM, BUILT_IN, CARD], RAM) == [CARD]
    assert own_gpus([RAM], RAM) == []
    two = [BUILT_IN, replace(BUILT_IN, name="Vulkan2")]
    assert [one.name for one in own_gpus(two, RAM)] == ["Vulkan1"]


def test_what_tells_no_memory_has_that_of_the_machine_it_is_in() -> None:
    assert CARD.with_memory(RAM) is CARD
    behind = replace(BUILT_IN, name="RPC0[host]", remote=True).with_memory(RAM)
    assert (behind.free, behind.shares_ram) == (3 * GIB, False)
