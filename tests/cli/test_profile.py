"""`edgespec profile`, and what profiles do to the options of the other commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from edgespec.cli import bench, layers
from edgespec.cli.main import main
from edgespec.cli.options import chat_parser, settings_from
from edgespec.settings import Settings
from profiles.profile import KEYS
from profiles.tuned import Key, Recommendation, Table, Tuned, TunedStore
from tests.cli.conftest import Run, refused
from tests.conftest import ModelFiles
from tests.profiles.machines import machine

DEFAULT = "profiles/builtin/default.yaml"
DESKTOP = "profiles/builtin/desktop-cpu.yaml"


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, empty, on a desktop with eight cores."""
    path = tmp_path / "mine.yaml"
    path.touch()
    monkeypatch.setenv("EDGESPEC_PROFILE", str(path))
    monkeypatch.setattr(layers, "this_machine", lambda: machine(cores=8))
    monkeypatch.setattr(layers, "usable_vendors", frozenset)
    return path


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["profile", "show", "--json", *options]) == 0
    return cast("dict[str, Any]", json.loads(capsys.readouterr().out))


def settings(*options: str) -> Settings:
    return settings_from(chat_parser("chat", "").parse_args(options))


def test_every_key_with_its_source(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text("sampling: {top_k: 7}\n")
    found = shown(capsys, "--temp", "0", "--threads", "3", "--no-mmap")
    assert list(found["settings"]) == list(KEYS)
    expected = {
        "context": (8192, DESKTOP),
        "draft_length": ("auto", DEFAULT),
        "threads": (3, "--threads"),
        "gpu_layers": ("auto", DEFAULT),
        "kv_type": ("auto", DEFAULT),
        "mmap": (False, "--mmap"),
        "sampling.temperature": (0, "--temp"),
        "sampling.top_k": (7, str(mine)),
        "sampling.top_p": (0.95, DEFAULT),
    }
    for key, (value, source) in expected.items():
        assert found["settings"][key] == {"value": value, "source": source}
    assert found["layers"] == [DEFAULT, DESKTOP, str(mine), "--threads", "--mmap", "--temp"]
    assert found["user_file"] == str(mine)


def test_the_table(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text("mmap: true\n")
    assert main(["profile", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["KEY", "VALUE", "SET", "BY"]
    cells = {line.split()[0]: line.split()[1:] for line in lines[1:-2]}
    assert list(cells) == list(KEYS)
    assert cells["mmap"] == ["true", str(mine)]
    assert cells["context"] == ["8192", DESKTOP]
    assert lines[-1].endswith(f"{DEFAULT}, {DESKTOP}, {mine}")


def test_the_path(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text("not: valid\n")
    assert main(["profile", "path"]) == 0, "also where the file is broken"
    assert capsys.readouterr().out == f"{mine}\n"
    assert main(["profile", "path", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(mine), "exists": True}


def test_the_usual_path(edgespec: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGESPEC_PROFILE")
    found = json.loads(edgespec("profile", "path", "--json").stdout)
    assert Path(found["path"]).name == "profile.yaml"
    assert Path(found["path"]).parent.name == "edgespec"
    assert found["exists"] is False


@pytest.mark.parametrize(
    "command", [["run", "hi"], ["bench", "--help"], ["profile", "show"], ["chat"]]
)
def test_a_broken_profile_is_told_before_anything_else(
    edgespec: Run, mine: Path, command: Sequence[str]
) -> None:
    mine.write_text("context: 4096\nsampling: {top_k: many}\n")
    refused(edgespec(*command), str(mine), "sampling.top_k", "EDGESPEC_PROFILE", code=2)


def test_help_and_version_do_not_care(edgespec: Run, mine: Path) -> None:
    mine.write_text("- nonsense\n")
    for command in (["--help"], ["--version"], ["profile", "path"], ["doctor", "--help"]):
        assert edgespec(*command).returncode == 0


def test_an_option_out_of_range_is_named(edgespec: Run) -> None:
    refused(edgespec("profile", "show", "--top-p", "3"), "--top-p", "sampling.top_p", code=2)


def test_the_users_file_becomes_what_is_loaded(mine: Path) -> None:
    mine.write_text(
        "context: 100\ndraft_length: 5\nthreads: 2\ngpu_layers: 9\nkv_type: q8_0\nmmap: true\n"
        "sampling: {temperature: 0.1, top_k: 2, top_p: 0.3, min_p: 0.4, repeat_penalty: 1.5}\n"
    )
    found = settings()
    load, sampling = found.load, found.sampling
    assert (load.context, load.draft_length, load.threads) == (100, 5, 2)
    assert (load.gpu_layers, load.kv_type, load.mmap) == (9, "q8_0", True)
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.1, 2, 0.3)
    assert (sampling.min_p, sampling.repeat_penalty) == (0.4, 1.5)


def test_options_win_over_the_users_file(mine: Path) -> None:
    mine.write_text(
        "context: 100\ndraft_length: 5\nthreads: 2\ngpu_layers: 9\nkv_type: q4_0\nmmap: true\n"
    )
    options = ["--ctx", "7", "--draft-length", "auto", "--threads", "auto", "--gpu-layers", "auto"]
    load = settings(*options, "--kv-type", "auto", "--no-mmap").load
    assert (load.context, load.draft_length, load.threads) == (7, None, None)
    assert (load.gpu_layers, load.kv_type, load.mmap) == (None, None, False)


def test_auto_is_the_default() -> None:
    load = settings().load
    assert (load.draft_length, load.threads, load.mmap) == (None, None, False)
    assert (load.gpu_layers, load.kv_type) == (None, None)
    assert load.context == 8192


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("--draft-length", "-1", "less than 0"),
        ("--draft-length", "few", "auto"),
        ("--draft-length", "32", "more than 31"),
        ("--threads", "0", "less than 1"),
        ("--threads", "513", "more than 512"),
        ("--gpu-layers", "-2", "less than -1"),
        ("--gpu-layers", "1.5", "not a whole number"),
    ],
)
def test_numbers_that_are_none(edgespec: Run, option: str, value: str, part: str) -> None:
    refused(edgespec("run", "hi", f"{option}={value}"), option, part, code=2)


def test_numbers_and_words_that_an_option_takes() -> None:
    assert settings("--draft-length", "0").load.draft_length == 0
    assert settings("--gpu-layers", "-1").load.gpu_layers == -1
    assert settings("--gpu-layers", "0").load.gpu_layers == 0
    assert settings("--threads", "12").load.threads == 12


def test_help_shows_what_is_in_force(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text("context: 1234\n")
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "context size in tokens (default: 1234)" in capsys.readouterr().out


def test_a_benchmark_keeps_the_models_own_distribution(mine: Path) -> None:
    mine.write_text("context: 321\nsampling: {temperature: 0.9, top_k: 3}\n")
    options = bench.parser().parse_args(["--prompts", "p"])
    assert (options.temp, options.top_k, options.top_p, options.min_p) == (0, 0, 1, 0)
    assert options.ctx == 321


def test_every_key_has_an_option() -> None:
    from edgespec.cli.profile import _OPTIONS

    assert set(KEYS) == set(_OPTIONS)


def test_what_was_measured_of_a_model_is_a_layer(
    capsys: pytest.CaptureFixture[str],
    models: ModelFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TunedStore, "default", classmethod(lambda cls: cls(tmp_path)))
    target = models["rambler"]
    key = Key(hardware=machine(cores=8).digest, build="b", target="t", draft=None, setup="")
    TunedStore(tmp_path).save(
        Tuned(
            key=key,
            target_name=target.stem,
            draft_name=None,
            measured_at="2026-01-01T00:00:00+00:00",
            quick=False,
            tables=(Table(depth=0, verify={1: 0.1}, draft={}),),
            threads=5,
            batch_threads=5,
            recommendation=Recommendation(method="auto", why="", pays_from=None, gains={}),
        )
    )
    source = str(tmp_path / f"{key.name}.json")
    found = shown(capsys, "--model", str(target))["settings"]["threads"]
    assert found == {"value": 5, "source": source}
    assert shown(capsys, "--model", str(target), "--threads", "2")["settings"]["threads"] == {
        "value": 2,
        "source": "--threads",
    }
    assert shown(capsys)["settings"]["threads"]["source"] == DEFAULT
