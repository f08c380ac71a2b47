"""Machines that nobody here has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from profiles.gpus import Gpu
from profiles.hardware import Hardware

GIB = 1 << 30
MIB = 1 << 20


def machine(*gpus: Gpu, cores: int = 8, ram: float = 32) -> Hardware:
    """A desktop; `ram` in GiB."""
    return Hardware(
        cpu="Some Processor",
        architecture="x86_64",
        physical_cores=cores,
        logical_cores=2 * cores,
        usable_cores=cores,
        ram=int(ram * GIB),
        ram_available=int(ram * GIB / 2),
        system="Linux 6",
        gpus=gpus,
    )


def card(mib: int | None, vendor: str = "nvidia") -> Gpu:
    """A graphics card with so much memory, in MiB as its tool reports it."""
    memory = None if mib is None else mib * MIB
    match vendor:
        case "amd":
            return Gpu("amd", "Radeon", memory, integrated=False)
        case "intel":
            return Gpu("intel", "Arc", memory, integrated=False)
        case _:
            return Gpu("nvidia", "GeForce", memory, integrated=False)


APPLE = Gpu("apple", "Apple M3", None, integrated=True)
BUILT_IN = Gpu("intel", "Intel GPU", None, integrated=True)


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """A file system below `root`, as /proc and /sys would show it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
