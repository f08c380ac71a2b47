"""What this machine has that decides speed. A leaf: asks the operating system, not llama.cpp."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from profiles.asking import answer, read
from profiles.cgroup import ROOT
from profiles.cores import logical_cores, physical_cores, usable_cores
from profiles.gpus import Gpu, seen
from profiles.ram import ram

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Hardware:
    """A machine, as far as this process may use it."""

    cpu: str
    """The processor's name."""
    architecture: str
    """As in `x86_64` or `arm64`."""
    physical_cores: int
    logical_cores: int
    usable_cores: int
    """Fast physical cores that this process may run on: so many threads help."""
    ram: int
    """Bytes; in a container no more than its limit."""
    ram_available: int
    """Bytes that can be used without swapping, at the moment of asking."""
    system: str
    """Operating system and release."""
    gpus: tuple[Gpu, ...] = ()
    """Those that the operating system sees."""

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that change with what decides speed: measurements are kept by it.

        Sizes count in whole GiB, since kernels and drivers keep a little more or less for themselves.
        """
        facts = [
            self.cpu,
            self.architecture,
            self.physical_cores,
            self.logical_cores,
            self.usable_cores,
            round(self.ram / _GIB),
            sorted([gpu.vendor, gpu.name, round((gpu.memory or 0) / _GIB)] for gpu in self.gpus),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def detect(root: Path = ROOT) -> Hardware:
    """This machine. Best effort: what cannot be told is left empty, nothing is raised.

    `root` stands for `/`: what is read from /proc and /sys is read below it.
    """
    memory = ram(root)
    return Hardware(
        cpu=_cpu_name(root),
        architecture=platform.machine(),
        physical_cores=physical_cores(),
        logical_cores=logical_cores(),
        usable_cores=usable_cores(root),
        ram=memory.total,
        ram_available=memory.available,
        system=f"{platform.system()} {platform.release()}".strip(),
        gpus=seen(root),
    )


def _cpu_name(root: Path) -> str:
    if platform.system() == "Darwin":
        name = answer("sysctl", "-n", "machdep.cpu.brand_string")
    elif os.name == "nt":
        name = os.environ.get("PROCESSOR_IDENTIFIER")
    else:
        found = re.search(
            r"^(?:model name|Model)\s*:\s*(.+)$", read(root / "proc/cpuinfo") or "", re.MULTILINE
        )
        # ARM boards name themselves there and not in cpuinfo.
        name = found[1] if found else read(root / "sys/firmware/devicetree/base/model")
    return " ".join((name or platform.processor() or platform.machine() or "unknown").split())
