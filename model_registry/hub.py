"""The model hub: what it lists, and the bytes of its files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from model_registry.hub_problem import HubProblem, no_hub, offline, switched_off

if TYPE_CHECKING:
    from collections.abc import Mapping

    from huggingface_hub import ModelInfo

    from model_registry.hub_client import Client

__all__ = ["Found", "Hub", "HubProblem", "Listing", "RemoteFile", "Stream"]

T = TypeVar("T")

_DEFAULT = "https://huggingface.co"
_TRIES = 3
_LONGEST_WAIT = 10.0
"""Seconds; a hub that wants a longer pause before it lists is not waited for."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a model repository, at a commit."""

    repo: str
    commit: str
    """40 hexadecimal digits."""
    path: str
    """Inside the repository, with `/`."""
    size: int
    sha256: str | None
    """None for a file that the hub keeps in git itself; files of models are too large for that."""


@dataclass(frozen=True)
class Listing:
    """A model repository at a commit."""

    repo: str
    """As the hub spells it."""
    commit: str
    files: tuple[RemoteFile, ...]
    gated: bool
    licence: str | None


@dataclass(frozen=True)
class Found:
    """A repository that a search came upon."""

    repo: str
    downloads: int
    gated: bool


@dataclass(frozen=True)
class Stream:
    """A file's bytes on their way."""

    start: int
    """Where they begin: 0 if the server does not know how to go on from a position."""
    chunks: Iterator[memoryview]
    """An empty piece says that nothing came lately. Raises HubProblem if the connection breaks."""


class Hub:
    """The hub at `endpoint`, by default where HF_ENDPOINT says.

    `timeout`: seconds of silence, by default what HF_HUB_DOWNLOAD_TIMEOUT says, else 10. `delay`
    waits between tries. Every method but `cached` raises HubProblem.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        timeout: float | None = None,
        delay: Callable[[float], object] = time.sleep,
    ) -> None:
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or _DEFAULT).rstrip("/")
        self._timeout = timeout
        self._delay = delay

    def listing(self, repo: str, revision: str | None = None) -> Listing:
        """The files of `repo` at `revision` (a branch, tag or commit; the main branch if None)."""

        def ask() -> Listing:
            return _listing(self._client.info(repo, revision))

        return self._patiently(repo, ask)

    def search(self, text: str, limit: int = 20) -> list[Found]:
        """Repositories with GGUF files whose name holds `text`, the most downloaded first."""

        def ask() -> list[Found]:
            return [
                Found(str(one["id"]), int(one.get("downloads") or 0), bool(one.get("gated")))
                for one in self._client.search(text, limit)
            ]

        return self._patiently("", ask)

    def head_bytes(self, file: RemoteFile, length: int) -> bytes:
        """The first `length` bytes of a file, or all of it if it is shorter; not verified."""

        def ask() -> bytes:
            head = bytearray()
            with self.open(file, stop=length) as stream:
                for chunk in stream.chunks:
                    head += chunk
                    if len(head) >= length:
                        break
            return bytes(head[:length])

        return self._patiently(file.repo, ask)

    def cached(self, file: RemoteFile) -> Path | None:
        """Where the hub client or llama.cpp keeps this file at this commit; not verified."""
        for folder in (None, os.environ.get("LLAMA_CACHE") or None):
            found = self._client.cached(file.repo, file.commit, file.path, folder)
            if found is not None and os.path.getsize(found) == file.size:
                return Path(found)
        return None

    @contextmanager
    def open(
        self, file: RemoteFile, start: int = 0, *, stop: int | None = None
    ) -> Iterator[Stream]:
        """The bytes of a file from `start` on, up to `stop` if the server knows how to.

        The hub is asked anew each time, since the addresses of the delivering servers expire.
        """
        last = "" if stop is None else max(min(stop, file.size) - 1, 0)
        wanted = f"bytes={start}-{last}" if start or stop is not None else ""
        with self._asking(file.repo, file.path):
            response = self._client.get(file.repo, file.commit, file.path, wanted)
        try:
            self._client.check(response, file.repo, file.path)
            first = self._first(response.status_code, response.headers, file)
            yield Stream(first, self._client.chunks(response))
        finally:
            response.close()

    def _first(self, status: int, headers: Mapping[str, str], file: RemoteFile) -> int:
        """The position that an answer begins at; refuses one that cannot be of this file."""
        first, total = 0, headers.get("Content-Length", "*")
        if status == 206:
            given = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", ""))
            first, total = (int(given[1]), given[2]) if given else (0, "")
        if headers.get("Content-Type", "").lower().startswith("text/html"):
            raise no_hub(self.endpoint)
        if total not in ("*", str(file.size)):
            raise HubProblem(
                "server",
                f"The hub sends something else for {file.path} than what it lists.",
                "Try again later.",
                again=True,
            )
        return first

    def _patiently(self, repo: str, ask: Callable[[], T]) -> T:
        """Ask again a little later if that may help; not when there is no network at all."""
        for attempt in range(_TRIES):
            try:
                with self._asking(repo):
                    return ask()
            except HubProblem as problem:
                wait = max(float(2**attempt), problem.wait or 0.0)
                helps = problem.again and problem.reached and wait <= _LONGEST_WAIT
                if not helps or attempt == _TRIES - 1:
                    raise
                self._delay(wait)
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _asking(self, repo: str, path: str = "") -> Iterator[None]:
        if switched_off():
            raise offline()
        with self._client.translated(repo, path):
            yield

    @cached_property
    def _client(self) -> Client:
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when it is imported
        from model_registry.hub_client import Client  # noqa: PLC0415 - slow to import

        return Client(self.endpoint, self._timeout)


def _listing(info: ModelInfo) -> Listing:
    """Raises ValueError if the answer cannot be the hub's."""
    commit = info.sha or ""
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise ValueError("no commit")
    files = []
    for one in info.siblings or ():
        digest = one.lfs.sha256 if one.lfs else None
        if digest is not None and not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise ValueError("no digest")
        files.append(RemoteFile(info.id, commit, one.rfilename, int(one.size or 0), digest))
    card = info.card_data
    licence = card.get("license") if card else None
    if card and licence == "other":
        licence = card.get("license_name") or licence
    known = str(licence) if licence else None
    return Listing(info.id, commit, tuple(files), bool(info.gated), known)
