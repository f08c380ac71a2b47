"""Several programs at once, and programs that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from edgespec.history.store import History
from tests.history.talking import ids, run_sql, talk, texts

ROOT = Path(__file__).parents[2]

STREAM = """
import sys, threading
from pathlib import Path
from edgespec.history.recorder import Recorder
from edgespec.history.store import History

recorder = Recorder(lambda: History.open(Path(sys.argv[1])), print)
recorder.begin("question", model="m")
pause = threading.Event()
for number in range(100_000):
    recorder.grow(f"{number} ")
    print(number, flush=True)
    pause.wait(0.005)
"""

TALK = """
import sys
from pathlib import Path
from edgespec.history.store import History

history, name, shared = History.open(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
print("open", flush=True)
sys.stdin.readline()
own = history.create(title=name)
last, below = None, None
if shared:
    below = history.path(shared)[0].id
for number in range(40):
    last = history.add(own, last, "user", f"{name} {number}")
    if shared:
        history.add(shared, below, "assistant", f"{name} {number}")
        history.update(below, f"question, says {name}", complete=True)
for notice in history.notices:
    print(notice)
history.close()
"""

FULL = """
import resource, sys
from pathlib import Path
from edgespec.history.recorder import Recorder
from edgespec.history.store import History

place = Path(sys.argv[1])
History.open(place).close()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (place.stat().st_size + 65536, hard))
problems = []
recorder = Recorder(lambda: History.open(place), problems.append)
recorder.begin("question")
recorder.finish("long " * 100_000, True)
assert not recorder.flush(60)
assert len(problems) == 1 and "kept in memory" in problems[0], problems
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
while not recorder.flush(60):
    pass
assert problems[1:] == [""], problems
assert recorder.close(60)
"""


@contextmanager
def started(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_killed_while_it_streams(place: Path) -> None:
    """What came more than a second before is there. A second of work, so that a halt does not count."""
    with started(STREAM, str(place)) as process:
        for _ in range(100):
            last = int(line(process))
        for _ in range(200):  # each takes 5 ms at least
            assert line(process)
        process.kill()
        process.wait()
    with closing(History.open(place)) as history:
        assert history.notices == ()
        (one,) = history.list()
        question, answer = history.path(one.id)
        assert (question.content, question.complete) == ("question", True)
        assert (answer.complete, answer.model) == (False, "m")
        kept = answer.content.split()
        assert kept == [str(number) for number in range(len(kept))]
        assert len(kept) > last
        assert [hit.summary.id for hit in history.search("99")] == [one.id]


def go(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Let them begin together; what they say."""
    for process in processes:
        assert line(process) == "open\n"
    said = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=110)
        assert process.returncode == 0
        said.append(out)
    return said


def test_several_at_once_lose_nothing(place: Path) -> None:
    with closing(History.open(place)) as history:
        shared = talk(history, "question")
    names = ["one", "two", "three"]
    with (
        started(TALK, str(place), names[0], str(shared)) as first,
        started(TALK, str(place), names[1], str(shared)) as second,
        started(TALK, str(place), names[2], str(shared)) as third,
    ):
        go([first, second, third])
    with closing(History.open(place)) as history:
        for name in names:
            (own,) = (one for one in history.list() if one.title == name)
            assert texts(history, own.id) == [f"{name} {number}" for number in range(40)]
        answers = history.whole(shared).entries[1:]
        assert sorted(entry.content for entry in answers) == sorted(
            f"{name} {number}" for name in names for number in range(40)
        )
        assert len(history.siblings(answers[0].id)) == 120
        assert len(ids(history, shared)) == 2
    assert run_sql(place, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("damaged", [False, True])
def test_several_that_begin_it_together(place: Path, damaged: bool) -> None:
    if damaged:
        place.parent.mkdir()
        place.write_bytes(b"damaged " * 1000)
    names = ["one", "two", "three"]
    with (
        started(TALK, str(place), names[0], "0") as first,
        started(TALK, str(place), names[1], "0") as second,
        started(TALK, str(place), names[2], "0") as third,
    ):
        said = go([first, second, third])
    with closing(History.open(place)) as history:
        assert sorted(one.title for one in history.list()) == sorted(names)
        for one in history.list():
            assert texts(history, one.id) == [f"{one.title} {number}" for number in range(40)]
    asides = list(place.parent.glob("*damaged*.db"))
    assert [path.read_bytes() for path in asides] == [b"damaged " * 1000] * damaged
    assert sum("set aside" in text for text in said) == damaged, "one of them says so"


@pytest.mark.skipif(os.name == "nt", reason="limits are POSIX's")
def test_a_disk_without_room_in_a_process_of_its_own(place: Path) -> None:
    with started(FULL, str(place)) as process:
        assert process.wait(110) == 0
    with closing(History.open(place)) as history:
        (one,) = history.list()
        assert texts(history, one.id) == ["question", "long " * 100_000]
