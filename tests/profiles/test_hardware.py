"""What the operating system tells of a machine, from made-up /proc and /sys."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from profiles import asking, cores, gpus, hardware
from profiles.cgroup import cpu_quota, memory_left, memory_limit
from profiles.gpus import Gpu
from profiles.hardware import detect
from profiles.ram import Ram, ram
from tests.profiles.machines import APPLE, GIB, MIB, card, machine, tree

UNIX = pytest.mark.skipif(os.name == "nt", reason="programs are shell scripts here")


def program(folder: Path, name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program first on the path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty file system on a Linux machine of 8 cores with 2 threads each, no tool on the path."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 16 if logical else 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(gpus, "answer", lambda *_: None)
    root = tmp_path / "root"
    root.mkdir()
    return root


def siblings(root: Path, pairs: int) -> None:
    """Two hardware threads a core, numbered as Linux does: the second ones behind all first ones."""
    tree(
        root,
        {
            f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": (
                f"{cpu % pairs},{cpu % pairs + pairs}\n"
            )
            for cpu in range(2 * pairs)
        },
    )


def test_this_machine() -> None:
    found = detect()
    assert found.cpu
    assert found.cpu == " ".join(found.cpu.split())
    assert 1 <= found.usable_cores <= found.physical_cores <= found.logical_cores
    assert 0 < found.ram_available <= found.ram
    assert found.system
    assert len(found.digest) == 12


def test_nothing_readable_at_all(bare: Path) -> None:
    found = detect(bare)
    assert found.cpu
    assert (found.usable_cores, found.gpus) == (8, ())


def test_the_name_of_a_processor(bare: Path) -> None:
    tree(bare, {"proc/cpuinfo": "processor\t: 0\nmodel\t\t: 167\nmodel name\t: Best  CPU @ 3\n"})
    assert detect(bare).cpu == "Best CPU @ 3"


def test_the_name_of_a_board(bare: Path) -> None:
    tree(bare, {"sys/firmware/devicetree/base/model": "Raspberry Pi 5 Model B\0"})
    assert detect(bare).cpu == "Raspberry Pi 5 Model B"


@pytest.mark.parametrize(
    ("allowed", "usable"), [({0, 1, 2, 3}, 4), ({0, 8}, 1), ({0, 1, 8, 9}, 2), ({5}, 1)]
)
def test_two_threads_of_one_core_count_once(
    bare: Path, monkeypatch: pytest.MonkeyPatch, allowed: set[int], usable: int
) -> None:
    siblings(bare, 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed, raising=False)
    assert cores.usable_cores(bare) == usable


def test_efficiency_cores_do_not_count_but_where_there_are_no_others(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(bare, {"sys/devices/cpu_core/cpus": "0-3,5\n"})
    assert cores.usable_cores(bare) == 5
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {8, 9}, raising=False)
    assert cores.usable_cores(bare) == 2


def test_apples_fast_cores(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(cores, "answer", lambda *_: "4")
    assert cores.usable_cores(bare) == 4
    monkeypatch.setattr(cores, "answer", lambda *_: None)
    assert cores.usable_cores(bare) == 8


@pytest.mark.parametrize(
    ("quota", "usable"),
    [
        ("max 100000", 8),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("9900000 100000", 8),
        ("1 0", 8),
        ("", 8),
    ],
)
def test_the_quota_of_a_container(bare: Path, quota: str, usable: int) -> None:
    tree(bare, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota})
    assert cores.usable_cores(bare) == usable


def test_the_tightest_group_around_counts(bare: Path) -> None:
    group = "sys/fs/cgroup/a.slice/b.scope"
    tree(
        bare,
        {
            "proc/self/cgroup": "0::/a.slice/b.scope\n",
            f"{group}/cpu.max": "400000 100000",
            "sys/fs/cgroup/a.slice/cpu.max": "300000 100000",
            f"{group}/memory.max": "max",
            "sys/fs/cgroup/a.slice/memory.max": str(3 * GIB),
            "sys/cpu.max": "100000 100000",
        },
    )
    assert (cpu_quota(bare), memory_limit(bare)) == (3.0, 3 * GIB)
    found = detect(bare)
    assert found.ram == 3 * GIB
    assert found.ram_available <= found.ram


def test_version_1_of_control_groups(bare: Path) -> None:
    tree(
        bare,
        {
            "proc/self/cgroup": "9:memory:/z\n4:cpu,cpuacct:/x\n1:cpuset:/y\n",
            "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert cpu_quota(bare) == 1.5
    assert detect(bare).ram == psutil.virtual_memory().total


def test_what_a_container_holds_already_is_not_free(bare: Path) -> None:
    group = "sys/fs/cgroup/a.scope"
    tree(
        bare,
        {
            "proc/self/cgroup": "0::/a.scope\n",
            f"{group}/memory.max": str(900 * MIB),
            f"{group}/memory.current": str(700 * MIB),
            f"{group}/memory.stat": f"anon 5\ninactive_file {100 * MIB}\nactive_file 7\n",
            "sys/fs/cgroup/memory.max": str(800 * MIB),
            "sys/fs/cgroup/memory.current": str(500 * MIB),
        },
    )
    assert memory_left(bare) == 300 * MIB
    assert ram(bare) == Ram(800 * MIB, 300 * MIB)
    (bare / "sys/fs/cgroup/memory.current").write_text(str(900 * MIB))
    assert memory_left(bare) == 0
    (bare / "sys/fs/cgroup/memory.max").write_text("max")
    assert memory_left(bare) == 300 * MIB
    (bare / group / "memory.stat").write_text(f"inactive_file {50 * MIB}")
    assert memory_left(bare) == 250 * MIB


def test_version_1_counts_what_inner_groups_hold_as_its_own(bare: Path) -> None:
    group = "sys/fs/cgroup/memory/z"
    tree(
        bare,
        {
            "proc/self/cgroup": "9:memory:/z\n",
            f"{group}/memory.limit_in_bytes": str(400 * MIB),
            f"{group}/memory.usage_in_bytes": str(390 * MIB),
            f"{group}/memory.stat": f"inactive_file 0\ntotal_inactive_file {200 * MIB}\n",
        },
    )
    assert memory_left(bare) == 210 * MIB


@pytest.mark.parametrize("text", ["", "nonsense", "0", "1:cpu", "0::/../..\n"])
def test_nonsense_about_groups_is_no_limit(bare: Path, text: str) -> None:
    tree(bare, {"proc/self/cgroup": text, "sys/fs/cgroup/cpu.max": "x y"})
    assert cpu_quota(bare) is None
    assert memory_limit(bare) is None
    assert memory_left(bare) is None


def test_nvidias_tool(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "NVIDIA GeForce RTX 4090, 24564\nNVIDIA GB10, [N/A]\nno comma\n, 5\n"
    monkeypatch.setattr(gpus, "answer", lambda *command: text if "smi" in command[0] else None)
    drm = {"sys/class/drm/card0/device/vendor": "0x10de\n"}
    assert gpus.seen(tree(bare, drm)) == (
        Gpu("nvidia", "NVIDIA GeForce RTX 4090", 24564 * MIB, integrated=False),
        Gpu("nvidia", "NVIDIA GB10", None, integrated=False),
    )


def test_nvidias_driver_without_the_tool(bare: Path) -> None:
    info = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\n"
    tree(bare, {"proc/driver/nvidia/gpus/0000:01:00.0/information": info})
    assert gpus.seen(bare) == (Gpu("nvidia", "NVIDIA H200", None, integrated=False),)


def test_the_kernels_drivers(bare: Path) -> None:
    tree(
        bare,
        {
            "sys/class/drm/card0/device/vendor": "0x1002\n",
            "sys/class/drm/card0/device/device": "0x744c\n",
            "sys/class/drm/card0/device/mem_info_vram_total": f"{24 * GIB}\n",
            "sys/class/drm/card0-HDMI-A-1/device/vendor": "0x1002\n",
            "sys/class/drm/card1/device/vendor": "0x1002\n",
            "sys/class/drm/card1/device/mem_info_vram_total": f"{GIB // 2}\n",
            "sys/class/drm/card2/device/vendor": "0x1234\n",
            "sys/class/drm/card3/device/vendor": "0x10de\n",
            "sys/class/drm/renderD128/device/vendor": "0x1002\n",
        },
    )
    assert gpus.seen(bare) == (
        Gpu("amd", "AMD GPU 0x744c", 24 * GIB, integrated=False),
        Gpu("amd", "AMD GPU", None, integrated=True),
        Gpu("nvidia", "NVIDIA GPU", None, integrated=False),
    )


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize(("place", "integrated"), [("0000:00:02.0", True), ("0000:03:00.0", False)])
def test_intels_own_and_intels_cards(bare: Path, place: str, integrated: bool) -> None:
    device = tree(bare, {f"sys/devices/pci0000:00/{place}/vendor": "0x8086\n"})
    card_folder = bare / "sys/class/drm/card0"
    card_folder.mkdir(parents=True)
    (card_folder / "device").symlink_to(device / f"sys/devices/pci0000:00/{place}")
    assert [gpu.integrated for gpu in gpus.seen(bare)] == [integrated]


def test_apple_silicon(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert gpus.seen(bare) == ()
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert [(gpu.vendor, gpu.integrated) for gpu in gpus.seen(bare)] == [("apple", True)]


def test_the_digest_is_of_what_decides_speed() -> None:
    one = machine(card(24564))
    same = [
        replace(one, ram_available=1),
        replace(one, system="Linux 7"),
        replace(one, ram=one.ram - 200 * MIB),
        machine(card(24560)),
    ]
    other = [
        replace(one, cpu="Another"),
        replace(one, architecture="arm64"),
        replace(one, physical_cores=9),
        replace(one, logical_cores=8),
        replace(one, usable_cores=7),
        replace(one, ram=one.ram // 2),
        machine(),
        machine(card(12288)),
        machine(card(24564), card(24564)),
        machine(APPLE),
    ]
    assert {machine.digest for machine in same} == {one.digest}
    assert len({machine.digest for machine in [one, *other]}) == len(other) + 1


def test_the_digest_is_the_same_tomorrow_and_in_any_order_of_gpus() -> None:
    first, second = card(24564), card(8188)
    assert machine(first, second).digest == machine(second, first).digest
    assert machine(first).digest == "1437b4fdeb2d"


@UNIX
def test_a_program_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "tool", "printf ' yes\\377 \\n'; echo no >&2", monkeypatch)
    assert asking.answer("tool") == "yes\ufffd"


@UNIX
@pytest.mark.parametrize("body", ["echo half; exit 3", "kill -9 $$"])
def test_a_program_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    program(tmp_path, "tool", body, monkeypatch)
    assert asking.answer("tool") is None


@UNIX
def test_a_program_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "tool", "exec sleep 600", monkeypatch)
    assert asking.answer("tool", patience=0.2) is None


def test_a_program_that_is_not_there() -> None:
    assert asking.answer("edgespec-has-no-such-tool") is None


def test_no_text_where_none_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"\xff\n")
    assert asking.read(tmp_path / "raw") == "\ufffd"
    assert asking.read(tmp_path) is None
    assert asking.read(tmp_path / "missing") is None


def test_the_container_of_the_tests_own(bare: Path) -> None:
    assert hardware.detect(bare).logical_cores == 16
