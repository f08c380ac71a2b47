"""A running llama-server as one more arm: the same tokens, the same sampling, its own timings.

Endpoints and fields: llama.cpp tools/server/README.md (/health, /props, /v1/models, /completion).
The server's own clock counts, so neither HTTP nor its queue is held against it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TypeVar

import httpx2 as httpx
import numpy as np
from pydantic import BaseModel, Field, ValidationError

from edgespec.bench.arms import Answer, Order
from edgespec.errors import EdgeSpecError, UsageError
from edgespec.stats import Stats

_HERE = {"localhost", "127.0.0.1", "::1"}
_CHAIN = ["penalties", "top_k", "top_p", "min_p", "temperature"]
"""The order of edgespec.sampling."""
_SAME_SIZE = 0.01
"""How far the tensors' sizes may differ between builds of llama.cpp that read the same file."""
_START = (
    "Start one on the same file, with the same threads and context: llama-server -m FILE -t N -c N"
)


class ServerError(EdgeSpecError):
    """A server that cannot be measured against."""


class _Settings(BaseModel):
    n_ctx: int


class _Props(BaseModel):
    default_generation_settings: _Settings
    build_info: str = "of unknown build"
    model_path: str = ""


class _Meta(BaseModel):
    n_vocab: int
    n_params: int
    size: int


class _Model(BaseModel):
    meta: _Meta


class _Models(BaseModel):
    data: list[_Model] = Field(min_length=1)


class _Timings(BaseModel):
    prompt_ms: float
    predicted_n: int
    predicted_ms: float
    draft_n_accepted: int = 0


class _Completion(BaseModel):
    tokens: list[int]
    stop_type: str = ""
    timings: _Timings


_Reply = TypeVar("_Reply", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What tells whether two programs have the same model. The numbers are llama.cpp's own."""

    name: str
    vocab_size: int
    parameters: int
    tensor_bytes: int


class LlamaServer:
    """An `Answerer`. Close it."""

    def __init__(self, url: str) -> None:
        """`url` may lack `http://`. Raises UsageError when it is none."""
        full = url if "://" in url else f"http://{url}"
        self.url = full.rstrip("/").removesuffix("/v1").rstrip("/")
        self.build = ""
        host = _host(self.url)
        if host is None:
            raise UsageError(
                f"--compare-server: {url!r} is no address.",
                "Give one such as http://localhost:8080.",
            )
        self._client = httpx.Client(
            base_url=self.url,
            headers=_authorization(),
            timeout=httpx.Timeout(600, connect=10),
            trust_env=host not in _HERE,  # a proxy does not lead back to this machine
        )

    def check(self, facts: ModelFacts, room: int) -> None:
        """Whether it runs this model, with `room` tokens of context. Raises ServerError."""
        self._request("GET", "/health")
        props = self._read(_Props, self._request("GET", "/props"))
        meta = self._read(_Models, self._request("GET", "/v1/models")).data[0].meta
        self.build = props.build_info
        theirs = props.model_path.replace("\\", "/").rpartition("/")[2] or "a model without a name"
        if (meta.n_vocab, meta.n_params) != (facts.vocab_size, facts.parameters):
            raise ServerError(
                f"The server at {self.url} runs another model: {theirs}, {meta.n_params} parameters "
                f"and {meta.n_vocab} tokens; {facts.name} has {facts.parameters} and "
                f"{facts.vocab_size}.",
                _START,
            )
        if abs(meta.size - facts.tensor_bytes) > _SAME_SIZE * facts.tensor_bytes:
            raise ServerError(
                f"The server at {self.url} runs another quantisation: the tensors of {theirs} have "
                f"{meta.size / 1e6:.0f} MB, those of {facts.name} {facts.tensor_bytes / 1e6:.0f} MB.",
                _START,
            )
        context = props.default_generation_settings.n_ctx
        if context < room:
            raise ServerError(
                f"The server at {self.url} has a context of {context} tokens; the longest prompt and "
                f"its answer take {room}.",
                f"Start it with -c {room} -np 1 or more.",
            )

    def answer(self, order: Order) -> Answer:
        """One answer without its prompt cache. Raises ServerError."""
        reply = self._read(_Completion, self._request("POST", "/completion", _body(order)))
        timings = reply.timings
        # The first token comes with the prompt, and the end token is delivered to nobody.
        steps = max(timings.predicted_n - 1, 0)
        ended = reply.stop_type == "eos"
        stats = Stats(
            prompt_tokens=len(order.prompt),
            tokens=timings.predicted_n - ended,
            # Its round gives what was accepted and one token more.
            rounds=steps - timings.draft_n_accepted,
            round_tokens=max(steps - ended, 0),
            ttft_seconds=timings.prompt_ms / 1e3,
            decode_seconds=timings.predicted_ms / 1e3,
        )
        return Answer(tuple(reply.tokens), stats)

    def forget(self) -> bool:
        """Nothing: each request stands alone."""
        return False

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _request(self, method: str, path: str, body: dict[str, object] | None = None) -> bytes:
        try:
            response = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise ServerError(f"No answer from {self.url}: {_reason(error)}.", _START) from error
        if response.is_success:
            return response.content
        raise self._refused(path, response)

    def _refused(self, path: str, response: httpx.Response) -> ServerError:
        status = response.status_code
        if status == 503:
            return ServerError(
                f"The server at {self.url} is still loading its model.", "Try again in a moment."
            )
        if status in (401, 403):
            return ServerError(
                f"The server at {self.url} wants an API key.", "Set LLAMA_API_KEY to it."
            )
        if path != "/completion":
            return ServerError(
                f"What answers at {self.url} is no llama-server: {path} gives status {status}.",
                _START,
            )
        return ServerError(f"The server at {self.url} failed ({status}): {_message(response)}")

    def _read(self, kind: type[_Reply], content: bytes) -> _Reply:
        try:
            return kind.model_validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise ServerError(
                f"What answers at {self.url} is no llama-server that is known here"
                f" ({key or 'reply'}: {first['msg']}).",
                _START,
            ) from error


def _host(url: str) -> str | None:
    """Whom the address means; None when it is none."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    return parsed.host or None if parsed.scheme in ("http", "https") else None


def _body(order: Order) -> dict[str, object]:
    sampling = order.sampling
    seed = int(np.random.SeedSequence(list(order.seed)).generate_state(1)[0])
    return {
        "prompt": list(order.prompt),
        "n_predict": order.max_tokens,
        "cache_prompt": False,
        "return_tokens": True,
        "samplers": _CHAIN,
        "seed": seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repeat_last_n": sampling.penalty_window,
    }


def _authorization() -> dict[str, str]:
    """llama-server takes its key from the same variable."""
    key = os.environ.get("LLAMA_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _reason(error: Exception) -> str:
    text = re.sub(r"^\[Errno -?\d+\] ", "", str(error).strip())
    return text.rstrip(".") or type(error).__name__


def _message(response: httpx.Response) -> str:
    """What llama-server writes into its errors."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
