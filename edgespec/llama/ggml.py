"""ggml's devices by name: the memory they have, and their pointers for llama.cpp.

llama-cpp-python binds llama.cpp, not ggml beneath it, so the few functions that are needed are bound
here (ggml/include/ggml-backend.h). They lie in libggml, libggml-base or libggml-rpc; Windows looks a
symbol up in the library that is named only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import llama_cpp
from llama_cpp._ctypes_extensions import load_shared_library

from edgespec.llama.log import native_log
from edgespec.memory import Device, Kind

_KINDS: dict[int, Kind] = {0: "cpu", 1: "gpu", 2: "integrated", 3: "accelerator"}
"""enum ggml_backend_dev_type; what is missing only wraps other devices."""

_remote: dict[str, int] = {}
"""Devices behind servers, by name."""
_seen: dict[str, Device] = {}
"""Devices behind servers, as they were when last asked."""


@cache
def _library(name: str) -> ctypes.CDLL | None:
    try:
        library: ctypes.CDLL = load_shared_library(name, llama_cpp.llama_cpp._base_path)
    except FileNotFoundError:
        return None
    return library


@cache
def function(name: str, result: Any, *arguments: Any) -> Any:  # noqa: ANN401 - ctypes
    """A function of ggml; None where this build lacks it."""
    native_log()  # before anything native runs: its lines belong into the file
    llama_cpp.llama_supports_gpu_offload()  # loads backends that are libraries of their own
    for library in filter(None, map(_library, ("ggml", "ggml-base", "ggml-rpc"))):
        if hasattr(library, name):
            return ctypes.CFUNCTYPE(result, *arguments)((name, library))
    return None


def local() -> list[Device]:
    """Devices of this machine, the CPU among them, with the memory they have now.

    With CUDA, asking takes some memory on each GPU.
    """
    return [describe(name) for name in _local()]


def describe(name: str) -> Device:
    """A device, with the memory it has now.

    One behind a server is asked over the network, and waits for what it computes; llama.cpp ends the
    process when the server is gone.
    """
    device = _describe(name, _pointer(name))
    if device.remote:
        _seen[name] = device
    return device


def glance(name: str) -> Device:
    """A device as `describe` has it; one behind a server as it was when last asked."""
    return _seen[name] if name in _seen else describe(name)


def add_remote(pointers: Sequence[int]) -> list[str]:
    """Let devices behind a server be named; their names.

    ggml's own registry is left alone: llama.cpp would use, and ask, all that is in it.
    """
    names = [_text("name", pointer) for pointer in pointers]
    _remote.update(zip(names, pointers, strict=True))
    return names


def device_array(names: Sequence[str]) -> ctypes.Array[ctypes.c_void_p]:
    """NULL-terminated, as `llama_model_params.devices` wants it. Keep it while llama.cpp loads."""
    return (ctypes.c_void_p * (len(names) + 1))(*map(_pointer, names), None)


def _local() -> dict[str, int]:
    count = function("ggml_backend_dev_count", ctypes.c_size_t)()
    get = function("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
    found = {_text("name", pointer): pointer for pointer in map(get, range(count))}
    return {name: pointer for name, pointer in found.items() if _kind(pointer) in _KINDS}


def _pointer(name: str) -> int:
    return _remote[name] if name in _remote else _local()[name]


def _kind(pointer: int) -> int:
    kind: int = function("ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)(pointer)
    return kind


def _describe(name: str, pointer: int) -> Device:
    size = ctypes.POINTER(ctypes.c_size_t)
    ask = function("ggml_backend_dev_memory", None, ctypes.c_void_p, size, size)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ask(pointer, ctypes.byref(free), ctypes.byref(total))
    kind = _KINDS[_kind(pointer)]
    return Device(
        name,
        kind,
        free.value,
        total.value,
        description=_text("description", pointer),
        # Metal gives the working set that it recommends of the memory that CPU and GPU share.
        shares_ram=kind == "integrated" or name.startswith("MTL"),
        remote=name in _remote,
    )


def _text(what: str, pointer: int) -> str:
    ask = function(f"ggml_backend_dev_{what}", ctypes.c_char_p, ctypes.c_void_p)
    text: bytes = ask(pointer) or b""
    return text.decode("utf-8", errors="replace").strip()
