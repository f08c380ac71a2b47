"""What llama.cpp can compute on here, and what it was built with."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache

import llama_cpp

from edgespec.llama import ggml
from edgespec.llama.backends import Build
from edgespec.memory import Device
from profiles.ram import ram

__all__ = ["Build", "build", "devices"]


def devices() -> tuple[Device, ...]:
    """All of llama.cpp's devices, in its order. With CUDA this takes some memory on each GPU.

    The CPU device calls all memory free, so its numbers are the operating system's.
    """
    memory = ram()
    own = {"cpu": (memory.available, memory.total), "accelerator": (0, 0)}
    sizes = ((one, *own.get(one.kind, (one.free, one.total))) for one in ggml.local())
    return tuple(replace(one, free=free, total=total) for one, free, total in sizes)


@cache
def build() -> Build:
    """The llama.cpp in use; it stays the same as long as the process runs."""
    count = ggml.function("ggml_backend_reg_count", ctypes.c_size_t)
    get = ggml.function("ggml_backend_reg_get", ctypes.c_void_p, ctypes.c_size_t)
    name = ggml.function("ggml_backend_reg_name", ctypes.c_char_p, ctypes.c_void_p)
    return Build(
        version=llama_cpp.__version__,
        backends=tuple(name(get(i)).decode("utf-8", errors="replace") for i in range(count())),
        features=llama_cpp.llama_print_system_info()
        .decode("utf-8", errors="replace")
        .strip(" |\n"),
        gpu_offload=bool(llama_cpp.llama_supports_gpu_offload()),
    )
