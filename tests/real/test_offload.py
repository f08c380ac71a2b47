"""Layers on a device that is not the CPU: another process, by llama.cpp's RPC backend on loopback.

llama.cpp treats it as a GPU with memory of its own, so this is the path that CUDA and Metal take too.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from edgespec.errors import UsageError
from edgespec.events import Prefilled, Reason
from edgespec.fitting import planned
from edgespec.llama import ggml, rpc
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.loaded import LoadedModel
from edgespec.memory import MIB, Device, ModelCost, Share
from edgespec.pair import Pair
from edgespec.reply import ReplyEvent
from edgespec.settings import Load
from tests.conftest import ModelFiles
from tests.gguf_files import byte_vocab, random_llama
from tests.real import rig
from tests.real.conftest import OpenPair

ROOT = Path(__file__).parents[2]
LIMIT = 60.0
TEXT = "Repeat after me: the cat sat on the mat, the cat sat on the mat, the cat"
COUNT = "Count from 1 to 30, separated by commas."
PASTE = "Some words that say little but are many. " * 170

OpenThere = Callable[..., Pair]


@dataclass(frozen=True)
class Server:
    endpoint: str
    process: psutil.Process

    @property
    def resident(self) -> int:
        held: int = self.process.memory_info().rss
        return held


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not rpc.available():
        pytest.skip("this llama.cpp was built without RPC (CMAKE_ARGS=-DGGML_RPC=on)")
    port = free_port()
    command = [sys.executable, "-m", "tests.real.rpc_server", str(port)]
    quiet = subprocess.DEVNULL
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=quiet, stderr=quiet) as process:
        try:
            until = time.monotonic() + LIMIT
            endpoint = f"127.0.0.1:{port}"
            while time.monotonic() < until:
                with suppress(UsageError):
                    rpc.greet(endpoint)
                    break
                assert process.poll() is None, "the server ended"
                time.sleep(0.1)
            yield Server(endpoint, psutil.Process(process.pid))
        finally:
            process.kill()


@pytest.fixture
def there(models: ModelFiles, server: Server) -> Iterator[OpenThere]:
    """SmolLM2 with layers on the server; closed after the test."""
    opened: list[Pair] = []

    def open_pair(method: str = "none", **changes: object) -> Pair:
        load = rig.load(models.draft(method), context=2048, length=16)
        opened.append(Pair.open(replace(load, rpc=(server.endpoint,), **changes)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_pair
    for pair in opened:
        pair.close()


def share(loaded: LoadedModel, device: str) -> Share:
    (found,) = (one for one in loaded.shares if one.device == device)
    return found


def remote(pair: Pair) -> str:
    (name,) = {one.device for loaded in pair.models for one in loaded.shares} - {"CPU"}
    return name


@pytest.mark.parametrize(("layers", "least"), [(10, 45), (-1, 90)])
def test_the_bytes_are_on_the_device(
    there: OpenThere, server: Server, layers: int, least: int
) -> None:
    before = server.resident
    pair = there(gpu_layers=layers)
    name = remote(pair)
    held = share(pair.target, name)
    assert held.weights > least * MIB
    # Nine or thirty layers of 3 heads of 64, keys and values of 2 bytes, 2048 places.
    assert held.kv_cache == (30 if layers < 0 else layers - 1) * 2048 * 3 * 64 * 2 * 2
    assert share(pair.target, "CPU").kv_cache + held.kv_cache == 2048 * 30 * 3 * 64 * 2 * 2
    assert server.resident - before > 0.9 * held.weights
    pair.target.model.extend([1, 2, 3], rows=1)
    pair.close()
    assert server.resident < before + 0.5 * held.weights


@pytest.mark.parametrize("layers", [10, -1])
@pytest.mark.parametrize("method", ["none", "lookup", "self"])
def test_the_text_is_that_of_the_cpu(
    smollm2: OpenPair, there: OpenThere, method: str, layers: int
) -> None:
    plain = smollm2("none")
    prompt = rig.encode(plain, rig.question(TEXT))
    steps = rig.oracle(plain, prompt, 24)
    pair = there(method, gpu_layers=layers)
    tokens = rig.drafted(pair, prompt, 6, len(steps))
    assert rig.compare(tokens, steps) >= 8, "a near-tie too early to have tested anything"
    if method == "self":
        assert pair.draft is not None
        assert share(pair.draft, remote(pair)).weights > 45 * MIB


def test_tokens_can_be_taken_back(there: OpenThere) -> None:
    model = there(gpu_layers=-1).target.model
    tokens = list(range(100, 140))
    model.extend(tokens, rows=0)
    straight = model.extend([200, 201], rows=2).copy()
    model.truncate(20)
    model.extend([7, 8, 9], rows=3)
    model.truncate(20)
    assert list(model.tokens) == tokens[:20]
    model.extend(tokens[20:], rows=0)
    again = model.extend([200, 201], rows=2)
    np.testing.assert_allclose(again, straight, atol=0.3)
    assert list(again.argmax(1)) == list(straight.argmax(1))


@pytest.mark.parametrize("method", ["none", "self"])
def test_a_long_prompt_can_be_cancelled(smollm2: OpenPair, there: OpenThere, method: str) -> None:
    pair = there(method, gpu_layers=-1)
    session = rig.chat(pair, max_tokens=8)
    timer = threading.Timer(0.02, session.cancel)

    def watch(event: ReplyEvent) -> None:
        if isinstance(event, Prefilled) and event.done == 0:
            timer.start()

    told = rig.listen(session.reply(PASTE), watch)
    timer.join()
    assert (told.end.reason, told.text) == (Reason.CANCELLED, "")
    assert told.prefilled[-1].done < told.prefilled[0].total
    assert session.context_used == told.prefilled[-1].done
    rig.listen(session.edit(0, COUNT))
    plain = smollm2("none")
    steps = rig.oracle(plain, rig.encode(plain, rig.question(COUNT)), 8)
    rig.compare(session.messages[-1].tokens, steps)


def test_without_a_word_all_goes_to_the_device(there: OpenThere, server: Server) -> None:
    pair = there("self")
    assert len(pair.notices) == 1, "only what the small model is"
    memory = rig.chat(pair).memory()
    name = remote(pair)
    assert [device.name for device in memory.devices] == [name, "CPU"]
    assert memory.devices[0].total > 0
    assert memory.devices[0].description == server.endpoint
    assert [len(model.shares) for model in memory.models] == [2, 2]
    assert sum(one.weights for model in memory.models for one in model.shares) > memory.weights
    assert sum(one.kv_cache for model in memory.models for one in model.shares) == memory.kv_cache
    for loaded in pair.models:
        assert share(loaded, name).weights > 90 * MIB


def test_a_server_in_use_by_this_process_is_used_again(
    there: OpenThere, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves one program at a time, and that is this one."""
    first, second = there(gpu_layers=-1), there(gpu_layers=-1)
    assert share(second.target, remote(first)).weights > 90 * MIB
    first.close()
    second.close()
    third = there(gpu_layers=-1)
    third.target.model.extend([1, 2, 3], rows=1)
    third.close()

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(UsageError, match="no server"):
        there()


