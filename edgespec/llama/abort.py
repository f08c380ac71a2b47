"""A switch that stops a llama.cpp computation from another thread, also in the midst of a prefill.

llama.cpp asks its abort callback before every node of the graph, a thousand times a token. A Python
callback would take the interpreter lock each time and cost more than the arithmetic of a small model.
The C library's `strlen` already is a function that answers "no" (0) for an empty string and "yes" for
any other, so it is the callback, and the string's first byte is the switch.
"""

from __future__ import annotations

import ctypes

import llama_cpp


def _strlen() -> ctypes.c_void_p:
    library = ctypes.CDLL("msvcrt" if hasattr(ctypes, "WinDLL") else None)
    return ctypes.cast(library.strlen, ctypes.c_void_p)


class AbortSwitch:
    """Off when made. One for each context; `on` and `off` may be called from any thread."""

    def __init__(self) -> None:
        self._text = ctypes.create_string_buffer(2)
        self.callback = ctypes.cast(_strlen().value or 0, llama_cpp.ggml_abort_callback)
        self.data = ctypes.c_void_p(ctypes.addressof(self._text))

    def on(self) -> None:
        """Stop what is being computed, and every later computation until `off`."""
        self._text[0] = b"1"

    def off(self) -> None:
        """Let computations run."""
        self._text[0] = b"\0"

    @property
    def is_on(self) -> bool:
        """Whether computations are stopped."""
        return self._text[0] != b"\0"
