"""What a container or a service may use of the machine: control groups of Linux, both versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profiles.asking import read

ROOT = Path("/")


def cpu_quota(root: Path = ROOT) -> float | None:
    """Processors' worth of time that this process may take; None for as much as there is."""
    found = []
    for folder in _folders("cpu", root):
        whole = (read(folder / "cpu.max") or "").split()  # version 2: "150000 100000" or "max ..."
        parts = whole or [
            read(folder / "cpu.cfs_quota_us") or "",  # version 1: microseconds, -1 for no limit
            read(folder / "cpu.cfs_period_us") or "",
        ]
        if len(parts) == 2 and all(part.isdecimal() for part in parts) and int(parts[1]) > 0:
            found.append(int(parts[0]) / int(parts[1]))
    return min(found, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes that this process may use; None for as much as there is."""
    found = []
    for folder in _folders("memory", root):
        text = read(folder / "memory.max") or read(folder / "memory.limit_in_bytes") or ""
        if text.isdecimal():
            found.append(int(text))
    return min(found, default=None)


def memory_left(root: Path = ROOT) -> int | None:
    """Bytes of that which nothing in the group holds by now; None for as much as there is.

    Pages of files that were not used lately count as free: the kernel gives them up when asked to.
    """
    found = []
    for folder in _folders("memory", root):
        limit = read(folder / "memory.max") or read(folder / "memory.limit_in_bytes") or ""
        used = read(folder / "memory.current") or read(folder / "memory.usage_in_bytes") or ""
        if limit.isdecimal() and used.isdecimal():
            idle = _statistic(folder, "total_inactive_file") or _statistic(folder, "inactive_file")
            found.append(max(int(limit) - max(int(used) - idle, 0), 0))
    return min(found, default=None)


def _statistic(folder: Path, name: str) -> int:
    """A number of memory.stat; 0 where it is not there. Version 1 has sums over inner groups apart."""
    lines = (line.split() for line in (read(folder / "memory.stat") or "").splitlines())
    found = (line[1] for line in lines if len(line) == 2 and line[0] == name)
    text = next(found, "")
    return int(text) if text.isdecimal() else 0


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """The folders of this process' groups, innermost first: the tightest of them counts.

    Inside a container the path may be the host's, and only the outermost folder is there.
    """
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        base = root / "sys/fs/cgroup"
        if controllers:
            if controller not in controllers.split(","):
                continue
            base = base / controller
        inner = base / path.lstrip("/")
        yield from (one for one in (inner, *inner.parents) if one == base or base in one.parents)
