"""One hub, one pair of folders, and a transfer between them."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from model_registry.hub import Hub, RemoteFile
from model_registry.problem import ModelFileProblem
from model_registry.transfer import FetchedFile, Progress, fetch, part_name
from tests.registry.fake_hub import FakeHub, Fault

REPO = "Owner/Model-GGUF"
NAME = "model-Q8_0.gguf"
CONTENT = random.Random(0).randbytes(600_000)


class Bench:
    """One hub, one pair of folders, and what a transfer said."""

    def __init__(self, fake: FakeHub, tmp_path: Path) -> None:
        self.fake = fake
        self.parts, self.dest = tmp_path / "partial", tmp_path / "files"
        self.hub = Hub(fake.url)
        self.delays: list[float] = []
        self.said: list[Progress] = []
        self.cancelled = threading.Event()
        self.free: Callable[[Path], int] = lambda folder: 10**12

    def put(self, files: dict[str, bytes] | None = None, **facts: object) -> list[RemoteFile]:
        self.fake.add(REPO, files or {NAME: CONTENT}, **facts)
        return list(self.hub.listing(REPO).files)

    def queue(self, *faults: Fault) -> None:
        self.fake.on_file.extend(faults)
        if any(fault.stall_after is not None for fault in faults):
            self.hub = Hub(self.fake.url, timeout=0.5)

    def fetch(
        self, files: list[RemoteFile], on_progress: Callable[[Progress], None] | None = None
    ) -> dict[RemoteFile, FetchedFile]:
        return fetch(
            self.hub,
            files,
            self.parts,
            self.dest,
            on_progress=on_progress or self.said.append,
            cancelled=self.cancelled,
            delay=self.delays.append,
            free_space=self.free,
        )

    def fails(self, files: list[RemoteFile]) -> ModelFileProblem:
        with pytest.raises(ModelFileProblem) as caught:
            self.fetch(files)
        assert caught.value.message
        assert caught.value.hint
        assert not list(self.dest.iterdir())
        return caught.value

    def part(self, file: RemoteFile) -> Path:
        self.parts.mkdir(exist_ok=True)
        return self.parts / part_name(file)

    def ranges(self) -> list[str | None]:
        return [call.headers.get("range") for call in self.fake.deliveries()]

    def check(self, got: dict[RemoteFile, FetchedFile], contents: dict[str, bytes]) -> None:
        assert {file.path for file in got} == set(contents)
        for file, fetched in got.items():
            assert fetched.path == self.dest / Path(file.path).name
            assert fetched.path.read_bytes() == contents[file.path]
            assert fetched.sha256 == hashlib.sha256(contents[file.path]).hexdigest()
        assert len(list(self.dest.iterdir())) == len(got)
        assert not list(self.parts.iterdir())