def test_a_device_behind_a_server_is_asked_after_loading_and_no_more(
    there: OpenThere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking would wait for what it computes, and end the process when the server is gone."""
    asked: list[str] = []
    describe = ggml.describe

    def spy(name: str) -> Device:
        asked.append(name)
        return describe(name)

    monkeypatch.setattr(ggml, "describe", spy)
    pair = there(gpu_layers=-1)
    name = remote(pair)
    assert asked.count(name) == 2
    assert rig.chat(pair).memory().devices[0].name == name
    assert asked.count(name) == 2


def test_layers_go_where_the_plan_says(models: ModelFiles, server: Server) -> None:
    first, second = rpc.connect((server.endpoint,))
    weights = Weights(
        models.smollm2, mmap=False, gpu_layers=25, devices=[second, first], split=[14, 11]
    )
    model = LlamaModel(weights, context=256, threads=1)
    try:
        a_layer = 256 * 3 * 64 * 2 * 2
        held = {one.device: one.kv_cache for one in LoadedModel(weights, model).shares}
        # The last device has the output layer, which has no cache.
        assert held == {
            "CPU": pytest.approx(6 * a_layer, abs=10_000),
            second: pytest.approx(14 * a_layer, abs=10_000),
            first: pytest.approx(10 * a_layer, abs=10_000),
        }
    finally:
        model.close()
        weights.close()


@pytest.mark.parametrize("layers", [10, -1])
@pytest.mark.parametrize("context", [512, 4096])
def test_the_estimate_on_a_device(
    models: ModelFiles, server: Server, there: OpenThere, layers: int, context: int
) -> None:
    load = Load(context=context, rpc=(server.endpoint,), gpu_layers=layers)
    plan = planned(load, models.smollm2, None, 17)
    pair = there(gpu_layers=layers, context=context)
    for expected in plan.target.shares:
        close(plan.target.cost, expected, pair.target)


@pytest.mark.parametrize("context", [256, 2048, 8192])
@pytest.mark.parametrize("kv_type", ["f16", "q8_0", "q4_0"])
def test_the_estimate_in_ram(models: ModelFiles, context: int, kv_type: str) -> None:
    estimated(models.smollm2, Load(context=context, kv_type=kv_type))


@pytest.mark.parametrize(("layers", "width", "heads"), [(1, 32, 4), (2, 256, 4), (4, 512, 8)])
def test_the_estimate_for_models_of_other_shapes(
    tmp_path: Path, layers: int, width: int, heads: int
) -> None:
    path = tmp_path / "model.gguf"
    random_llama(path, layers=layers, width=width, heads=heads, vocab=byte_vocab())
    estimated(path, Load(context=1024))


def estimated(path: Path, load: Load) -> None:
    place = planned(load, path, None, 32).target
    weights = Weights(path, mmap=False)
    model = LlamaModel(
        weights,
        context=place.cost.context,
        threads=1,
        max_rows=32,
        kv_type=place.cost.kv_type,
    )
    try:
        tokens = list(range(3, 40))
        assert np.isfinite(model.extend(tokens, rows=1)).all()
        loaded = LoadedModel(weights, model)
        (expected,) = place.shares
        close(place.cost, expected, loaded)
    finally:
        model.close()
        weights.close()


def close(cost: ModelCost, expected: Share, loaded: LoadedModel) -> None:
    """The tolerance that `edgespec.memory` states: llama.cpp's lines have two decimals of a MiB."""
    measured = share(loaded, expected.device)
    rounding = 20_000
    assert measured.weights == pytest.approx(expected.weights, rel=0.005, abs=rounding)
    assert measured.kv_cache == pytest.approx(expected.kv_cache, rel=0.001, abs=rounding)
    # Where it takes trees, llama.cpp has a row of logits for every sequence from the beginning.
    later = expected.device == "CPU" and loaded.model.branches == 1
    compute = expected.compute - (cost.logits if later else 0)
    assert measured.compute - MIB < compute < 1.25 * measured.compute + MIB


def test_a_server_that_is_not_there(models: ModelFiles) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    with pytest.raises(UsageError, match=f"no server at {endpoint}"):
        Pair.open(replace(rig.load("none"), rpc=(endpoint,)))


@pytest.mark.parametrize("endpoint", ["", "somewhere", "host:0", "host:99999", "a b:1", ":5"])
def test_what_is_no_address(endpoint: str) -> None:
    with pytest.raises(UsageError, match="names no server"):
        rpc.greet(endpoint)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "is no RPC server"),
        (b"", "is no RPC server"),
        (bytes([28, *[0] * 7, 6, 0, 0, *[0] * 25]), "version 6.0"),
        (bytes([28, *[0] * 7, 7, 1, 0, *[0] * 25]), "version 7.1"),
        (None, "does not answer"),
    ],
)
def test_something_else_that_answers(
    answer: bytes | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "_PATIENCE", 0.5)
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(33)
                if answer is None:
                    done.wait(LIMIT)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(UsageError, match=said):
            rpc.greet(f"127.0.0.1:{listening.getsockname()[1]}")
        done.set()
        thread.join()


def test_the_cpu_is_always_listed() -> None:
    assert "CPU" in [device.name for device in ggml.local()]
