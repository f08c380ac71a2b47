"""A stand-in for the model hub: real HTTP on loopback, with faults that wait in a queue.

Models lie in a folder as OWNER/NAME/FILE. `python -m tests.registry.fake_hub --root DIR` prints
its address, then serves until it is killed; `with FakeHub(DIR) as hub` does it in this process.
A second server stands for the network that delivers the bytes (`cdn=True`): another origin.

OWNER/NAME/.repo.json may hold `license`, `gated` ("auto" or "manual"), `private` and `plain`,
the files that the listing gives no digest for.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.registry.hub_server import Call, Fault, Server

__all__ = ["Call", "FakeHub", "Fault"]


class FakeHub:
    """The models of `root`, and what is to go wrong with them.

    `on_file` holds the faults of deliveries, `on_link` those of the hub's own answer for a file when
    the bytes come from elsewhere, `on_api` those of listing and searching.
    """

    def __init__(
        self,
        root: Path,
        *,
        cdn: bool = False,
        token: str = "",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.root = root
        self.cdn = cdn
        self.token = token
        self.on_file: deque[Fault] = deque()
        self.on_link: deque[Fault] = deque()
        self.on_api: deque[Fault] = deque()
        self.always: Fault | None = None
        self.calls: list[Call] = []
        self.closing = threading.Event()
        self._commits: dict[str, set[str]] = {}
        self._digests: dict[tuple[str, int, int], str] = {}
        self._lock = threading.Lock()
        self._servers = [Server(self, "hub", port, tls), Server(self, "cdn", 0, tls)]
        self.url, self.cdn_url = (server.url for server in self._servers)

    def __enter__(self) -> Self:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closing.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def add(self, repo: str, files: dict[str, bytes], **facts: object) -> None:
        """Put files on the hub; `facts` as in `.repo.json`."""
        folder = self.root / repo
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        (folder / ".repo.json").write_text(json.dumps(facts))

    def deliveries(self, name: str = "") -> list[Call]:
        """The requests for bytes of files that have `name` in their path."""
        origin = "cdn" if self.cdn else "hub"
        return [
            call
            for call in self.calls
            if call.origin == origin
            and call.method == "GET"
            and "/api/" not in call.path
            and name in call.path
        ]

    def next_fault(self, queue: deque[Fault]) -> Fault:
        with self._lock:
            return queue.popleft() if queue else self.always or Fault()

    def repo(self, name: str) -> str | None:
        """The repository's own spelling of its name."""
        for info in self.root.glob("*/*"):
            found = info.relative_to(self.root).as_posix()
            if found.casefold() == name.casefold() and info.is_dir():
                return found
        return None

    def facts(self, repo: str) -> dict[str, Any]:
        path = self.root / repo / ".repo.json"
        facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return facts

    def files(self, repo: str) -> Iterator[tuple[str, Path]]:
        folder = self.root / repo
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != ".repo.json":
                yield path.relative_to(folder).as_posix(), path

    def digest(self, path: Path) -> str:
        facts = path.stat()
        key = (str(path), facts.st_size, facts.st_mtime_ns)
        if key not in self._digests:
            with path.open("rb") as file:
                self._digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[key]

    def commit(self, repo: str) -> str:
        """A commit that stands for the present files; older ones stay known."""
        names = "".join(f"{name} {self.digest(path)}\n" for name, path in self.files(repo))
        commit = hashlib.sha1(f"{repo}\n{names}".encode()).hexdigest()
        self._commits.setdefault(repo, set()).add(commit)
        return commit

    def knows(self, repo: str, revision: str) -> bool:
        present = self.commit(repo)
        return revision in ("main", present) or revision in self._commits[repo]


def main() -> None:
    """Serve a folder until killed."""
    parser = argparse.ArgumentParser(description="Serve a folder of models as the hub would.")
    parser.add_argument("--root", type=Path, required=True, help="holds OWNER/NAME/FILE")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--cdn", action="store_true", help="deliver from a second origin")
    parser.add_argument("--token", default="", help="the one that opens gated and private models")
    parser.add_argument("--rate", type=float, help="bytes a second of each delivery")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=lambda text: Fault(**json.loads(text)),
        metavar="JSON",
        help='for one delivery, as {"cut_after": 1000}; may be given several times',
    )
    options = parser.parse_args()
    hub = FakeHub(options.root, cdn=options.cdn, token=options.token, port=options.port)
    hub.on_file.extend(options.fault)
    hub.always = Fault(rate=options.rate) if options.rate else None
    with hub:
        print(hub.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
