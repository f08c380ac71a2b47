"""How many cores help: llama.cpp gains by one thread a fast physical core, and loses by more."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from profiles.asking import answer, read
from profiles.cgroup import ROOT, cpu_quota


def logical_cores() -> int:
    """Hardware threads of the machine."""
    return psutil.cpu_count(logical=True) or os.cpu_count() or 1


def physical_cores() -> int:
    """Cores of the machine; where that cannot be told, its hardware threads."""
    return psutil.cpu_count(logical=False) or logical_cores()


def usable_cores(root: Path = ROOT) -> int:
    """Fast physical cores that this process may run on, at least 1.

    Efficiency cores do not count: every thread waits for the slowest one, as llama.cpp has it too
    (common/common.cpp, cpu_get_num_math). Minds the affinity and the quota of a container.
    """
    count = min(physical_cores(), _allowed(root), _fast_apple_cores())
    quota = cpu_quota(root)
    return max(1, count if quota is None else min(count, int(quota)))


def _allowed(root: Path) -> int:
    """Physical cores in this process' affinity, without the efficiency cores of a hybrid one."""
    if not hasattr(os, "sched_getaffinity"):
        return physical_cores()
    numbers = os.sched_getaffinity(0)
    fast = numbers & _numbers(read(root / "sys/devices/cpu_core/cpus") or "")
    numbers = fast or numbers
    folder = root / "sys/devices/system/cpu"
    siblings = {read(folder / f"cpu{number}/topology/thread_siblings_list") for number in numbers}
    return len(numbers) if None in siblings else len(siblings)


def _fast_apple_cores() -> int:
    if platform.system() == "Darwin":
        text = answer("sysctl", "-n", "hw.perflevel0.physicalcpu") or ""
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return physical_cores()


def _numbers(text: str) -> set[int]:
    """The kernel's way to write a set: `0-3,8`. Nonsense is an empty set."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return set()
        found.update(range(int(first), int(last or first) + 1))
    return found
