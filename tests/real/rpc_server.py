"""A process that offers its CPU as two devices, as llama.cpp's rpc-server does: `python -m ... PORT`."""

from __future__ import annotations

import ctypes
import sys

from edgespec.llama.ggml import function

_CPU = 0


def serve(port: int) -> None:
    """Serve on loopback with one thread, until the process is ended."""
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    by_type = function("ggml_backend_dev_by_type", pointer, ctypes.c_int)
    start = function(
        "ggml_backend_rpc_start_server",
        None,
        ctypes.c_char_p,
        ctypes.c_char_p,
        size,
        size,
        ctypes.POINTER(pointer),
    )
    start(f"127.0.0.1:{port}".encode(), None, 1, 2, (pointer * 2)(by_type(_CPU), by_type(_CPU)))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
