"""A benchmark against a running llama-server, as far as that can be told without one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from edgespec.bench.arms import Order
from edgespec.bench.server import LlamaServer, ModelFacts, ServerError
from edgespec.errors import EdgeSpecError, UsageError
from edgespec.sampling import Sampling
from tests import llama_server
from tests.llama_server import ENDED, META, StandIn, limited, models, props

SMOLLM2 = ModelFacts("SmolLM2", META["n_vocab"], META["n_params"], META["size"])
ORDER = Order([1, 4093, 198], Sampling(0.5, 11, 0.9, 0.1, 1.1, 0.2, 0.3, 33), 20, (4, 1, 0))


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with llama_server.serving() as running:
        yield running


@pytest.fixture
def server(stand_in: StandIn) -> Iterator[LlamaServer]:
    opened = LlamaServer(stand_in.url)
    yield opened
    opened.close()


def test_the_same_model_is_welcome(server: LlamaServer) -> None:
    server.check(SMOLLM2, 2048)
    assert server.build == "b1-0c1e570"


@pytest.mark.parametrize("ending", ["/", "/v1", "/v1/"])
def test_an_address_may_be_short_or_that_of_the_chat_api(stand_in: StandIn, ending: str) -> None:
    opened = LlamaServer(stand_in.url.removeprefix("http://") + ending)
    opened.check(SMOLLM2, 10)
    assert opened.url == stand_in.url
    opened.close()


def test_an_answer_has_the_server_s_own_times(stand_in: StandIn, server: LlamaServer) -> None:
    stand_in.replies["/completion"] = (200, limited(21, 2000.0))
    answer = server.answer(ORDER)
    stats = answer.stats
    assert answer.tokens == tuple(range(100, 121))
    assert (stats.tokens, stats.rounds, stats.round_tokens) == (21, 20, 20)
    assert stats.tokens_per_second == pytest.approx(10)
    assert stats.tokens_per_round == 1
    assert stats.ttft_seconds == 0.25
    assert stats.prompt_tokens == 3
    assert (stats.acceptance, answer.outside, answer.sources) == (None, None, {})


def test_the_end_token_is_computed_but_not_delivered(server: LlamaServer) -> None:
    """As in `Stats`: the round that ends the answer takes time and gives nothing."""
    stats = server.answer(ORDER).stats
    assert (stats.tokens, stats.rounds, stats.round_tokens) == (2, 2, 1)
    assert stats.tokens_per_second == pytest.approx(1 / 0.086886)


def test_a_server_that_drafts_needs_fewer_rounds(stand_in: StandIn, server: LlamaServer) -> None:
    drafted = limited(21, 1000.0, draft_n=16, draft_n_accepted=12)
    stand_in.replies["/completion"] = (200, drafted)
    stats = server.answer(ORDER).stats
    assert (stats.rounds, stats.tokens_per_round) == (8, 2.5)
    assert stats.acceptance is None  # theirs counts drafts that were never tested


def test_it_is_asked_for_the_same_thing(stand_in: StandIn, server: LlamaServer) -> None:
    server.answer(ORDER)
    server.answer(ORDER)
    server.answer(Order([1], Sampling(temperature=0), 5, (4, 2, 0)))
    bodies = [body for _, body, _ in stand_in.asked]
    seed = bodies[0].pop("seed")
    assert bodies[0] == {
        "prompt": [1, 4093, 198],
        "n_predict": 20,
        "cache_prompt": False,
        "return_tokens": True,
        "samplers": ["penalties", "top_k", "top_p", "min_p", "temperature"],
        "temperature": 0.5,
        "top_k": 11,
        "top_p": 0.9,
        "min_p": 0.1,
        "repeat_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "repeat_last_n": 33,
    }
    assert 0 <= seed < 2**32
    assert bodies[1]["seed"] == seed != bodies[2]["seed"]
    assert bodies[2]["temperature"] == 0
    assert not server.forget()


@pytest.mark.parametrize("key", [None, "secret"])
def test_a_key_is_sent_where_there_is_one(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.delenv("LLAMA_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("LLAMA_API_KEY", key)
    opened = LlamaServer(stand_in.url)
    opened.check(SMOLLM2, 10)
    assert stand_in.asked[-1][2] == (f"Bearer {key}" if key else None)
    opened.close()


def test_no_proxy_leads_back_to_this_machine(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    opened = LlamaServer(stand_in.url)
    opened.check(SMOLLM2, 10)
    opened.close()


@pytest.mark.parametrize(
    ("path", "reply", "parts"),
    [
        ("/v1/models", models(n_vocab=32000), ("another model", "32000", "49152", "Q4_1.gguf")),
        ("/v1/models", models(n_params=7), ("another model", "SmolLM2", "134515008")),
        ("/v1/models", models(size=143_000_000), ("quantisation", "143 MB", "97 MB")),
        ("/props", props(99), ("context of 99", "100", "-c 100")),
        ("/props", {"name": "something else"}, ("no llama-server", "default_generation_settings")),
        ("/props", b"<html>", ("no llama-server",)),
        ("/v1/models", {"data": []}, ("no llama-server", "data")),
    ],
)
def test_what_cannot_be_compared(
    stand_in: StandIn, server: LlamaServer, path: str, reply: object, parts: tuple[str, ...]
) -> None:
    stand_in.replies[path] = (200, reply)
    _refused(server, parts)


@pytest.mark.parametrize(
    ("path", "status", "reply", "parts"),
    [
        ("/health", 503, llama_server.LOADING, ("still loading", "moment")),
        ("/health", 404, llama_server.NOT_FOUND, ("no llama-server", "/health", "404")),
        ("/props", 404, b"not here", ("no llama-server", "/props")),
        ("/v1/models", 401, llama_server.NO_KEY, ("API key", "LLAMA_API_KEY")),
    ],
)
def test_statuses(
    stand_in: StandIn,
    server: LlamaServer,
    path: str,
    status: int,
    reply: object,
    parts: tuple[str, ...],
) -> None:
    stand_in.replies[path] = (status, reply)
    _refused(server, parts)


def _refused(server: LlamaServer, parts: tuple[str, ...]) -> None:
    with pytest.raises(ServerError) as caught:
        server.check(SMOLLM2, 100)
    _says(caught.value, server, parts)


def _says(problem: EdgeSpecError, server: LlamaServer, parts: tuple[str, ...]) -> None:
    assert server.url in problem.message
    assert problem.hint
    for part in parts:
        assert part in str(problem)


def test_another_build_may_count_tensors_a_little_differently(
    stand_in: StandIn, server: LlamaServer
) -> None:
    stand_in.replies["/v1/models"] = (200, models(size=META["size"] + 4096))
    server.check(SMOLLM2, 100)


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        opened = LlamaServer(f"http://127.0.0.1:{free.getsockname()[1]}")
        with pytest.raises(ServerError, match="No answer") as caught:
            opened.check(SMOLLM2, 10)
    _says(caught.value, opened, ("llama-server -m",))
    opened.close()


@pytest.mark.parametrize("url", ["http://", "ftp://somewhere", "http://a:b:c", "", "/v1"])
def test_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        LlamaServer(url)


def test_a_refused_prompt_is_told_in_the_server_s_words(
    stand_in: StandIn, server: LlamaServer
) -> None:
    message = "Prompt contains invalid tokens"
    stand_in.replies["/completion"] = (400, {"error": {"code": 400, "message": message}})
    with pytest.raises(ServerError, match=message):
        server.answer(ORDER)
    stand_in.replies["/completion"] = (500, b"gone wrong")
    with pytest.raises(ServerError, match=r"500.*gone wrong"):
        server.answer(ORDER)
    stand_in.replies["/completion"] = (200, {**ENDED, "timings": {}})
    with pytest.raises(ServerError, match="timings"):
        server.answer(ORDER)
