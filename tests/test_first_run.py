"""What is proposed to whom: machines that nobody here has."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgespec import first_run
from edgespec.first_run import Offer, due, machine_of, propose
from edgespec.llama import backends, probe, unused
from edgespec.llama.probe import Probe, RuntimeUnusableError
from edgespec.memory import Device
from edgespec.memory_plan import Machine
from model_registry import catalog
from model_registry.store import Store
from profiles.tuned import Key
from tests import machines
from tests.profiles.machines import BUILT_IN, GIB, card, machine
from tests.profiles.tuned_results import tuned
from tests.registry.stored import model_file, put

BUILD = backends.Build("0.3.36", ("CPU",), "CPU : AVX2 = 1", gpu_offload=False)
CPU = Device("CPU", "cpu", 3 * GIB, 8 * GIB, "Some Processor")


def offered(cores: int, here: Machine, ram: float = 32) -> Offer:
    return propose(machine(cores=cores, ram=ram), here, catalog.load())


def name_of(offer: Offer) -> str | None:
    return offer.row.name if offer.row else None


@pytest.mark.parametrize(
    ("cores", "ram", "name"),
    [
        (1, 16, None),
        (2, 64, "qwen2.5-coder-1.5b"),
        (3, 16, "qwen2.5-coder-1.5b"),
        (4, 16, "gemma-3-4b"),
        (8, 32, "qwen2.5-7b"),
        (64, 512, "qwen2.5-7b"),
        (8, 7, "gemma-3-4b"),
        (8, 5, "qwen2.5-coder-1.5b"),
        (8, 1, None),
    ],
)
def test_a_processor_gets_what_it_can_hold_and_read(
    cores: int, ram: float, name: str | None
) -> None:
    offer = offered(cores, machines.machine(ram=ram), ram)
    assert name_of(offer) == name
    assert "core" in offer.why
    assert offer.hardware[-1] == "No GPU that this build of llama.cpp can use."
    if offer.row:
        assert str(offer.row.fit) == "~RAM"
        assert "nobody knows it before" in offer.brings


@pytest.mark.parametrize(
    ("vram", "name"),
    [
        ((4,), "qwen2.5-coder-1.5b"),
        ((8,), "qwen2.5-7b"),
        ((7.6,), "qwen2.5-7b"),
        ((12,), "qwen3-8b"),
        ((24,), "qwen2.5-coder-32b"),
        ((80,), "qwen2.5-coder-32b"),
    ],
)
def test_a_gpu_gets_the_catalogues_pair_for_its_memory(vram: tuple[float, ...], name: str) -> None:
    offer = offered(2, machines.machine(*vram, ram=64), 64)
    assert name_of(offer) == name
    assert "GB of GPU memory" in offer.why
    assert offer.row
    assert str(offer.row.fit) == "~GPU"


def test_a_card_that_is_in_use_gets_less() -> None:
    full = machines.machine(12.0, ram=64)
    (gpu,) = full.gpus
    busy = Machine(full.ram, (type(gpu)(gpu.name, gpu.kind, gpu.free // 2, gpu.total),))
    assert name_of(offered(8, busy)) == "qwen2.5-coder-1.5b"


def test_a_card_too_small_counts_as_none() -> None:
    assert "8 cores" in offered(8, machines.machine(2.0, ram=32)).why


def test_shared_memory_counts_once() -> None:
    assert name_of(offered(8, machines.apple(16, free=11), 16)) == "qwen2.5-7b"
    assert name_of(offered(8, machines.apple(16, free=4), 16)) == "qwen2.5-coder-1.5b"


def test_what_was_measured_before_is_told_and_nothing_else_is_promised() -> None:
    hardware = machine(cores=8)
    key = Key(hardware=hardware.digest, build="b", target="t", draft="d", setup="")
    names = {
        "target_name": "qwen2.5-7b-instruct-q4_k_m-00001-of-00002",
        "draft_name": "qwen2.5-0.5b-instruct-q4_k_m",
    }
    result = tuned(key, **names, acceptance={"code": 0.9, "prose": 0.0})
    here = machines.machine(ram=32)
    offer = propose(hardware, here, catalog.load(), [result])
    assert offer.brings == (
        "Measured on this machine before: 20.0 tokens a second, 1.0 to 1.7 times that with "
        "guessing ahead."
    )
    elsewhere = tuned(key.model_copy(update={"hardware": "other"}), **names)
    assert "nobody knows" in propose(hardware, here, catalog.load(), [elsewhere]).brings
    another = tuned(key)
    assert "nobody knows" in propose(hardware, here, catalog.load(), [another]).brings


def test_the_machine_is_what_llama_cpp_can_use() -> None:
    hardware = machine(cores=4)
    devices = (
        CPU,
        Device("Vulkan0", "gpu", 5 * GIB, 6 * GIB, "A Card"),
        Device("Vulkan1", "integrated", 0, 0, "In the processor"),
        Device("RPC0", "gpu", 20 * GIB, 24 * GIB, "elsewhere"),
    )
    found = machine_of(hardware, Probe(BUILD, devices))
    assert [(gpu.name, gpu.shares_ram) for gpu in found.gpus] == [("Vulkan0", False)]
    assert found.ram.free == hardware.ram_available
    shared = machine_of(hardware, Probe(BUILD, (CPU, devices[2])))
    assert [(gpu.name, gpu.shares_ram, gpu.total) for gpu in shared.gpus] == [
        ("Vulkan1", True, hardware.ram)
    ]
    metal = Device("MTL0", "gpu", 10 * GIB, 11 * GIB, "Apple M3", shares_ram=True)
    assert machine_of(hardware, Probe(BUILD, (CPU, metal))).gpus[0].shares_ram


def test_looking_says_how_to_build_for_a_gpu_that_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("profiles.hardware.detect", lambda: machine(card(8192), cores=8))
    monkeypatch.setattr(probe, "look", lambda: Probe(BUILD, (CPU,)))
    offer = first_run.look()
    (hint,) = offer.hints
    assert hint.startswith("GeForce (8.6 GB) is here, but this build of llama.cpp cannot use it. ")
    assert "GGML_CUDA=on" in hint
    assert name_of(offer) == "qwen2.5-7b"
    assert unused.unused(machine(BUILT_IN), Probe(BUILD, (CPU,)))[0][0].endswith("answer faster.")


def test_looking_survives_a_runtime_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Probe:
        raise RuntimeUnusableError("llama.cpp cannot be used: odd.")

    monkeypatch.setattr("profiles.hardware.detect", lambda: machine(cores=2))
    monkeypatch.setattr(probe, "look", fail)
    offer = first_run.look()
    assert offer.hints == ("llama.cpp cannot be used: odd.",)
    assert name_of(offer) == "qwen2.5-coder-1.5b"


def test_it_is_due_once_and_only_where_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(first_run, "marker", lambda: tmp_path / "state" / "first-run")
    assert due(None)
    assert not due("some-model.gguf")
    put(Store(tmp_path / "store"), model_file(tmp_path / "m.gguf"))
    assert not due(None)
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "other"))
    assert due(None)
    first_run.dismiss()
    assert not due(None)
    first_run.dismiss()


def test_a_folder_that_cannot_be_written_to_does_not_mind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(first_run, "marker", lambda: tmp_path / "file" / "first-run")
    first_run.dismiss()


def test_the_marker_lies_with_the_state_of_programs() -> None:
    assert first_run.marker().name == "first-run"
    assert "edgespec" in str(first_run.marker())
