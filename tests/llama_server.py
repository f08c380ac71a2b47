"""A stand-in for llama-server: replies as build b1-0c1e570 gave them, cut to what tells one apart.

It answers `/completion` with a text of its own, as quickly as it is told to say it was.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HEALTH = {"status": "ok"}
LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
NOT_FOUND = {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}
NO_KEY = {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
PROPS = {
    "default_generation_settings": {
        "params": {"seed": 4294967295, "temperature": 0.800000011920929, "top_k": 40},
        "n_ctx": 2048,
    },
    "total_slots": 1,
    "model_alias": "models/SmolLM2-135M-Instruct.Q4_1.gguf",
    "model_ftype": "Q4_1",
    "model_path": "models/SmolLM2-135M-Instruct.Q4_1.gguf",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "build_info": "b1-0c1e570",
    "is_sleeping": False,
}
META = {
    "vocab_type": 2,
    "n_vocab": 49152,
    "n_ctx": 2048,
    "n_ctx_train": 8192,
    "n_embd": 576,
    "n_params": 134515008,
    "size": 96576768,
}
ENDED = {
    "index": 0,
    "content": "Yes.",
    "tokens": [10539, 30, 2],
    "id_slot": 0,
    "stop": True,
    "model": "models/SmolLM2-135M-Instruct.Q4_1.gguf",
    "tokens_predicted": 3,
    "tokens_evaluated": 13,
    "prompt": "<|im_start|>user\nSay only yes.<|im_end|>\n<|im_start|>assistant\n",
    "has_new_line": False,
    "truncated": False,
    "stop_type": "eos",
    "stopping_word": "",
    "tokens_cached": 15,
    "timings": {
        "cache_n": 0,
        "prompt_n": 13,
        "prompt_ms": 346.934,
        "prompt_per_token_ms": 26.687230769230773,
        "prompt_per_second": 37.47110401401995,
        "predicted_n": 3,
        "predicted_ms": 86.886,
        "predicted_per_token_ms": 43.443,
        "predicted_per_second": 23.01866813986143,
    },
}
"""What it said to a prompt whose answer ended by itself."""

Reply = tuple[int, object]


class StandIn:
    """Replies by path; change them to make it another server."""

    def __init__(self) -> None:
        self.url = ""
        self.replies: dict[str, Reply | Callable[[dict[str, Any]], Reply]] = {
            "/health": (200, HEALTH),
            "/props": (200, PROPS),
            "/v1/models": (200, models()),
            "/completion": (200, ENDED),
        }
        self.asked: list[tuple[str, dict[str, Any], str | None]] = []
        """Path, body and key of every request."""

    def reply(self, path: str, body: dict[str, Any], key: str | None) -> Reply:
        self.asked.append((path, body, key))
        found = self.replies.get(path, (404, NOT_FOUND))
        return found(body) if callable(found) else found


def models(**changes: int) -> dict[str, object]:
    """What `/v1/models` says, with other figures of the model."""
    return {"object": "list", "data": [{"object": "model", "meta": {**META, **changes}}]}


def props(context: int) -> dict[str, object]:
    """What `/props` says with another context."""
    return {**PROPS, "default_generation_settings": {"n_ctx": context}}


def limited(count: int, milliseconds: float, **timings: float) -> dict[str, object]:
    """An answer cut at `count` tokens, the first with the prompt, the others in that time."""
    changed = {"predicted_n": count, "predicted_ms": milliseconds, "prompt_ms": 250.0, **timings}
    return {
        **ENDED,
        "tokens": list(range(100, 100 + count)),
        "stop_type": "limit",
        "timings": {**ENDED["timings"], **changed},  # type: ignore[dict-item]
    }


@contextmanager
def serving() -> Iterator[StandIn]:
    """A stand-in on a free port of this machine."""
    stand_in = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._reply(json.loads(self.rfile.read(length)))

        def _reply(self, body: dict[str, Any]) -> None:
            status, said = stand_in.reply(self.path, body, self.headers.get("Authorization"))
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: stderr is the tests'."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
