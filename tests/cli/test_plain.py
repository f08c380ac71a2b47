"""`edgespec chat --plain` as people and pipes use it, on the small real model."""

from __future__ import annotations

import os
import re
import signal
from contextlib import closing
from pathlib import Path

import pytest

from edgespec.history.store import History
from tests.cli.conftest import LIMIT, Run, options, refused, started
from tests.cli.pseudo_terminal import terminal
from tests.cli.test_interrupt import stream
from tests.conftest import ModelFiles

COUNT = "Count from 1 to 30, separated by commas."
ESCAPES = re.compile(r"\x1b\[\?2004[hl]\r?")
"""What readline switches on and off so that a paste comes as one; nothing else may be there."""


def arguments(models: ModelFiles, *more: str) -> list[str]:
    chosen = options(models.smollm2, "--draft", "none", "--max-tokens", "12", *more)
    return ["chat", "--plain", *chosen]


def test_a_pipe_is_read_line_by_line_and_kept(
    edgespec: Run, models: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    done = edgespec(*arguments(models), stdin=f"{COUNT}\n\n/again\n/nonsense\n/help\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Answer: 1. 1\n2. 2\n3.\n" * 2
    assert done.stderr.count("(cut at --max-tokens; /continue goes on)\n") == 2
    assert re.search(r"\(12 tokens, \d+\.\d tokens a second, the first after \d", done.stderr)
    assert "There is no command /nonsense." in done.stderr
    assert "/quit" in done.stderr
    assert "You:" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    with closing(History.open()) as history:
        (summary,) = history.list()
        question, answer = history.path(summary.id)
        assert (question.content, answer.content) == (COUNT, "1. 1\n2. 2\n3.")
        assert not answer.complete
        assert answer.stats["tokens"] == 12
        assert len(history.siblings(answer.id)) == 2, "both answers"


def test_a_cut_answer_goes_on_without_being_said_again(edgespec: Run, models: ModelFiles) -> None:
    alone = options(models.smollm2, "--draft", "none", "--max-tokens", "24")
    whole = edgespec("run", COUNT, *alone)
    done = edgespec(*arguments(models), stdin=f"/continue\n{COUNT}\n/continue\n/quit\n/again\n")
    first, second = done.stdout.removeprefix("Answer: ").split("\nAnswer goes on: ")
    assert first + second == whole.stdout
    assert "There is no cut answer" in done.stderr
    assert done.returncode == 1, "one thing that was asked for could not be done"


def test_a_new_conversation_forgets_the_old_one(edgespec: Run, models: ModelFiles) -> None:
    question = "What is my name?\n"
    written = f"{question}My name is Ada.\n{question}/new\n{question}"
    done = edgespec(*arguments(models, "--system", "You are kind."), stdin=written)
    first, _, third, last = done.stdout.split("Answer: ")[1:]
    assert first == last != third


def test_lines_that_belong_together_and_bytes_that_are_no_text(models: ModelFiles) -> None:
    with started(*arguments(models, "--max-tokens", "2")) as process:
        lines = b'caf\xe9 \xff\\\nand more\n"""\none\ntwo\n"""\n'
        os.write(stream(process, "stdin").fileno(), lines)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err
    assert out.count("Answer: ") == 2


def test_an_answer_too_long_for_the_context_ends_nothing(edgespec: Run, models: ModelFiles) -> None:
    done = edgespec(*arguments(models), stdin=f"{'word ' * 600}\n{COUNT}\n")
    assert "--ctx" in done.stderr
    assert done.stdout == "Answer: 1. 1\n2. 2\n3.\n"
    assert done.returncode == 1


def test_ctrl_c_ends_a_pipe(models: ModelFiles) -> None:
    more = ["--max-tokens", "400", "--plain=line"]
    with started(*arguments(models, *more)) as process:
        stream(process, "stdin").write(f"{COUNT}\n{COUNT}\n")
        stream(process, "stdin").flush()
        assert stream(process, "stdout").readline() == "Answer: 1. 1\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 130
        assert "(stopped" in err
        assert "Traceback" not in err
        assert "Answer" not in out


def test_a_missing_file_is_told_before_anything_is_loaded(edgespec: Run, tmp_path: Path) -> None:
    refused(edgespec("chat", "--plain", "--model", str(tmp_path / "no.gguf")), "no.gguf")


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_terminal_stays_as_it_is(models: ModelFiles, term: str) -> None:
    with terminal(*arguments(models), TERM=term) as seen:
        seen.until("You: ")
        seen.type(f"{COUNT}\r")
        said = seen.until("You: ")
        assert "Answer: 1. 1\n2. 2\n3.\n" in said
        assert "12 tokens" in said
        seen.type("\x04")
        assert seen.end() == 0
    bare = ESCAPES.sub("", seen.shown) if term != "dumb" else seen.shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", bare), repr(seen.shown)


def test_ctrl_c_stops_the_answer_and_not_the_chat(models: ModelFiles) -> None:
    more = ["--max-tokens", "400", "--plain=line"]
    with terminal(*arguments(models, *more)) as seen:
        seen.until("You: ")
        seen.interrupt()
        assert "/quit leaves" in seen.until("You: ")
        seen.type(f"{COUNT}\r")
        seen.until("Answer: 1. 1\n")
        seen.type("\x03")
        rest = seen.until("You: ")
        assert "(stopped; /continue goes on)" in rest
        assert "400 tokens" not in rest
        seen.type("/continue\r")
        seen.until("Answer goes on: ")
        seen.type("\x03")
        seen.until("You: ")
        seen.type("/quit\r")
        assert seen.end() == 0
    assert "Traceback" not in seen.shown


def test_a_paste_of_several_lines_is_one_message(models: ModelFiles) -> None:
    readline = pytest.importorskip("readline")
    if readline._READLINE_RUNTIME_VERSION < 0x0700:
        pytest.skip("this line editor knows no bracketed paste")
    with terminal(*arguments(models, "--max-tokens", "1")) as seen:
        seen.until("You: ")
        seen.type("\x1b[200~Count from 1 to 30,\nseparated by commas.\x1b[201~\r")
        seen.until("Answer: ")
        seen.until("You: ")
        seen.type("\x04")
        assert seen.end() == 0
    assert seen.shown.count("Answer: ") == 1
    assert "\x1b[?2004hYou: " in seen.shown, "the terminal is asked to mark pastes"
    assert "\x1b[7m" not in seen.shown, "nothing is painted"
