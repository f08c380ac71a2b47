"""`edgespec run`: the answer on stdout, all else on stderr."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Run, options, refused
from tests.conftest import ModelFiles
from tests.real.rig import METHODS

COUNT = "Count from 1 to 30, separated by commas."


@pytest.mark.parametrize("method", METHODS)
def test_the_answer_alone_is_on_stdout(edgespec: Run, models: ModelFiles, method: str) -> None:
    draft = ["--draft", models.draft(method), "--draft-length", "4"]
    done = edgespec("run", COUNT, *options(models.smollm2), "--max-tokens", "12", *draft)
    assert done.returncode == 0
    assert done.stdout == "1. 1\n2. 2\n3.\n"
    assert done.stderr == "(cut at --max-tokens)\n"


def test_without_a_model_the_small_one_answers_and_says_what_it_is(edgespec: Run) -> None:
    asked = ("run", "Say only the word yes.", "--temp", "0", "--ctx", "256", "--threads", "1")
    edgespec(*asked)  # the first use of a pair says that it measures, whichever test comes first
    done = edgespec(*asked)
    assert done.returncode == 0
    assert done.stdout == "Yes.\n"
    assert "SmolLM2" in done.stderr
    assert "--model" in done.stderr
    assert len(done.stderr.splitlines()) == 1, "no line of llama.cpp's own"


def test_stdin_joins_the_prompt(edgespec: Run, tiny: Sequence[str]) -> None:
    more = [*tiny, "--max-tokens", "6"]
    both = edgespec("run", "first part", *more, stdin="second part\n")
    as_one = edgespec("run", *more, stdin="first part\n\nsecond part")
    alone = edgespec("run", "first part", *more)
    assert both.returncode == as_one.returncode == alone.returncode == 0
    assert both.stdout == as_one.stdout
    assert both.stdout != alone.stdout


def test_no_prompt_at_all(edgespec: Run, tiny: Sequence[str]) -> None:
    refused(edgespec("run", *tiny), "no prompt", "edgespec run", code=2)


def test_a_method_is_named_or_refused(
    edgespec: Run, tiny: Sequence[str], models: ModelFiles
) -> None:
    more = [*tiny, "--max-tokens", "24", "--stats"]
    done = edgespec("run", "hello", *more, "--method", "lookup", "--draft-length", "3")
    plain = edgespec("run", "hello", *more, "--method", "plain")
    assert done.returncode == plain.returncode == 0
    assert done.stdout == plain.stdout
    assert "23 rounds of 1.00 tokens" in plain.stderr
    assert "lookup" in done.stderr
    refused(edgespec("run", "hello", *tiny, "--method", "draft"), "needs a draft model", code=2)
    idle = edgespec("run", "hello", *more, "--method", "lookup", "--draft", str(models["bad"]))
    assert "bad.gguf is not loaded: nothing asks for a draft model." in idle.stderr
    refused(edgespec("run", "hello", *tiny, "--method", "magic"), "--method", "lookup", code=2)


def test_the_numbers_go_to_stderr(edgespec: Run, models: ModelFiles) -> None:
    draft = ["--draft", str(models["rambler"]), "--draft-length", "4"]
    more = [*options(models["rambler"]), "--max-tokens", "11", "--stats"]
    done = edgespec("run", "hello", *more, *draft)
    assert done.returncode == 0
    line = done.stderr.splitlines()[-1]
    assert line.startswith("11 tokens, ")
    assert re.search(r"[\d.]+ tok/s", line)
    assert "acceptance 100% (8 of 8 tested)" in line
    assert "2 rounds of 5.00 tokens" in line
    assert "tok/s" not in done.stdout


def test_a_seed_repeats_an_answer(edgespec: Run, models: ModelFiles) -> None:
    def answer(*more: str) -> str:
        done = edgespec("run", "hello", *options(models["bytes"]), "--temp", "1", *more)
        assert done.returncode == 0
        return done.stdout

    length = ("--max-tokens", "20")
    assert answer("--seed", "7", *length) == answer("--seed", "7", *length)
    assert answer("--seed", "7", *length) != answer("--seed", "8", *length)


def test_reproducible_tells_a_seed_that_repeats_the_answer_with_another_draft(
    edgespec: Run, models: ModelFiles
) -> None:
    model = models["bytes"]
    asked = ("run", "hello", *options(model), "--temp", "1", "--max-tokens", "20")
    told = edgespec(*asked, "--reproducible", "--draft", "none")
    seed = re.search(r"--seed (\d+) bring", told.stderr)
    assert seed
    draft = ("--draft", str(model), "--draft-length", "4", "--stats")
    again = edgespec(*asked, "--seed", seed[1], *draft)
    assert again.stdout == told.stdout != ""
    assert "acceptance 100%" in again.stderr, "the draft has the target's noise"
    assert "bring" not in again.stderr


@pytest.mark.parametrize("method", METHODS)
def test_a_stop_string(edgespec: Run, models: ModelFiles, method: str) -> None:
    draft = ["--draft", models.draft(method), "--draft-length", "16"]
    stops = ["--stop", "3\n4", "--stop", "never"]
    done = edgespec("run", COUNT, *options(models.smollm2), "--max-tokens", "40", *draft, *stops)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1. 1\n2. 2\n3. \n", "")


def test_more_context_than_the_model_knows_is_no_error(edgespec: Run, tiny: Sequence[str]) -> None:
    done = edgespec("run", "hello", *tiny, "--ctx", "100000000", "--max-tokens", "2")
    assert done.returncode == 0


def test_a_prompt_that_does_not_fit(edgespec: Run, tiny: Sequence[str]) -> None:
    refused(edgespec("run", *tiny, stdin="word " * 600), "--ctx")


def test_a_chat_template_by_name_by_file_and_by_neither(
    edgespec: Run, tiny: Sequence[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    more = [*tiny, "--max-tokens", "6"]
    answers = {
        choice: edgespec("run", "hello", *more, "--chat-template", choice)
        for choice in ("chatml", str(file))
    }
    assert [done.returncode for done in answers.values()] == [0, 0]
    assert [done.stderr for done in answers.values()] == ["(cut at --max-tokens)\n"] * 2
    assert len({done.stdout for done in answers.values()}) == 2
    nonsense = edgespec("run", "hello", *more, "--chat-template", "nonsense")
    refused(nonsense, "'nonsense'", "chatml", code=2)


def test_a_file_without_a_template_is_used_with_a_warning(
    edgespec: Run, models: ModelFiles
) -> None:
    more = ["--max-tokens", "3"]
    done = edgespec("run", "hello", *options(models["no-template"]), *more)
    assert done.returncode == 0
    assert "chatml" in done.stderr
    assert "--chat-template" in done.stderr


def test_a_broken_template_of_ones_own_is_an_error(
    edgespec: Run, tiny: Sequence[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("{% for %}")
    refused(edgespec("run", "hello", *tiny, "--chat-template", str(file)), "line 1")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["run", "hello", "--no-such-option"], ["--no-such-option", "edgespec run --help"]),
        (["run", "hello", "--max-tokens", "0"], ["--max-tokens", "less than 1"]),
        (["run", "hello", "--temp", "warm"], ["--temp", "warm"]),
        (["run", "hello", "--temp", "-1"], ["temperature", "0 or more"]),
        (["run", "hello", "--temp", "nan"], ["temperature"]),
        (["run", "hello", "--top-p", "2"], ["top-p"]),
        (["run", "hello", "--max-tok", "3"], ["--max-tok"]),
        (["bench"], ["--prompts"]),
        (["sing"], ["'sing'", "run", "bench", "chat"]),
    ],
)
def test_what_cannot_be_meant(edgespec: Run, arguments: list[str], parts: list[str]) -> None:
    refused(edgespec(*arguments), *parts, code=2)


def test_an_empty_stop_string(edgespec: Run, tiny: Sequence[str]) -> None:
    refused(edgespec("run", "hello", *tiny, "--stop", ""), "stop string", code=2)


def test_no_command_shows_the_usage(edgespec: Run) -> None:
    done = edgespec()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: edgespec")


@pytest.mark.parametrize("command", [(), ("run",), ("bench",), ("chat",)])
def test_help(edgespec: Run, command: tuple[str, ...]) -> None:
    done = edgespec(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: edgespec")


def test_chat_in_a_pipe_says_what_to_use(edgespec: Run) -> None:
    refused(edgespec("chat"), "terminal", "edgespec run", code=2)
