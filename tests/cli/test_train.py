"""`edgespec train`: what it refuses, tells, writes and keeps."""

from __future__ import annotations

import importlib.util
import json
import signal
from pathlib import Path

import pytest

from edgespec.cli.main import main
from edgespec.cli.train_view import describe, facts, sentence, thinned
from edgespec.train.events import Made, Point
from model_registry.store import Store
from tests.cli.conftest import LIMIT, started
from tests.tiny_models import tiny_model
from tests.train.models import NO_TORCH, prompts_file

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason=NO_TORCH)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    return Store.default()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tiny_model("llama", tmp_path / "tiny.gguf", layers=4)


def order(target: Path, folder: Path, *more: str) -> list[str]:
    data = str(prompts_file(folder / "prompts.jsonl", count=240))
    some = ["--data", data, "--tokens", "300", "--minutes", "1000", "--threads", "1"]
    return ["train", "medusa", str(target), *some, *more]


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str], part: str, code: int) -> None:
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert part in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--minutes", "0"], "no number of minutes"),
        (["--minutes", "inf"], "no number of minutes"),
        (["--disk", "-1"], "no number of gigabytes"),
        (["--heads", "0"], "--heads"),
        (["--output", "head.gguf"], "ends in .safetensors"),
        (["--output", "no/folder/head.safetensors"], "no folder"),
        (["--output", "head.safetensors", "--as", "name"], "--as"),
        (["--plot", "curve.txt"], "neither SVG nor PNG"),
    ],
)
def test_what_cannot_be_meant(
    capsys: pytest.CaptureFixture[str], target: Path, store: Store, options: list[str], part: str
) -> None:
    refused(capsys, ["train", "medusa", str(target), *options], part, code=2)
    assert not store.home.exists()


def test_an_unknown_kind(capsys: pytest.CaptureFixture[str], target: Path, store: Store) -> None:
    refused(capsys, ["train", "hydra", str(target)], "hydra", code=2)


def test_without_the_extra(
    capsys: pytest.CaptureFixture[str],
    target: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else known(name)
    )
    refused(capsys, ["train", "medusa", str(target)], "PyTorch, which is not installed", code=2)


@needs_torch
def test_trained_and_kept(
    capsys: pytest.CaptureFixture[str], target: Path, store: Store, tmp_path: Path
) -> None:
    assert main(order(target, tmp_path, "--heads", "2", "--vocabulary", "64", "--json")) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["kept"] == "tiny"
    assert found["kind"] == "medusa"
    assert len(found["before"]) == len(found["after"]) == 2
    assert found["curve"][0]["loss"] is None
    assert "tokens a round" in err
    pair = store.read().pair("tiny")
    assert pair is not None
    assert store.read().with_id(pair.draft).source.command.startswith("edgespec train medusa ")


@needs_torch
def test_written_with_its_curve(
    capsys: pytest.CaptureFixture[str], target: Path, store: Store, tmp_path: Path
) -> None:
    head, plot = tmp_path / "head.safetensors", tmp_path / "curve.svg"
    assert main(order(target, tmp_path, "--output", str(head), "--plot", str(plot))) == 0
    out, _ = capsys.readouterr()
    assert "tokens a round" in out
    assert head.stat().st_size > 1000
    assert "held-out" in plot.read_text()
    assert store.read().names() == []
    refused(capsys, order(target, tmp_path, "--output", str(head)), "exists already", code=2)


@needs_torch
def test_interrupted_all_is_kept(target: Path, store: Store, tmp_path: Path) -> None:
    with started(*order(target, tmp_path, "--tokens", "100000")) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "All that was done is kept" in err
    assert "Traceback" not in err
    (folder,) = (store.home / "training").iterdir()
    assert not list(folder.glob("*.part"))


POINTS = tuple(
    Point(10 * n, 5000 * n, 60.0 * n, float("nan") if n == 0 else 5.0 / n, (n / 40, n / 80))
    for n in range(21)
)


def test_the_table_says_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "head"
    path.write_bytes(b"12345")
    made = Made(path, POINTS, 20, (0.01, 0.0), (0.4567, 0.2), 90_000, 8000, 600.0, 0.975)
    text = describe(made)
    for part in ("1 right", "2 in a row", "1.0%", "45.7%", "1.01", "1.66", "90000", "97.5%"):
        assert part in text
    assert facts(made)["tokens_a_round"] == pytest.approx(1.6567)
    assert json.dumps(facts(made), allow_nan=False)
    assert "nan" not in text
    assert sentence(POINTS[0]) == "step 0, 0:00: right 0% 0%: 1.00 tokens a round"
    assert "loss 2.50" in sentence(POINTS[2])


def test_a_long_curve_is_thinned() -> None:
    found = thinned(POINTS, 5)
    assert [point.step for point in found] == [0, 50, 100, 150, 200]
    assert thinned(POINTS[:3], 5) == list(POINTS[:3])
