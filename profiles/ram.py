"""Main memory, as far as this process may use it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from profiles.cgroup import ROOT, memory_left, memory_limit


@dataclass(frozen=True, slots=True)
class Ram:
    """Bytes; in a container no more than its limit."""

    total: int
    available: int
    """What can be used without swapping, at the moment of asking."""


def ram(root: Path = ROOT) -> Ram:
    """This machine's memory as it is now. `root` stands for `/`, as for control groups."""
    memory = psutil.virtual_memory()
    total = min(memory.total, memory_limit(root) or memory.total)
    left = memory_left(root)
    free = memory.available if left is None else min(memory.available, left)
    return Ram(total, min(free, total))
