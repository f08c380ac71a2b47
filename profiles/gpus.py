"""The GPUs that the operating system sees, whether or not llama.cpp was built to use them."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from profiles.asking import answer, read
from profiles.cgroup import ROOT

Vendor = Literal["nvidia", "amd", "intel", "apple"]

# PCI vendor ids; what virtual machines show as a screen has others.
_VENDORS: dict[str, Vendor] = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
_LABELS: dict[Vendor, str] = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple"}
_INTEL_BUILT_IN = re.compile(r"0000:00:02\.\d$")
"""Where Intel's processors have their own GPU on the PCI bus."""
_LEAST_CARD = 3 << 30
"""Bytes: an AMD GPU with less was given a piece of the main memory by the firmware."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU."""

    vendor: Vendor
    name: str
    memory: int | None
    """Bytes of its own; None if they are not known, or if it shares the main memory."""
    integrated: bool
    """Whether it shares the main memory."""


def seen(root: Path = ROOT) -> tuple[Gpu, ...]:
    """All that are found, in no order that means anything. Windows tells of NVIDIA's only."""
    nvidia = _by_tool() or _by_driver(root)
    others = [gpu for gpu in _by_kernel(root) if not (nvidia and gpu.vendor == "nvidia")]
    return (*nvidia, *others, *_apple())


def _by_tool() -> list[Gpu]:
    """What NVIDIA's tool says: `name, MiB` a line, or `[N/A]` where the memory is shared."""
    text = answer("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    found = []
    for line in (text or "").splitlines():
        name, comma, memory = (part.strip() for part in line.rpartition(","))
        if comma and name:
            size = int(memory) << 20 if memory.isdecimal() else None
            found.append(Gpu("nvidia", name, size, integrated=False))
    return found


def _by_driver(root: Path) -> list[Gpu]:
    """What NVIDIA's driver says in /proc, where its tool is missing; not how much memory."""
    found = []
    for path in _sorted(root / "proc/driver/nvidia/gpus", "*/information"):
        model = re.search(r"^Model:\s*(.+)$", read(path) or "", re.MULTILINE)
        found.append(Gpu("nvidia", model[1].strip() if model else "NVIDIA GPU", None, False))
    return found


def _by_kernel(root: Path) -> list[Gpu]:
    """What the kernel's graphics drivers say."""
    found = []
    for card in _sorted(root / "sys/class/drm", "card*"):
        vendor = _VENDORS.get(read(card / "device/vendor") or "")
        if vendor is None or not re.fullmatch(r"card\d+", card.name):
            continue  # connectors are called card0-HDMI-A-1
        model = read(card / "device/device")
        memory = read(card / "device/mem_info_vram_total") or ""
        own = int(memory) if memory.isdecimal() else None
        name = f"{_LABELS[vendor]} GPU" + (f" {model}" if model else "")
        integrated = _is_integrated(vendor, card / "device", own)
        found.append(Gpu(vendor, name, None if integrated else own, integrated))
    return found


def _is_integrated(vendor: Vendor, device: Path, own: int | None) -> bool:
    if vendor == "intel":
        try:
            return bool(_INTEL_BUILT_IN.search(str(device.resolve())))
        except (OSError, RuntimeError):
            return True
    return vendor == "amd" and own is not None and own < _LEAST_CARD


def _apple() -> list[Gpu]:
    if (platform.system(), platform.machine()) == ("Darwin", "arm64"):
        name = answer("sysctl", "-n", "machdep.cpu.brand_string") or "Apple silicon"
        return [Gpu("apple", name, None, integrated=True)]
    return []


def _sorted(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []
