"""`pull`, `list`, `show`, `rm`, `verify`, `search`, `pair`, `prune` as a person meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from edgespec.cli.main import main
from model_registry import catalog
from model_registry.records import dump
from model_registry.store import Store
from tests.gguf_files import byte_vocab, random_llama
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub, Fault
from tests.registry.stored import model_file, put

fake, hub_settings = registry.fake, registry.hub_settings

Run = Callable[..., tuple[int, str, str]]

TARGET, DRAFT = "maker/big-GGUF", "maker/small-GGUF"
BIG, SMALL = f"hf:{TARGET}", f"hf:{DRAFT}"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_settings: Path) -> Path:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(catalog, "user_file", lambda: tmp_path / "catalog.yaml")
    return tmp_path / "store"


@pytest.fixture
def hub(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    monkeypatch.setenv("HF_ENDPOINT", fake.url)
    for repo, name, width in ((TARGET, "Big-Q4_K_M.gguf", 128), (DRAFT, "small-q8_0.gguf", 32)):
        (fake.root / repo).mkdir(parents=True)
        random_llama(fake.root / repo / name, width=width, vocab=byte_vocab())
    return fake


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(sys, "stdin", None)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def as_json(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run(*arguments, "--json")
    assert code == 0
    return cast("dict[str, Any]", json.loads(out))


def test_pull_list_show_run_rm(run: Run, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("pull", BIG, "--draft", SMALL, "--as", "toys")
    assert code == 0
    assert "Pair toys: The vocabularies are the same" in out
    assert "edgespec chat --model toys" in out
    assert "Big-Q4_K_M.gguf  100%" in err
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    code, out, _ = run("list")
    lines = out.splitlines()
    assert lines[0].split() == [
        "NAME",
        "KIND",
        "SIZE",
        "QUANT",
        "CONTEXT",
        "LICENCE",
        "PAIR",
        "LAST",
        "USED",
    ]
    assert lines[1].startswith("toys ")
    assert "Q4_K_M + Q8_0" in lines[1]
    assert "never" in lines[1]
    assert "in toys" in lines[2]

    code, out, err = run("run", "--model", "toys", "--max-tokens", "8", "--stats", "hello")
    assert code == 0
    assert "acceptance" in err, "the pair brought its draft along"
    listed = as_json(run, "list")
    assert listed["pairs"][0]["last_used"]
    assert all(model["last_used"] for model in listed["models"])
    _, _, err = run(
        "run", "--model", "toys", "--draft", "none", "--max-tokens", "2", "--stats", "hello"
    )
    assert "acceptance" not in err
    _, _, err = run(
        "run",
        "--model",
        "Big-Q4_K_M",
        "--draft",
        "small-q8_0",
        "--max-tokens",
        "8",
        "--stats",
        "hi",
    )
    assert "acceptance" in err

    _, out, _ = run("show", "TOYS")
    assert "target: Big-Q4_K_M" in out
    assert "last used: 2" in out
    assert "verdict: The vocabularies" in out
    assert as_json(run, "show", "small-q8_0")["pairs"] == ["toys"]

    code, out, _ = run("rm", "toys")
    assert "Removed pair toys, model Big-Q4_K_M, model small-q8_0" in out
    assert "Nothing is stored yet" in run("list")[1]


def test_an_empty_store_has_nothing_to_verify(run: Run) -> None:
    assert run("verify") == (0, "Nothing is stored yet, so there is nothing to verify.\n", "")
    code, _, err = run("verify", "toys")
    assert code == 2
    assert "Nothing is stored yet." in err


def test_the_built_in_model_can_be_shown(run: Run) -> None:
    code, out, _ = run("show", "built-in")
    assert code == 0
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in out
    assert as_json(run, "show", "SmolLM2-135M-Instruct.Q4_1")["quant"] == "Q4_1"


def test_pull_as_json(run: Run, hub: FakeHub) -> None:
    code, out, _ = run("pull", BIG, "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert events[-1]["event"] == "stored"
    assert events[-1]["models"][0]["complete"]
    progress = [event for event in events if event["event"] == "progress"]
    assert progress[-1]["done"] == progress[-1]["total"] == events[-1]["fetched"]
    assert set(progress[0]) == {
        "event",
        "name",
        "done",
        "total",
        "speed",
        "seconds_left",
        "state",
        "note",
    }


def test_a_pair_that_does_not_fit(run: Run, hub: FakeHub) -> None:
    random_llama(hub.root / DRAFT / "small-q8_0.gguf", vocab=byte_vocab().swapped(40, 41))
    code, out, err = run("pull", BIG, "--draft", SMALL)
    assert (code, out) == (1, "")
    assert "cannot draft for" in err
    assert "(text)" in err
    assert "first that differs is token 40" in err
    assert "Nothing is stored yet" in run("list")[1]


def test_pair(run: Run, hub: FakeHub, tmp_path: Path) -> None:
    run("pull", BIG)
    run("pull", SMALL)
    wrong = random_llama(tmp_path / "wrong.gguf", vocab=byte_vocab().padded(129))
    code, _, err = run("pair", "Big-Q4_K_M", str(wrong))
    assert code == 1
    assert "(size)" in err
    code, _, err = run("pair", "Big-Q4_K_M", "hf:other/model")
    assert code == 2
    assert "edgespec pull Big-Q4_K_M --draft hf:other/model" in err
    assert run("pair", "Big-Q4_K_M", "auto")[0] == 2
    code, out, _ = run("pair", "Big-Q4_K_M", "small-q8_0", "--as", "mine")
    assert code == 0
    assert "Pair mine: " in out
    assert as_json(run, "list")["pairs"][0]["name"] == "mine"
    code, out, _ = run("rm", "mine")
    assert "pulled by itself" in out
    assert len(as_json(run, "list")["models"]) == 2


def test_offline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, _, err = run("pull", "hf:a/b")
    assert code == 1
    assert "offline mode is on" in err
    code, out, err = run("search", "coder")
    assert code == 0
    assert "qwen2.5-coder-7b" in out
    assert "No answer from the Hub" in err


def test_search(run: Run, hub: FakeHub) -> None:
    code, out, _ = run("search", "big")
    assert code == 0
    assert f"hf:{TARGET}" in out
    found = as_json(run, "search", "qwen3")
    assert [pair["name"] for pair in found["pairs"]] == ["qwen3-8b"]
    assert found["pairs"][0]["confirmed"]
    assert found["gpus"]["8GB"]
    assert "PAIR" in run("search")[1]
    assert "Nothing is known as 'zzz'" in run("search", "zzz")[1]


def test_show_from_the_catalogue(run: Run) -> None:
    facts = as_json(run, "show", "qwen2.5-7b")
    assert (facts["stored"], facts["pull"]) == (False, "edgespec pull qwen2.5-7b")
    assert len(facts["models"][0]["files"]) == 2
    assert "sha256: 9465e63a" in run("show", "qwen3-0.6b")[1]
    code, _, err = run("show", "qwen3-9b")
    assert code == 1
    assert "Did you mean qwen3-8b" in err


def test_a_model_that_was_not_pulled(run: Run) -> None:
    code, _, err = run("run", "--model", "qwen3-8b", "hello")
    assert code == 1
    assert "edgespec pull qwen3-8b" in err
    assert "write hf:Qwen/foo" in run("run", "--model", "Qwen/foo", "hello")[2]
    assert "edgespec pull hf:Qwen/foo" in run("run", "--model", "hf:Qwen/foo", "hello")[2]


def test_verify(run: Run, tmp_path: Path, home: Path) -> None:
    model = put(Store(home), model_file(tmp_path / "m.gguf"))
    assert run("verify")[0] == 0
    assert run("verify", "m", "--full")[0] == 0
    path = Store(home).path(model)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    code, out, err = run("verify", "m", "--full")
    assert code == 1
    assert "does not have the content" in out
    assert "edgespec pull hf:owner/name@" in err
    code, out, _ = run("verify", "--full", "--json")
    assert code == 1
    assert json.loads(out)[0]["ok"] is False
    assert run("verify", "other")[0] == 2


def test_a_damaged_record_hides_nothing_else(run: Run, tmp_path: Path, home: Path) -> None:
    store = Store(home)
    put(store, model_file(tmp_path / "a.gguf", seed=1))
    bad = put(store, model_file(tmp_path / "b.gguf", seed=2))
    (store.models / bad.id / "model.json").write_text("{")
    code, out, err = run("list")
    assert code == 0
    assert "a " in out
    assert f"Left out: {store.models / bad.id}" in err
    code, out, _ = run("prune", "--dry-run")
    assert "model without a record" in out
    assert "would be freed" in out
    assert as_json(run, "prune")["freed"] > 0
    assert "nothing to remove" in run("prune")[1]


def test_rm_of_what_a_pair_needs(run: Run, hub: FakeHub) -> None:
    run("pull", BIG, "--draft", SMALL, "--as", "one")
    run("pull", BIG, "--draft", SMALL, "--as", "two")
    code, _, err = run("rm", "small-q8_0")
    assert code == 1
    assert "belongs to the pair one, two" in err
    assert "stays: the pair two uses it" in run("rm", "one")[1]
    removed = as_json(run, "rm", "two")
    assert removed["freed"] > 0
    assert removed["kept"] == []


def spawn(home: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "EDGESPEC_HOME": str(home), "HF_ENDPOINT": url}
    return subprocess.Popen(
        [sys.executable, "-m", "edgespec", *arguments],
        env=environment | {"HF_HOME": str(home.parent / "hf"), "NO_PROXY": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_part(home: Path, least: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if any(part.stat().st_size >= least for part in home.glob("partial/*.part")):
            return
        time.sleep(0.02)
    pytest.fail("no part has come")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_pull_that_is_ended_goes_on(
    run: Run, hub: FakeHub, home: Path, how: signal.Signals
) -> None:
    size = (hub.root / TARGET / "Big-Q4_K_M.gguf").stat().st_size
    hub.always = Fault(stall_after=size // 2)
    process = spawn(home, hub.url, "pull", BIG)
    wait_for_part(home, size // 2)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command goes on from there" in err
    hub.always = None
    _, out, err = run("list")
    assert "Nothing is stored yet" in out
    assert f"Go on with: edgespec pull {BIG}" in err
    assert run("pull", BIG)[0] == 0
    assert hub.deliveries()[-1].headers["range"].startswith(f"bytes={size // 2}-")
    assert run("verify", "--full")[0] == 0
    assert "Unfinished" not in run("list")[2]


def test_list_loads_little(tmp_path: Path, home: Path) -> None:
    """What makes `list` fast: none of the large libraries, however much is stored."""
    store = Store(home)
    first = put(store, model_file(tmp_path / "m.gguf"))
    for number in range(50):
        identity = f"{number:016x}"
        text = (
            dump(first).replace(first.id, identity).replace('"name": "m"', f'"name": "m{number}"')
        )
        (store.models / identity).mkdir()
        (store.models / identity / "model.json").write_text(text)
    script = (
        "import sys; from edgespec.cli.main import main; code = main(['list']); "
        "big = {'numpy', 'llama_cpp', 'pydantic', 'yaml', 'huggingface_hub', 'filelock', 'textual',"
        " 'jinja2', 'asyncio'}; print(sorted(big & set(sys.modules)), file=sys.stderr); "
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert len(done.stdout.splitlines()) == 52
    assert done.stderr.strip() == "[]"
