"""A process that offers its CPU as two devices, as llama.cpp's rpc-server does: `python -m ... PORT`."""

from __future__ import annotations

import ctypes
import os
import sys
import threading

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


def end_with_parent() -> None:
    """Leave when stdin closes: llama.cpp may have ended the tests, and nobody else would end this."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    serve(int(sys.argv[1]))
