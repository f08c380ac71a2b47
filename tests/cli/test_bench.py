"""`edgespec bench`: the published format, and prompts that are no prompts."""

from __future__ import annotations

import csv
import io
import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import LIMIT, Run, options, refused, started
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
    "speedup_low",
    "speedup_high",
    "rows_per_round",
    "parted_logits",
    "memory_bytes",
    "worst_prompt",
}


@pytest.mark.parametrize("method", ["draft", "lookup"])
def test_rows(edgespec: Run, models: ModelFiles, prompts: Path, method: str) -> None:
    draft = {"draft": str(models["rambler"]), "lookup": "lookup"}[method]
    more = ["--prompts", str(prompts), "--lengths", "2,4", "--max-tokens", "24", "--json"]
    more += ["--methods", method]
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
            assert (row["rows_per_round"], row["memory_bytes"]) == (1, 0)
        if row["method"] == "draft":
            assert row["acceptance"] == 1
            assert row["rows_per_round"] >= row["tokens_per_round"] > 2
            assert row["memory_bytes"] > 2**18
    assert "prompt 2 of 2" in done.stderr


def test_real_weights_warm(edgespec: Run, models: ModelFiles, prompts: Path) -> None:
    more = ["--prompts", str(prompts), "--lengths", "2", "--max-tokens", "4", "--json"]
    more += ["--methods", "draft"]
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
    lines = done.stdout.splitlines()
    assert lines[0] == "talk"
    assert lines[2].split()[:2] == ["method", "tok/s"]
    found = [line.split()[0] for line in lines[3:8]]
    assert (found[0], set(found[1:])) == ("plain", {"lookup", "suffix", "lookahead", "auto"})
    assert "all, the fastest first" in lines
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


@pytest.mark.parametrize("lengths", ["0", "a", "", "-1", "1,32"])
def test_lengths_that_are_none(edgespec: Run, prompts: Path, lengths: str) -> None:
    refused(edgespec("bench", "--prompts", str(prompts), f"--lengths={lengths}"), code=2)


def test_a_prompt_that_does_not_fit(edgespec: Run, models: ModelFiles, prompts: Path) -> None:
    message = {"role": "user", "content": "word " * 600}
    prompts.write_text(json.dumps({"id": "long", "category": "x", "messages": [message]}))
    more = ["--prompts", str(prompts), "--methods", "lookup"]  # for auto, passes are measured first
    done = edgespec("bench", *options(models["rambler"]), *more)
    refused(done, "'long'", "--ctx")


def test_all_that_the_pair_has_is_what_is_measured(
    edgespec: Run, models: ModelFiles, prompts: Path
) -> None:
    more = ["--prompts", str(prompts), "--lengths", "2", "--max-tokens", "8", "--json"]
    draft = ["--draft", str(models["rambler"])]
    done = edgespec("bench", *options(models["rambler"]), *draft, *more)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    methods = {row["method"] for row in found["rows"]}
    assert methods >= {"plain", "draft", "lookup"}
    assert {run["method"] for run in found["runs"]} == methods
    assert [run["id"] for run in found["runs"]] == ["a"] * (len(found["runs"]) // 2) + ["b"] * (
        len(found["runs"]) // 2
    )
    drafted = next(run for run in found["runs"] if run["method"] == "draft")
    assert set(drafted["sources"]) <= {"draft", ""}
    assert sum(drafted["sources"].values()) == drafted["rounds"] > 0
    assert drafted["tokens"] == 8
    assert found["complete"] is True
    assert found["setup"]["target"] == found["setup"]["draft"] == "rambler"
    assert found["setup"]["threads"] == 1


