"""What llama.cpp can compute on here, and what it was built with.

llama-cpp-python binds no device functions, so they are taken from the libraries that it ships:
`ggml_backend_dev_count/get` and `reg_count/get` from libggml, the rest from libggml-base
(ggml/include/ggml-backend.h; Windows does not look a symbol up in a library's dependencies).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llama_cpp
import psutil
from llama_cpp._ctypes_extensions import load_shared_library

from edgespec.llama.backends import Build, Device, Kind
from edgespec.llama.log import native_log

__all__ = ["Build", "Device", "build", "devices"]

# enum ggml_backend_dev_type; what is missing (4, "meta") only wraps other devices.
_KINDS: dict[int, Kind] = {0: "cpu", 1: "gpu", 2: "integrated", 3: "accelerator"}


def devices() -> tuple[Device, ...]:
    """All of llama.cpp's devices, in its order. With CUDA this takes some memory on each GPU.

    The CPU device calls all memory free, so its numbers are psutil's.
    """
    ggml = _ggml()
    found = []
    for index in range(ggml.dev_count()):
        handle = ggml.dev_get(index)
        kind = _KINDS.get(ggml.dev_type(handle))
        if kind is None:
            continue
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if kind == "cpu":
            memory = psutil.virtual_memory()
            free, total = ctypes.c_size_t(memory.available), ctypes.c_size_t(memory.total)
        elif kind != "accelerator":
            ggml.dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
        name, description = _text(ggml.dev_name(handle)), _text(ggml.dev_description(handle))
        found.append(Device(name, description, kind, free.value, total.value))
    return tuple(found)


@cache
def build() -> Build:
    """The llama.cpp in use; it stays the same as long as the process runs."""
    ggml = _ggml()
    return Build(
        version=llama_cpp.__version__,
        backends=tuple(_text(ggml.reg_name(ggml.reg_get(i))) for i in range(ggml.reg_count())),
        features=_text(llama_cpp.llama_print_system_info()).strip(" |"),
        gpu_offload=bool(llama_cpp.llama_supports_gpu_offload()),
    )


class _Ggml:
    """The functions, typed. Raises AttributeError for a llama.cpp that lacks one."""

    def __init__(self) -> None:
        folder = llama_cpp.llama_cpp._base_path
        ggml, base = (load_shared_library(name, folder) for name in ("ggml", "ggml-base"))
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        sizes = ctypes.POINTER(ctypes.c_size_t)

        def bound(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:  # noqa: ANN401 - ctypes
            return ctypes.CFUNCTYPE(result, *arguments)((f"ggml_{name}", library))

        self.dev_count = bound(ggml, "backend_dev_count", size)
        self.dev_get = bound(ggml, "backend_dev_get", pointer, size)
        self.reg_count = bound(ggml, "backend_reg_count", size)
        self.reg_get = bound(ggml, "backend_reg_get", pointer, size)
        self.reg_name = bound(base, "backend_reg_name", text, pointer)
        self.dev_name = bound(base, "backend_dev_name", text, pointer)
        self.dev_description = bound(base, "backend_dev_description", text, pointer)
        self.dev_type = bound(base, "backend_dev_type", ctypes.c_int, pointer)
        self.dev_memory = bound(base, "backend_dev_memory", None, pointer, sizes, sizes)


@cache
def _ggml() -> _Ggml:
    native_log()  # whatever the backends have to say while they start goes to its file
    llama_cpp.llama_supports_gpu_offload()  # loads the backends where they are libraries of their own
    return _Ggml()


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", errors="replace").strip()
