"""One small model on the stand-in hub, and reading it."""

from __future__ import annotations

from model_registry.hub import Hub, RemoteFile
from tests.registry.fake_hub import FakeHub

REPO = "Owner/Model-GGUF"
CONTENT = bytes(range(256)) * 40


def hub_at(fake: FakeHub, delays: list[float] | None = None) -> Hub:
    return Hub(fake.url, delay=(delays if delays is not None else []).append)


def one_file(fake: FakeHub, **facts: object) -> RemoteFile:
    fake.add(REPO, {"model-Q8_0.gguf": CONTENT}, **facts)
    return hub_at(fake).listing(REPO).files[0]


def read(hub: Hub, file: RemoteFile, start: int = 0) -> bytes:
    with hub.open(file, start) as stream:
        assert stream.start == start
        return b"".join(stream.chunks)