def test_no_draft_model_is_loaded_that_no_method_needs(
    edgespec: Run, models: ModelFiles, prompts: Path
) -> None:
    more = ["--prompts", str(prompts), "--methods", "lookup", "--lengths", "2", "--max-tokens", "4"]
    done = edgespec("bench", *options(models["rambler"]), *more, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["setup"]["draft"] is None


def test_temperatures_and_repeats(edgespec: Run, models: ModelFiles, prompts: Path) -> None:
    more = ["--prompts", str(prompts), "--methods", "lookup", "--lengths", "2", "--max-tokens", "8"]
    more += ["--temps", "0,0.8", "--repeats", "2", "--forget", "--csv"]
    done = edgespec("bench", *options(models["rambler"]), "--draft", "lookup", *more)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["temperature"] for row in rows] == ["0.0"] * 4 + ["0.8"] * 4
    assert "prompt 2 of 2, repetition 2 of 2, temperature 0.8, about" in done.stderr
    assert "none of these methods learns" in done.stderr


@pytest.mark.parametrize("rule", ["equal", "shared-noise"])
def test_sampled_texts_are_plain_decoding_s_where_a_seed_decides(
    edgespec: Run, models: ModelFiles, prompts: Path, rule: str
) -> None:
    more = ["--prompts", str(prompts), "--methods", "draft", "--lengths", "3", "--max-tokens", "12"]
    more += ["--draft", str(models["rambler"]), "--temps", "0.8", "--acceptance", rule, "--json"]
    done = edgespec("bench", *options(models["rambler"]), *more)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert {run["same_as_plain"] for run in runs} == {True}
    assert max(run["tokens_per_round"] for run in runs) > 1


def test_markdown_with_details_and_a_plot(
    edgespec: Run, models: ModelFiles, prompts: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "plot.svg"
    more = ["--prompts", str(prompts), "--methods", "lookup", "--lengths", "2", "--max-tokens", "8"]
    more += ["--markdown", "--details", "--plot", str(plot)]
    done = edgespec("bench", *options(models["rambler"]), "--draft", "lookup", *more)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("**talk**\n\n| method | tok/s |")
    assert "| prompt | method |" in done.stdout
    assert "<svg" in plot.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (["--methods", "magic"], "'magic'"),
        (["--methods", "draft"], "--draft"),
        (["--temps", "0,warm"], "'0,warm'"),
        (["--temps", "0,-1"], "temperature"),
        (["--temps", ""], "0,0.8"),
        (["--methods", "auto-draft"], "--draft"),
        (["--temps", "0", "--temp", "1"], "--temps"),
        (["--plot", "a.pdf"], ".svg"),
        (["--json", "--csv"], "--csv"),
        (["--compare-server", "http://a:b:c"], "--compare-server"),
        (["--compare-server", ""], "--compare-server"),
    ],
)
def test_what_cannot_be_asked(
    edgespec: Run, models: ModelFiles, prompts: Path, given: list[str], part: str
) -> None:
    target = [*options(models["rambler"]), "--prompts", str(prompts)]
    refused(edgespec("bench", *target, *given), part, code=2)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_what_was_finished_is_kept_when_it_is_ended(
    models: ModelFiles, prompts: Path, how: signal.Signals
) -> None:
    more = ["--prompts", str(prompts), "--methods", "lookup", "--lengths", "2", "--repeats", "9999"]
    with started("bench", *options(models["rambler"]), *more, "--max-tokens", "16") as process:
        assert process.stderr
        assert process.stdout
        while "repetition 2 of" not in (line := process.stderr.readline()):
            assert line, "it ended by itself"
        process.send_signal(how)
        out, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert out.startswith("talk\n\nmethod")
    assert "Stopped early" in out


def test_ctrl_c_before_anything_was_finished(models: ModelFiles, prompts: Path) -> None:
    more = [
        "--prompts",
        str(prompts),
        "--methods",
        "lookup",
        "--max-tokens",
        "8000",
        "--lengths",
        "1",
    ]
    with started("bench", *options(models.smollm2, "--ctx", "8192"), *more) as process:
        assert process.stderr
        while "prompt 1 of" not in (line := process.stderr.readline()):
            assert line, "it ended by itself"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert out == ""
    assert "before a prompt was finished" in err
    assert "Traceback" not in err
