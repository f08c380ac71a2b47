"""The plot of a benchmark."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from edgespec.bench.arms import AUTO_PARTS
from edgespec.bench.plot import _FILLS, check_plot, shown, write_plot
from edgespec.bench.report import PLAIN
from edgespec.errors import UsageError
from edgespec.methods import WAYS
from tests.bench_runs import AUTO, report, turn, usual


def texts(svg: Path) -> set[str]:
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text(encoding="utf-8")))


def test_of_the_fixed_lengths_only_the_best_single_one_is_drawn() -> None:
    assert shown(usual(), 0.0) == {
        ("draft", 2): "draft 2 (best of 2, 4)",
        ("auto", 0): "auto",
        ("server", 0): "server",
    }


def test_an_svg_has_its_words_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    write_plot(usual(), path)
    found = texts(path)
    assert {"code", "prose", "all", "speed-up", "plain decoding", "auto"} <= found
    assert {"draft 2 (best of 2, 4)", "a-model, temperature 0"} <= found
    assert {"1.30", "2.10", "1.52", "0.95"} <= found


def test_the_same_figures_make_the_same_file(tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    write_plot(usual(), first)
    write_plot(usual(), second)
    assert first.read_bytes() == second.read_bytes()


def test_a_panel_for_each_temperature(tmp_path: Path) -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), *turn({PLAIN: 10, AUTO: 5}, 0, temperature=0.8)]
    path = tmp_path / "plot.svg"
    write_plot(report(runs), path)
    assert {"a-model, temperature 0", "a-model, temperature 0.8"} <= texts(path)


def test_every_method_has_a_look_of_its_own(tmp_path: Path) -> None:
    methods = {*WAYS, *AUTO_PARTS, "server"} - {"plain"}
    assert len(set(_FILLS)) == len(_FILLS) >= len(methods)
    path = tmp_path / "plot.svg"
    write_plot(report(turn({PLAIN: 10, **{(name, 0): 20 for name in methods}}, 0)), path)
    assert methods <= texts(path)


def test_png(tmp_path: Path) -> None:
    path = tmp_path / "plot.PNG"
    check_plot(path)
    write_plot(usual(), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_plain_alone_is_a_line_only(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    write_plot(report(turn({PLAIN: 10}, 0)), path)
    assert "plain decoding" in texts(path)


@pytest.mark.parametrize(("name", "part"), [("a.pdf", ".svg"), ("a", ".svg"), ("no/a.svg", "no")])
def test_a_file_that_cannot_be(tmp_path: Path, name: str, part: str) -> None:
    with pytest.raises(UsageError, match=re.escape(part)):
        check_plot(tmp_path / name)


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        check_plot(tmp_path / "a.svg")
    assert "pip install matplotlib" in caught.value.hint


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    path.mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        write_plot(usual(), path)
