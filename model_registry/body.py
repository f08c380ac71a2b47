"""The bytes of an answer, as fast as the network gives them.

The client's own iterator hands out 64 KiB at a time, each through four layers, at a cost of half a
fast connection's speed. A plain body of known length is therefore read from the connection's
socket, which the HTTP library offers as the extension `network_stream`, into large blocks. Any
other body goes the ordinary way.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    import httpx2 as httpx

BLOCK = 2 * 1024 * 1024
TICK = 0.25
"""Seconds after which what has come is handed out, even if it is little or nothing."""


def chunks(response: httpx.Response, length: int | None, timeout: float) -> Iterator[memoryview]:
    """The body's pieces; an empty one says that nothing came lately, so that a caller can stop.

    `length` is that of the body, None when it is not known; `timeout` the seconds of silence after
    which it counts as broken. Raises OSError or httpx.TransportError when the connection breaks.
    """
    raw = response.iter_raw()
    connection = _socket(response)
    if length is None or connection is None:
        for piece in raw:
            yield memoryview(piece)
        return
    if length == 0:
        return
    first = next(raw)  # what came along with the headers; after it the library's buffer is empty
    yield memoryview(first)
    yield from _blocks(connection, length - len(first), timeout)


def _blocks(connection: socket.socket, length: int, timeout: float) -> Iterator[memoryview]:
    connection.settimeout(min(TICK, timeout))
    heard = time.monotonic()
    while length:
        block = memoryview(bytearray(min(BLOCK, length)))
        filled, began = 0, time.monotonic()
        failure: OSError | None = None
        while filled < len(block) and time.monotonic() - began < TICK:
            try:
                count = connection.recv_into(block[filled:])
            except OSError as error:
                failure = error
                break
            if count == 0:
                failure = ConnectionError("closed before the end")
                break
            filled += count
            heard = time.monotonic()
        length -= filled
        yield block[:filled]
        patient = isinstance(failure, TimeoutError) and time.monotonic() - heard < timeout
        if failure and not patient:
            raise failure


def _socket(response: httpx.Response) -> socket.socket | None:
    """The socket that the body comes from, unless something has still to be undone to it."""
    headers = response.headers
    stream = response.extensions.get("network_stream")
    if stream is None or response.http_version != "HTTP/1.1":
        return None
    if "Transfer-Encoding" in headers or headers.get("Content-Encoding", "identity") != "identity":
        return None
    if isinstance(stream.get_extra_info("ssl_object"), ssl.SSLObject):
        return None  # encryption inside an encrypted proxy is no layer of the socket
    connection: socket.socket | None = stream.get_extra_info("socket")
    return connection
