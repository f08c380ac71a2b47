"""`edgespec fit` as a person meets it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from edgespec.cli.fit import sizes
from edgespec.cli.main import main
from model_registry import catalog
from model_registry.store import Store
from tests.conftest import ModelFiles
from tests.gguf_files import byte_vocab, random_llama, split_llama
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub
from tests.registry.stored import put

fake, hub_settings = registry.fake, registry.hub_settings

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_settings: Path) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(catalog, "user_file", lambda: tmp_path / "catalog.yaml")
    return Store.default()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(sys, "stdin", None)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(("fit", *arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def as_json(run: Run, *arguments: str, code: int = 0) -> dict[str, Any]:
    got, out, _ = run(*arguments, "--json")
    assert got == code
    return cast("dict[str, Any]", json.loads(out))


def test_the_small_model_here(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    head, line, *_ = out.splitlines()
    assert head.split() == ["MODEL", "ON", "LAYERS", "WEIGHTS", "KV", "CACHE", "COMPUTE", "TOTAL"]
    assert line.split()[1:7] == ["RAM", "31", "92", "MiB", "90", "MiB"]
    assert "MEMORY" in out
    assert "SmolLM2-135M-Instruct.Q4_1 in RAM, with 4096 tokens of context." in out


def test_a_machine_that_one_does_not_have(run: Run, models: ModelFiles) -> None:
    draft = str(models["bad"])
    found = as_json(run, str(models.smollm2), "--draft", draft, "--vram", "8G", "--ram", "16G")
    assert found["fits"] is True
    target, small = found["models"]
    assert (target["role"], small["role"]) == ("target", "draft")
    assert (target["gpu_layers"], target["layers"]) == (31, 31)
    assert [share["device"] for share in target["shares"]] == ["GPU0", "CPU"]
    gpu, ram = found["devices"]
    assert (gpu["name"], gpu["total"], gpu["free"]) == ("GPU0", 8 << 30, 8 << 30)
    assert (ram["name"], ram["total"], ram["free"]) == ("CPU", 16 << 30, 12 << 30)
    assert gpu["reserve"] == (8 << 30) * 8 // 100
    assert gpu["left"] == gpu["free"] - gpu["reserve"] - gpu["used"]
    assert found["notices"] == []


def test_a_gpu_that_is_too_small_takes_some_layers(run: Run, models: ModelFiles) -> None:
    code, out, _ = run(str(models.smollm2), "--vram", "600M", "--ram", "4G")
    assert code == 0
    assert "of 31 layers" in out
    assert "the others in RAM: not all fit." in out


def test_what_does_not_fit_is_said_with_what_would(run: Run, models: ModelFiles) -> None:
    code, out, _ = run(str(models.smollm2), "--ram", "160M", "--ctx", "2048")
    assert code == 1
    assert "does not fit: it needs" in out
    assert "Use --ctx" in out
    found = as_json(run, str(models.smollm2), "--ram", "160M", "--ctx", "2048", code=1)
    assert found["fits"] is False
    assert found["hint"].startswith("Use --ctx")
    assert found["devices"][0]["left"] < 0


def test_shared_memory(run: Run, models: ModelFiles) -> None:
    of_apple = ("--unified", "--ram", "16G", "--vram", "11G")
    found = as_json(run, str(models.smollm2), *of_apple)
    gpu, ram = found["devices"]
    assert ram["used"] > gpu["used"] > 0


def test_options_reach_the_plan(run: Run, models: ModelFiles) -> None:
    found = as_json(
        run, str(models.smollm2), "--vram", "8G", "--gpu-layers", "5", "--kv-type", "q4_0"
    )
    assert (found["models"][0]["gpu_layers"], found["kv_type"]) == (5, "q4_0")
    shorter = as_json(run, str(models.smollm2), "--ctx", "512")
    assert shorter["context"] == 512


def test_a_stored_pair_and_its_members(run: Run, store: Store, tmp_path: Path) -> None:
    big = random_llama(tmp_path / "big.gguf", width=64, vocab=byte_vocab())
    small = random_llama(tmp_path / "small.gguf", vocab=byte_vocab())
    target, draft = put(store, big), put(store, small)
    store.add_pair("toys", target, draft, verdict="same")
    assert [one["name"] for one in as_json(run, "toys")["models"]] == [target.name, draft.name]
    assert len(as_json(run, "toys", "--draft", "none")["models"]) == 1
    assert len(as_json(run, target.name)["models"]) == 1


def test_a_model_of_the_hub_by_its_first_bytes(
    run: Run, fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", fake.url)
    folder = fake.root / "maker/parts-GGUF"
    folder.mkdir(parents=True)
    parts = split_llama(folder, "parts-Q4_K_M", vocab=byte_vocab())
    found = as_json(run, "hf:maker/parts-GGUF")
    weights = sum(share["weights"] for share in found["models"][0]["shares"])
    here = as_json(run, str(parts[0]))["models"][0]["shares"]
    assert weights == sum(share["weights"] for share in here)


def test_what_is_not_known(run: Run, tmp_path: Path) -> None:
    code, out, err = run("no-such-model")
    assert (code, out) == (1, "")
    assert "Nothing here is called no-such-model" in err
    code, _, err = run(str(tmp_path / "none.gguf"))
    assert code == 1
    assert "does not exist" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--vram", "big"),
        ("--ram", "8G,8G"),
        ("--unified", "--ram", "8G"),
        ("--vram", "8G", "--rpc", "127.0.0.1:1"),
        ("--rpc", "127.0.0.1"),
        ("--kv-type", "f8"),
        ("--gpu-layers", "-2"),
    ],
)
def test_options_that_make_no_sense(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("edgespec: ")


def test_a_cache_that_the_model_cannot_have(run: Run, models: ModelFiles) -> None:
    code, _, err = run(str(models["bad"]), "--kv-type", "q8_0")
    assert code == 2
    assert "cannot be stored as q8_0" in err


def test_sizes() -> None:
    assert sizes("8G") == sizes("8 GB") == sizes("8GiB") == sizes("8") == (8 << 30,)
    assert sizes("512M,1.5g,1T") == (512 << 20, 3 << 29, 1 << 40)
    for text in ("", "8X", "G", "-1G", "8G,", "1e3G"):
        with pytest.raises(argparse.ArgumentTypeError):
            sizes(text)
