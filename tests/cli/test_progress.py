"""One view of several files: painted over on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import io

import pytest

from edgespec.cli.progress import Painter, PlainLines, clock, describe, total
from model_registry.progress import Progress, State
from model_registry.sizes import human_size


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def at(done: int, name: str = "m.gguf", state: State = "downloading", note: str = "") -> Progress:
    return Progress(name, done, 1000, 100.0, (1000 - done) / 100, state, note)


def test_a_line() -> None:
    assert describe(at(250)) == "m.gguf   25%  250 B of 1.0 kB  100 B/s  0:08 left"
    assert describe(at(1000, state="done")) == "m.gguf  100%  1.0 kB of 1.0 kB  done"
    line = describe(at(1, state="retrying", note="The line broke."))
    assert line.endswith("trying again  The line broke.")
    assert "left" not in line
    assert describe(Progress("m", 0, 0, 0, None, "done")).startswith("m  100%")


def test_a_long_name_gives_way() -> None:
    line = describe(at(500, name="q" * 60 + "-q4_k_m.gguf"), 79)
    assert len(line) <= 79
    assert "q4_k_m.gguf" in line
    assert line.endswith("0:05 left")


def test_all_files_together() -> None:
    both = total([at(250), at(1000, "n.gguf", "done")])
    assert (both.done, both.total, both.speed, both.seconds_left) == (1250, 2000, 100, 7.5)
    assert both.state == "downloading"
    assert total([at(1000, state="done")]).state == "done"


def test_times() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 61, 3725)] == [
        "0:00",
        "1:00",
        "1:01",
        "1:02:05",
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_999, "1.0 MB"), (4_683_073_536, "4.7 GB")],
)
def test_sizes(count: int, text: str) -> None:
    assert human_size(count) == text


def test_a_terminal_is_painted_over() -> None:
    stream, now = io.StringIO(), Clock()
    painter = Painter(stream, now, width=80)
    painter.show(at(100))
    painter.show(at(200))
    assert "200 B" not in stream.getvalue(), "not more than ten times a second"
    now.now = 0.2
    painter.show(at(100, "n.gguf"))
    after = stream.getvalue()
    assert after.count("\x1b[1F\x1b[J") == 1
    assert [line.split()[0] for line in after.splitlines()[-2:]] == ["n.gguf", "all"]
    painter.finish()
    assert stream.getvalue().count("\x1b[3F\x1b[J") == 1


def test_elsewhere_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = Clock()
    lines = PlainLines(now)
    for second in range(25):
        now.now = second
        lines.show(at(second * 10))
    lines.show(at(1000, state="done"))
    lines.show(at(0, "other", "waiting"))
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 4
    assert shown[-1].endswith("done")
