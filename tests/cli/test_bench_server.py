"""`edgespec bench --compare-server`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgespec.llama.weights import Weights
from tests import llama_server
from tests.cli.conftest import Run, options, refused
from tests.conftest import ModelFiles
from tests.llama_server import StandIn, limited


@pytest.fixture
def stand_in(models: ModelFiles) -> Iterator[StandIn]:
    """A server with the model of these tests."""
    weights = Weights(models["rambler"])
    meta = {
        "n_vocab": weights.tokenizer.size,
        "n_params": weights.parameters,
        "size": weights.tensor_bytes,
    }
    weights.close()
    with llama_server.serving() as running:
        running.replies["/v1/models"] = (200, llama_server.models(**meta))
        running.replies["/completion"] = (200, limited(8, 70.0))
        yield running


def against(stand_in: StandIn, prompts: Path) -> list[str]:
    more = ["--prompts", str(prompts), "--methods", "lookup", "--lengths", "2", "--max-tokens", "8"]
    return [*more, "--compare-server", stand_in.url]


def test_a_server_takes_its_turns(
    edgespec: Run, models: ModelFiles, prompts: Path, stand_in: StandIn
) -> None:
    target = options(models["rambler"])
    done = edgespec("bench", *target, *against(stand_in, prompts), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["method"] for row in found["rows"]] == ["plain", "lookup", "server"] * 2
    server, plain = found["rows"][2], found["rows"][0]
    assert server["tokens_per_second"] == pytest.approx(100)
    assert server["speedup"] == pytest.approx(100 / plain["tokens_per_second"])
    assert server["same_as_plain"] is False
    assert found["summary"][0]["of_server"] == pytest.approx(1 / found["summary"][2]["speedup"])
    assert found["setup"]["server"] == {"url": stand_in.url, "build": "b1-0c1e570"}
    asked = [body["prompt"] for path, body, _ in stand_in.asked if path == "/completion"]
    assert len(asked) == 3  # the warm-up and two prompts
    assert asked[0] == asked[1] != asked[2]


def test_another_model_is_refused(
    edgespec: Run, models: ModelFiles, prompts: Path, stand_in: StandIn
) -> None:
    stand_in.replies["/v1/models"] = (200, llama_server.models())
    done = edgespec("bench", *options(models["rambler"]), *against(stand_in, prompts))
    refused(done, "another model", "rambler")


def test_what_was_measured_before_the_server_failed_is_shown(
    edgespec: Run, models: ModelFiles, prompts: Path, stand_in: StandIn
) -> None:
    replies = [(500, {}), (200, limited(8, 70.0)), (200, limited(8, 70.0))]

    def reply(body: dict[str, Any]) -> tuple[int, object]:
        return replies.pop()

    stand_in.replies["/completion"] = reply
    done = edgespec("bench", *options(models["rambler"]), *against(stand_in, prompts), "--json")
    assert done.returncode == 1
    assert "failed (500)" in done.stderr
    found = json.loads(done.stdout)
    assert found["complete"] is False
    assert {row["category"] for row in found["rows"]} == {"talk"}
