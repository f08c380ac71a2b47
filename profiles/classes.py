"""Which of the builtin profiles a machine gets."""

from __future__ import annotations

from collections.abc import Collection

from profiles.gpus import Gpu, Vendor
from profiles.hardware import Hardware

_GIB = 1 << 30

# Least GiB, ascending. Cards report up to a tenth less than what they are sold with.
_CARDS = ((0, "gpu-6gb"), (7.2, "gpu-8gb"), (11.2, "gpu-12gb"), (22, "gpu-24gb"), (44, "gpu-48gb"))
_APPLE = ((0, "apple-8gb"), (14, "apple-16gb"), (28, "apple-32gb"))

_FEW_CORES = 4
_LITTLE_RAM = 12 * _GIB

CLASSES = (
    "small-cpu",
    "desktop-cpu",
    "integrated-gpu",
    *(name for _, name in _APPLE),
    *(name for _, name in _CARDS),
)


def class_of(hardware: Hardware, usable: Collection[Vendor]) -> str:
    """The name of the builtin profile for this machine.

    `usable`: whose GPUs llama.cpp was built to use. A GPU that it cannot use does not count.
    """
    gpus = [gpu for gpu in hardware.gpus if gpu.vendor in usable]
    if any(gpu.vendor == "apple" for gpu in gpus):
        return _by_size(_APPLE, hardware.ram)
    if cards := [gpu for gpu in gpus if not gpu.integrated]:
        return _by_size(_CARDS, _together(cards))
    if gpus:
        return "integrated-gpu"
    if hardware.usable_cores <= _FEW_CORES or hardware.ram < _LITTLE_RAM:
        return "small-cpu"
    return "desktop-cpu"


def _together(cards: list[Gpu]) -> int:
    """Memory of the cards of the vendor that has the most: layers are spread over all of them."""
    sums: dict[Vendor, int] = {}
    for card in cards:
        sums[card.vendor] = sums.get(card.vendor, 0) + (card.memory or 0)
    return max(sums.values())


def _by_size(steps: tuple[tuple[float, str], ...], size: int) -> str:
    return [name for least, name in steps if size >= least * _GIB][-1]
