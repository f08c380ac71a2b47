"""llama.cpp's log lines go to a file, and the last ones are kept: they hold the reason of a failure.

Lines at load also hold the only statement of the sizes of KV cache and compute buffers
(`llama_get_memory_breakdown` returns a C++ map, which cannot be bound).
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import llama_cpp
from platformdirs import user_log_path

from edgespec.memory import Share

# enum ggml_log_level (ggml/include/ggml.h)
_DEBUG, _ERROR, _CONTINUE = 1, 4, 5


_BUFFER = re.compile(
    r"(?P<name>\S+)\s+(?:DSV4 \S+ )?(?P<kind>model|KV|RS|state|compute|output)"
    r" +buffer size\s*=\s*(?P<mib>[\d.]+) MiB"
)
_PARTS = {
    "model": "weights",
    "KV": "kv_cache",
    "RS": "kv_cache",
    "state": "kv_cache",
    "compute": "compute",
    "output": "output",
}


def _device(buffer: str) -> str:
    """The device whose memory a buffer takes, by ggml's name of the buffer.

    `CPU_REPACK`, `CPU_Mapped` and `CUDA_Host` are RAM; `MTL0_Private` and `RPC0[host:port]` are not.
    """
    if buffer.startswith("CPU") or buffer.endswith("_Host") or buffer == "AMX":
        return "CPU"
    return re.split(r"\[|_(?:Private|Mapped|Split)", buffer)[0]


@dataclass(frozen=True, slots=True)
class Buffers:
    """Bytes that llama.cpp said it allocated for one model or context, over all devices."""

    weights: int = 0
    kv_cache: int = 0
    compute: int = 0
    output: int = 0
    shares: tuple[Share, ...] = ()
    """The same by device."""


class NativeLog:
    """Receives every line of llama.cpp and ggml in this process."""

    def __init__(self, path: Path) -> None:
        """Append to `path`; where that cannot be written the lines are only kept in memory."""
        self.path = path
        self.recent: deque[str] = deque(maxlen=4000)
        self._errors: deque[str] = deque(maxlen=100)
        self._file: TextIO | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8", errors="replace")
        except OSError:
            self._file = None
        # ctypes keeps no reference: without this attribute the callback would be freed while in use.
        self._callback = llama_cpp.llama_log_callback(self._receive)
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _receive(self, level: int, text: bytes, _data: object) -> None:
        line = text.decode("utf-8", errors="replace")
        if level == _CONTINUE and self.recent:
            self.recent[-1] += line
        else:
            self.recent.append(line)
            if level == _ERROR:
                self._errors.append(line)
        if self._file is not None and level != _DEBUG:
            self._file.write(line)
            self._file.flush()

    def mark(self) -> None:
        """Forget the lines so far; `buffers` and `reason` look at later ones only."""
        self.recent.clear()
        self._errors.clear()

    def buffers(self) -> Buffers:
        """What the lines since `mark` say was allocated."""
        sizes: Counter[tuple[str, str]] = Counter()
        for line in self.recent:
            if found := _BUFFER.search(line):
                size = round(float(found["mib"]) * 2**20)
                sizes[_device(found["name"]), _PARTS[found["kind"]]] += size
        devices = dict.fromkeys(device for device, _ in sizes)
        return Buffers(
            **{part: sum(sizes[device, part] for device in devices) for part in _PARTS.values()},
            shares=tuple(
                Share(
                    device,
                    weights=sizes[device, "weights"],
                    kv_cache=sizes[device, "kv_cache"],
                    compute=sizes[device, "compute"] + sizes[device, "output"],
                )
                for device in devices
            ),
        )

    def reason(self) -> str:
        """The first error since `mark`, without the function's name; empty when there was none."""
        first = " ".join(self._errors[0].split()) if self._errors else ""
        return re.sub(r"^\w+:\s*", "", first)


_log: NativeLog | None = None


def native_log() -> NativeLog:
    """The log of this process, set up at the first call, before anything native is loaded."""
    global _log  # noqa: PLW0603 - llama.cpp has one log callback a process, so there is one receiver
    if _log is None:
        _log = NativeLog(user_log_path("edgespec", appauthor=False) / "native.log")
        llama_cpp.llama_backend_init()
    return _log
