"""`edgespec bench`: the published format, and prompts that are no prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, options, refused
from tests.conftest import ModelFiles

KEYS = {
    "category",
    "temperature",
    "method",
    "draft_length",
    "tokens_per_second",
    "speedup",
    "acceptance",
    "tokens_per_round",
    "ttft_s",
    "peak_rss_bytes",
    "same_as_plain",
}


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    lines = [
        {"id": "a", "category": "talk", "messages": [{"role": "user", "content": "go on"}]},
        {"id": "b", "category": "code", "messages": [{"role": "user", "content": "and on"}]},
    ]
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


@pytest.mark.parametrize("method", ["draft", "lookup"])
def test_rows(edgespec: Run, models: ModelFiles, prompts: Path, method: str) -> None:
    draft = {"draft": str(models["rambler"]), "lookup": "lookup"}[method]
    more = ["--prompts", str(prompts), "--lengths", "2,4", "--max-tokens", "24", "--json"]
    done = edgespec("bench", *options(models["rambler"]), "--draft", draft, *more)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    arms = [("plain", 0), (method, 2), (method, 4)]
    assert [(r["category"], r["method"], r["draft_length"]) for r in rows] == [
        (category, *arm) for category in ("talk", "code") for arm in arms
    ]
    for row in rows:
        assert set(row) == KEYS
        assert row["same_as_plain"] is True
        assert row["temperature"] == 0
        assert row["tokens_per_second"] > 0
        assert row["ttft_s"] > 0
        assert row["peak_rss_bytes"] > 2**20
        if row["method"] == "plain":
            assert (row["speedup"], row["acceptance"], row["tokens_per_round"]) == (1, None, 1)
        if row["method"] == "draft":
            assert row["acceptance"] == 1
            assert row["tokens_per_round"] > 2
    assert "prompt 2 of 2" in done.stderr


def test_real_weights_warm(edgespec: Run, models: ModelFiles, prompts: Path) -> None:
    more = ["--prompts", str(prompts), "--lengths", "2", "--max-tokens", "4", "--json"]
    target = options(models.smollm2, "--temp", "0.8")
    done = edgespec("bench", *target, "--draft", models.draft("self"), *more)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["same_as_plain"] for row in rows} == {None}
    assert {row["method"] for row in rows} == {"plain", "draft"}


def test_a_table_for_people(edgespec: Run, models: ModelFiles, prompts: Path) -> None:
    more = ["--prompts", str(prompts), "--lengths", "2", "--max-tokens", "8"]
    done = edgespec("bench", *options(models["rambler"]), "--draft", "lookup", *more)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].split()[:3] == ["category", "method", "length"]
    assert "outside llama.cpp" in done.stdout


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("not json", "JSON"),
        ('{"category": "x"}', "messages"),
        ('{"category": "x", "messages": [{"role": "poet", "content": ""}]}', "role"),
        ('{"category": "x", "messages": []}', "messages"),
    ],
)
def test_a_bad_line_is_named(
    edgespec: Run, models: ModelFiles, prompts: Path, line: str, part: str
) -> None:
    prompts.write_text(prompts.read_text() + line + "\n")
    done = edgespec("bench", *options(models["rambler"]), "--prompts", str(prompts))
    refused(done, str(prompts), "line 3", part, code=2)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_no_prompts(edgespec: Run, models: ModelFiles, prompts: Path, text: str) -> None:
    prompts.write_text(text)
    done = edgespec("bench", *options(models["rambler"]), "--prompts", str(prompts))
    refused(done, "no prompts", code=2)


def test_no_such_file(edgespec: Run, tmp_path: Path, models: ModelFiles) -> None:
    missing = ["--prompts", str(tmp_path / "none.jsonl")]
    refused(edgespec("bench", *options(models["rambler"]), *missing), "none.jsonl", code=2)


@pytest.mark.parametrize("lengths", ["0", "a", "", "-1"])
def test_lengths_that_are_none(edgespec: Run, prompts: Path, lengths: str) -> None:
    refused(edgespec("bench", "--prompts", str(prompts), f"--lengths={lengths}"), code=2)


def test_a_prompt_that_does_not_fit(edgespec: Run, models: ModelFiles, prompts: Path) -> None:
    message = {"role": "user", "content": "word " * 600}
    prompts.write_text(json.dumps({"id": "long", "category": "x", "messages": [message]}))
    done = edgespec("bench", *options(models["rambler"]), "--prompts", str(prompts))
    refused(done, "'long'", "--ctx")
