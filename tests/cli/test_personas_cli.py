"""`edgespec personas`, `--persona`, and what wins over what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from edgespec import personas
from edgespec.cli import layers
from edgespec.cli.main import main
from edgespec.cli.options import chat_parser, settings_from
from edgespec.persona_file import read
from edgespec.personas import load_all
from edgespec.settings import Settings
from tests.cli.conftest import Run, refused
from tests.profiles.machines import machine


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty, on a desktop without a profile."""
    path = tmp_path / "personas"
    path.mkdir()
    profile = tmp_path / "profile.yaml"
    profile.touch()
    monkeypatch.setenv("EDGESPEC_PROFILE", str(profile))
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setattr(personas, "user_folder", lambda: path)
    monkeypatch.setattr("edgespec.cli.personas.user_folder", lambda: path)
    monkeypatch.setattr(layers, "this_machine", lambda: machine(cores=8))
    monkeypatch.setattr(layers, "usable_vendors", frozenset)
    return path


def settings(*options: str) -> Settings:
    return settings_from(chat_parser("chat", "").parse_args(options))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["personas", *arguments, "--json"]) == 0
    return cast("dict[str, Any]", json.loads(capsys.readouterr().out))


def test_the_list_says_where_each_comes_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.yaml").write_text("about: my own\npair: some-pair\n")
    (folder / "bad.yaml").write_text("systm: x\n")
    assert main(["personas"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].split() == ["NAME", "ABOUT", "PREFERS", "FROM"]
    rows = {line.split()[0]: line for line in lines[1:]}
    assert rows["coder"].endswith("builtin")
    assert rows["mine"].endswith(str(folder / "mine.yaml"))
    assert "my own" in rows["mine"]
    assert "some-pair" in rows["mine"]
    assert "bad" not in rows
    assert printed.err.startswith(f"Left out: {folder / 'bad.yaml'}: there is no key systm.")
    assert main(["personas", "list"]) == 0
    assert capsys.readouterr().out == printed.out


def test_the_list_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.yaml").write_text("systm: x\n")
    found = shown(capsys)
    coder = found["personas"][1]
    assert (coder["name"], coder["source"]) == ("coder", "builtin")
    assert coder["sampling"]["temperature"] == 0.2
    assert "code" in coder["system"]
    assert len(found["problems"]) == 1
    assert main(["personas", "--names"]) == 0
    assert capsys.readouterr().out.split() == list(load_all().found)


def test_one_is_shown_as_a_file_of_ones_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["personas", "show", "Coder"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# coder, from: builtin\ntitle: Coder\n")
    (folder / "copy.yaml").write_text(text)
    copy, coder = read(folder / "copy.yaml", "copy"), load_all().named("coder")
    assert (copy.system, copy.sampling, copy.pair) == (coder.system, coder.sampling, coder.pair)
    assert shown(capsys, "show", "coder")["title"] == "Coder"


def test_the_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["personas", "path"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    assert shown(capsys, "path") == {"path": str(folder), "exists": True}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["show"], ["No persona is named", "assistant, coder"]),
        (["show", "codr"], ["'codr'", "coder?"]),
        (["coder"], ["coder", "list"]),
        (["list", "coder"], ["takes no name", "edgespec personas show coder"]),
        (["path", "coder"], ["takes no name"]),
    ],
)
def test_what_cannot_be_meant(
    arguments: Sequence[str], parts: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["personas", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for part in parts:
        assert part in printed.err


def test_a_persona_wins_over_the_profile_and_options_over_both(tmp_path: Path) -> None:
    (tmp_path / "profile.yaml").write_text("sampling: {temperature: 0.6, top_k: 7, top_p: 0.5}\n")
    plain = settings()
    assert (plain.persona, plain.system) == ("", None)
    assert (plain.sampling.temperature, plain.sampling.top_k) == (0.6, 7)
    coder = settings("--persona", "coder")
    assert (coder.sampling.temperature, coder.sampling.top_k, coder.sampling.top_p) == (0.2, 7, 0.9)
    assert coder.persona == "coder"
    assert coder.system == load_all().named("coder").system
    told = settings("--persona", "coder", "--temp", "0", "--system", "Mine.")
    assert (told.sampling.temperature, told.sampling.top_p, told.system) == (0, 0.9, "Mine.")


def test_an_option_wins_also_where_it_says_what_the_default_is() -> None:
    default = settings().sampling
    told = settings("--temp", str(default.temperature), "--persona", "coder", "--system", "")
    assert told.sampling.temperature == default.temperature
    assert told.system == ""


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("--temp", "temperature"),
        ("--top-k", "top_k"),
        ("--top-p", "top_p"),
        ("--min-p", "min_p"),
        ("--repeat-penalty", "repeat_penalty"),
        ("--presence-penalty", "presence_penalty"),
        ("--frequency-penalty", "frequency_penalty"),
    ],
)
def test_every_option_of_sampling_wins(folder: Path, option: str, field: str) -> None:
    (folder / "mine.yaml").write_text(f"sampling: {{{field}: 1}}\n")
    assert getattr(settings("--persona", "mine").sampling, field) == 1
    value = "0" if field == "top_k" else "0.5"
    assert getattr(settings("--persona", "mine", option, value).sampling, field) == float(value)


def test_what_is_fixed_stays_for_a_persona_that_is_chosen_later() -> None:
    plain = settings("--temp", "0")
    later = personas.apply(plain, load_all().named("coder"))
    assert (later.sampling.temperature, later.sampling.top_p) == (0, 0.9)
    back = personas.apply(later, load_all().named("assistant"))
    assert (back.sampling, back.system) == (plain.sampling, None)


@pytest.mark.parametrize("command", [["run", "hi"], ["chat"]])
def test_an_unknown_persona_is_told_before_anything_is_loaded(
    edgespec: Run, command: Sequence[str]
) -> None:
    refused(edgespec(*command, "--persona", "codr"), "'codr'", "Did you mean coder?", code=2)


def test_a_model_that_is_named_is_taken_and_a_preferred_one_asked_for() -> None:
    named = settings("--persona", "coder", "--model", "some.gguf")
    assert (named.load.model, named.notices) == ("some.gguf", ())
    unnamed = settings("--persona", "coder")
    assert unnamed.load.model is None
    assert "edgespec pull qwen2.5-coder-1.5b" in unnamed.notices[0]
