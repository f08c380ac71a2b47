"""Made-up models and machines with the sizes of real ones, for the memory plan."""

from __future__ import annotations

from edgespec.memory import MIB, Device
from edgespec.memory_plan import Machine
from model_registry.shape import Shape

GIB = 1 << 30


def model(
    name: str,
    size: float,
    *,
    layers: int,
    width: int,
    inner: int,
    kv: int,
    vocabulary: int = 128_256,
    tied: bool = False,
    quantisable: bool = True,
    context: int | None = 131_072,
) -> Shape:
    """`size` in GiB without the embeddings, `kv` the numbers that a layer keeps as keys of a token."""
    embeddings = vocabulary * width * 9 // 16  # Q4_K
    return Shape(
        name=name,
        layers=(int(size * GIB) // layers,) * layers,
        input=embeddings,
        output=width * 4 if tied else vocabulary * width * 13 // 16,
        copy=embeddings if tied else 0,
        keys=(kv,) * layers,
        values=(kv,) * layers,
        state=0,
        quantisable=quantisable,
        width=width,
        inner=inner,
        vocabulary=vocabulary,
        windows=False,
        context=context,
    )


BIG = model("big-8b", 3.9, layers=32, width=4096, inner=14_336, kv=1024)
"""Like an 8B model as Q4_K_M: 4.6 GiB, 128 KiB of cache a token."""
SMALL = model("small-1b", 0.55, layers=16, width=2048, inner=8192, kv=512, tied=True)
"""Like a 1B model as Q4_K_M."""


def machine(*vram: float, ram: float = 16, free: float | None = None) -> Machine:
    """GiB of each GPU, all free; of RAM, of which `free` is free."""
    memory = Device("CPU", "cpu", int((ram * 0.75 if free is None else free) * GIB), int(ram * GIB))
    gpus = [
        Device(f"GPU{number}", "gpu", int(size * GIB), int(size * GIB))
        for number, size in enumerate(vram)
    ]
    return Machine(memory, tuple(gpus))


def apple(ram: float, free: float) -> Machine:
    """Unified memory: Metal recommends two thirds of it for the GPU."""
    working_set = int(ram * GIB * 2 / 3)
    metal = Device("MTL0", "gpu", working_set, working_set, shares_ram=True)
    return Machine(Device("CPU", "cpu", int(free * GIB), int(ram * GIB)), (metal,))


__all__ = ["BIG", "GIB", "MIB", "SMALL", "apple", "machine", "model"]
