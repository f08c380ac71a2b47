"""Devices of other machines, by llama.cpp's RPC backend.

llama.cpp ends the whole process when it cannot reach a server, when something else answers there, and
when a server goes away later (ggml/src/ggml-rpc/ggml-rpc.cpp: GGML_ABORT). The first two are found out
here before it tries, with a greeting of our own; the third cannot be caught.
"""

from __future__ import annotations

import ctypes
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Sequence

from edgespec.errors import UsageError
from edgespec.llama.ggml import add_remote, function

_MAJOR, _MINOR = 7, 0
"""RPC_PROTO_MAJOR_VERSION and _MINOR_VERSION (ggml/include/ggml-rpc.h)."""
_HELLO = 14
_CAPABILITIES = 24
_PATIENCE = 5.0
"""Seconds."""
_START = "Start one there: rpc-server of the same llama.cpp, or name another."

_endpoints: dict[str, str] = {}
"""Where devices are, by their names."""
_in_use: Counter[str] = Counter()
"""Endpoints that weights of this process lie on. A server serves one client at a time, so that a
greeting would wait for ourselves."""


def available() -> bool:
    """Whether this build of llama.cpp can use devices of other machines."""
    return function("ggml_backend_rpc_add_server", ctypes.c_void_p, ctypes.c_char_p) is not None


def connect(endpoints: Sequence[str]) -> list[str]:
    """Know the devices behind `HOST:PORT`s; their names.

    Raises UsageError.
    """
    if endpoints and not available():
        raise UsageError(
            "This build of llama.cpp cannot use devices of other machines.",
            "Build it with CMAKE_ARGS=-DGGML_RPC=on.",
        )
    for endpoint in endpoints:
        greet(endpoint)
    names = []
    for endpoint in endpoints:
        add = function("ggml_backend_rpc_add_server", ctypes.c_void_p, ctypes.c_char_p)
        registry = add(endpoint.encode())
        if not registry:
            raise UsageError(f"The server at {endpoint} offers no device.", _START)
        found = add_remote(_devices(registry))
        _endpoints.update(dict.fromkeys(found, endpoint))
        names += found
    return names


def hold(names: Iterable[str]) -> None:
    """Weights are on these devices, of which some may be behind servers."""
    _in_use.update(_endpoints[name] for name in names if name in _endpoints)


def release(names: Iterable[str]) -> None:
    """Weights that were on these devices are gone."""
    _in_use.subtract(_endpoints[name] for name in names if name in _endpoints)


def greet(endpoint: str) -> None:
    """See that a server of the right version answers. Raises UsageError."""
    host, port = _address(endpoint)
    if _in_use[endpoint] > 0:
        return
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE) as connection:
            request = struct.pack(f"<BQ{_CAPABILITIES}x", _HELLO, _CAPABILITIES)
            connection.sendall(request)
            answer = _receive(connection, 8 + 4 + _CAPABILITIES)
    except TimeoutError as error:
        raise UsageError(
            f"The server at {endpoint} does not answer within {_PATIENCE:.0f} seconds.",
            "It serves one program at a time: another may be using it.",
        ) from error
    except OSError as error:
        raise UsageError(
            f"There is no server at {endpoint} ({error.strerror or error}).", _START
        ) from error
    length, major, minor = struct.unpack_from("<QBB", answer.ljust(10, b"\0"))
    if length != 4 + _CAPABILITIES:
        raise UsageError(f"What answers at {endpoint} is no RPC server of llama.cpp.", _START)
    if major != _MAJOR or minor > _MINOR:
        raise UsageError(
            f"The server at {endpoint} speaks version {major}.{minor} of the protocol, this llama.cpp "
            f"version {_MAJOR}.{_MINOR}.",
            "Use the same llama.cpp on both machines.",
        )


def _address(endpoint: str) -> tuple[str, int]:
    match = re.fullmatch(r"([\w.-]+):(\d{1,5})", endpoint)
    if not match or not 0 < int(match[2]) < 65_536:
        raise UsageError(
            f"{endpoint!r} names no server.", "Write HOST:PORT, as in 127.0.0.1:50052."
        )
    return match[1], int(match[2])


def _receive(connection: socket.socket, count: int) -> bytes:
    """Up to `count` bytes; fewer when the other side closes."""
    data = b""
    while len(data) < count and (more := connection.recv(count - len(data))):
        data += more
    return data


def _devices(registry: int) -> list[int]:
    count = function("ggml_backend_reg_dev_count", ctypes.c_size_t, ctypes.c_void_p)(registry)
    get = function("ggml_backend_reg_dev_get", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return [get(registry, number) for number in range(count)]
