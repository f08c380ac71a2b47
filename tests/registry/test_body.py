"""When a body may be read from the socket, and when only through the client."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from model_registry import body


class Pipe:
    """An answer of six bytes: three come with the headers, three from the socket."""

    def __init__(self, encrypted: object = None) -> None:
        self.encrypted = encrypted
        self.rest = b"def"

    def get_extra_info(self, name: str) -> object:
        return self if name == "socket" else self.encrypted

    def settimeout(self, seconds: float) -> None:
        assert seconds <= body.TICK

    def recv_into(self, block: memoryview) -> int:
        count = len(self.rest)
        block[:count] = self.rest
        return count


class Pieces(httpx2.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield b"abc"
        yield b"DEF"


def answer(pipe: Pipe | None, version: bytes = b"HTTP/1.1", **headers: str) -> httpx2.Response:
    extensions: dict[str, Any] = {"http_version": version}
    if pipe:
        extensions["network_stream"] = pipe

    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    request = httpx2.Request("GET", "https://hub.example")
    return httpx2.Response(
        200, headers=named, stream=Pieces(), extensions=extensions, request=request
    )


def read(response: httpx2.Response, length: int | None = 6) -> bytes:
    return b"".join(body.chunks(response, length, 10))


def tunnel() -> ssl.SSLObject:
    return ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), False, "x")


def test_a_plain_body_comes_from_the_socket() -> None:
    assert read(answer(Pipe())) == b"abcdef"
    assert read(answer(Pipe(encrypted=object()), Content_Encoding="identity")) == b"abcdef"


@pytest.mark.parametrize(
    "response",
    [
        answer(None),
        answer(Pipe(encrypted=tunnel())),
        answer(Pipe(), version=b"HTTP/2"),
        answer(Pipe(), Content_Encoding="gzip"),
        answer(Pipe(), Transfer_Encoding="chunked"),
    ],
    ids=["no socket", "encrypted twice", "shared connection", "compressed", "in chunks"],
)
def test_any_other_comes_through_the_client(response: httpx2.Response) -> None:
    assert read(response) == b"abcDEF"


def test_one_of_unknown_length_comes_through_the_client() -> None:
    assert read(answer(Pipe()), None) == b"abcDEF"
