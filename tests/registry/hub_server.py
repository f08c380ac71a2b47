"""How the stand-in hub answers one request, or fails to."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from tests.registry.fake_hub import FakeHub

BLOCK = 256 * 1024
HTML = b"<!doctype html><html><title>Sign in to this network</title></html>"


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one answer. Positions count bytes of the file, not of the answer."""

    cut_after: int | None = None
    """Close the connection in order at this position, short of what was promised."""
    reset_after: int | None = None
    """Reset it at this position."""
    stall_after: int | None = None
    """Fall silent at this position."""
    rate: float | None = None
    """Bytes a second."""
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ignore_range: bool = False
    corrupt: int | None = None
    """The position of one byte that is delivered wrong."""
    content: bytes | None = None
    """Deliver this in place of the file, as if the file had changed."""
    html: bool = False
    """Answer 200 with a web page."""
    unsized: bool = False
    """Send the file in chunks, without saying how long it is."""


@dataclass(frozen=True)
class Call:
    """A request that came in."""

    origin: str
    """"hub" or "cdn"."""
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""


class Refused(Exception):  # noqa: N818 - an answer, not a failure of ours
    """The hub says no."""

    def __init__(self, status: int, code: str = "", headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.headers = (headers or {}) | ({"X-Error-Code": code} if code else {})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self, hub: FakeHub, origin: str, port: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self.hub = hub
        self.origin = origin
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_address[1]}"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that left is no error here."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal: the calls are kept in a list."""

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        hub = self.server.hub
        headers = {name.lower(): value for name, value in self.headers.items()}
        hub.calls.append(Call(self.server.origin, self.command, self.path, headers))
        try:
            self._route(urlsplit(self.path))
        except Refused as refused:
            self._answer(refused.status, refused.headers, b"{}")

    def _route(self, url: SplitResult) -> None:
        hub = self.server.hub
        route = unquote(url.path).strip("/")
        if self.server.origin == "cdn":
            self._deliver(hub.root / route, {})
        elif route == "api/models":
            self._search(parse_qs(url.query))
        elif route.startswith("api/models/"):
            self._describe(route.removeprefix("api/models/"))
        elif "/resolve/" in route:
            self._resolve(*route.split("/resolve/", 1))
        else:
            raise Refused(404)

    def _search(self, query: dict[str, list[str]]) -> None:
        hub = self.server.hub
        if self._broken(hub.next_fault(hub.on_api)):
            return
        text, limit = query.get("search", [""])[0], int(query.get("limit", ["100"])[0])
        names = (path.relative_to(hub.root).as_posix() for path in hub.root.glob("*/*"))
        found = sorted(name for name in names if text.casefold() in name.casefold())
        self._json([self._entry(name, position) for position, name in enumerate(found[:limit])])

    def _entry(self, repo: str, position: int) -> dict[str, Any]:
        facts = self.server.hub.facts(repo)
        return {
            "id": repo,
            "modelId": repo,
            "downloads": 1000 - position,
            "gated": facts.get("gated", False),
        }

    def _describe(self, route: str) -> None:
        hub = self.server.hub
        name, _, revision = route.partition("/revision/")
        if self._broken(hub.next_fault(hub.on_api)):
            return
        repo = self._repo(name)
        if revision and not hub.knows(repo, revision):
            raise Refused(404, "RevisionNotFound")
        facts = hub.facts(repo)
        answer = self._entry(repo, 0) | {
            "sha": revision if len(revision) == 40 else hub.commit(repo),
            "cardData": {"license": facts.get("license")},
            "siblings": [
                self._sibling(name, path, plain=name in facts.get("plain", ()))
                for name, path in hub.files(repo)
            ],
        }
        self._json(answer)

    def _sibling(self, name: str, path: Path, *, plain: bool) -> dict[str, Any]:
        digest, size = self.server.hub.digest(path), path.stat().st_size
        lfs = {"sha256": digest, "size": size, "pointerSize": 130}
        entry = {"rfilename": name, "size": size, "blobId": digest[:40]}
        return entry if plain else entry | {"lfs": lfs}

    def _resolve(self, name: str, place: str) -> None:
        hub = self.server.hub
        revision, _, wanted = place.partition("/")
        repo = self._repo(name)
        if hub.facts(repo).get("gated") and not self._trusted():
            sent = self.headers.get("Authorization")
            raise Refused(403 if sent else 401, "GatedRepo")
        if not hub.knows(repo, revision):
            raise Refused(404, "RevisionNotFound")
        path = dict(hub.files(repo)).get(wanted)
        headers = {"X-Repo-Commit": revision if len(revision) == 40 else hub.commit(repo)}
        if path is None:
            raise Refused(404, "EntryNotFound", headers)
        headers["X-Linked-Etag"] = f'"{hub.digest(path)}"'
        headers["X-Linked-Size"] = str(path.stat().st_size)
        if not hub.cdn:
            self._deliver(path, headers)
            return
        if self._broken(hub.next_fault(hub.on_link)):
            return
        place = quote(path.relative_to(hub.root).as_posix())
        headers["Location"] = f"{hub.cdn_url}/{place}?Signature=secret-signature"
        self._answer(302, headers, b"")

    def _deliver(self, path: Path, headers: dict[str, str]) -> None:
        hub = self.server.hub
        fault = hub.next_fault(hub.on_file) if self.command == "GET" else Fault()
        if not path.is_file():
            raise Refused(404, "EntryNotFound", headers)
        if self._broken(fault):
            return
        size = path.stat().st_size if fault.content is None else len(fault.content)
        start, end = 0, size
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes=") and not fault.ignore_range:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(size, int(last) + 1) if last else size
            if start >= size:
                raise Refused(416, "", headers | {"Content-Range": f"bytes */{size}"})
            headers = headers | {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
        self.send_response(206 if "Content-Range" in headers else 200)
        length = {"Content-Length": str(end - start)}
        if fault.unsized:
            length = {"Connection": "close"}
            self.close_connection = True
        for header, value in (headers | length | fault.headers).items():
            self.send_header(header, value)
        self.end_headers()
        if self.command == "GET":
            self._stream(path, fault, start, end)

    def _stream(self, path: Path, fault: Fault, start: int, end: int) -> None:
        stops = [fault.cut_after, fault.reset_after, fault.stall_after]
        stop = min([max(start, point) for point in stops if point is not None] + [end])
        with path.open("rb") as file:
            file.seek(start)
            position = start
            while position < stop and not self.server.hub.closing.is_set():
                block = BLOCK if fault.rate is None else max(1, int(fault.rate * 0.02))
                length = min(block, stop - position)
                data = file.read(length)
                if fault.content is not None:
                    data = fault.content[position : position + length]
                if fault.corrupt is not None and position <= fault.corrupt < position + length:
                    wrong = bytearray(data)
                    wrong[fault.corrupt - position] ^= 1
                    data = bytes(wrong)
                self.wfile.write(data)
                position += length
                if fault.rate is not None:
                    time.sleep(length / fault.rate)
        if stop < end:
            self._break_off(fault, stop)

    def _break_off(self, fault: Fault, position: int) -> None:
        self.close_connection = True
        if fault.stall_after is not None and max(fault.stall_after, position) == position:
            self.server.hub.closing.wait(30)
        if fault.reset_after is not None and max(fault.reset_after, position) == position:
            time.sleep(0.05)  # what was written arrives first
            now = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            self.connection.close()

    def _broken(self, fault: Fault) -> bool:
        """Answer with the fault's status or page, if it has one."""
        if fault.html:
            self._answer(200, {"Content-Type": "text/html"} | fault.headers, HTML)
        elif fault.status is not None:
            self._answer(fault.status, fault.headers, b"broken")
        return fault.html or fault.status is not None

    def _repo(self, name: str) -> str:
        hub = self.server.hub
        repo = hub.repo(name)
        if repo is None or (hub.facts(repo).get("private") and not self._trusted()):
            raise Refused(404 if self._trusted() else 401, "RepoNotFound")
        return repo

    def _trusted(self) -> bool:
        token = self.server.hub.token
        return bool(token) and self.headers.get("Authorization") == f"Bearer {token}"

    def _json(self, answer: object) -> None:
        self._answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
