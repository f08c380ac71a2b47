"""A benchmark's report as text."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

from edgespec.bench.report import PLAIN, Report
from edgespec.bench.tables import as_csv, as_json, as_markdown, as_text
from tests.bench_runs import AUTO, report, run, turn, usual


def table(found: Report, *, details: bool = False) -> list[str]:
    return as_text(found, details=details).splitlines()


def test_a_line_for_each_category_and_arm_then_the_means() -> None:
    lines = table(usual())
    assert lines[0].split() == [
        "category", "method", "length", "tok/s", "speed-up", "quartiles", "worst", "accepted",
        "tok/round", "TTFT", "s", "same", "text",
    ]  # fmt: skip
    assert lines[3].split() == [
        "code", "draft", "4", "22.0", "2.20x", "2.10-2.30", "2.00x", "-", "2.00", "0.50", "yes",
    ]  # fmt: skip
    blank = lines.index("")
    assert blank == 1 + 2 * 5 + 4  # the mean of plain decoding would be 1
    assert [line.split()[:4] for line in lines[11:blank]] == [
        ["all", "draft", "2", "1.25x"],
        ["all", "draft", "4", "1.05x"],
        ["all", "auto", "-", "1.52x"],
        ["all", "server", "-", "0.95x"],
    ]


def test_numbers_stand_right_and_names_left() -> None:
    head, *lines = table(usual())[:11]
    for title in ("tok/s", "TTFT s"):
        end = head.index(title) + len(title)
        assert all(line[end - 1].isdigit() for line in lines)
    assert all(line[head.index("method")] in "pdas" for line in lines)


def test_sentences() -> None:
    text = as_text(usual(), details=False)
    assert "auto is 1.22 times as fast as the best single fixed length" in text
    assert "own best: code 0.95, prose 0.92." in text
    assert "plain is 1.06 times as fast as the server." in text
    assert "auto is 1.62 times as fast as the server." in text
    assert "draft 4 is" not in text
    assert "time outside llama.cpp: plain 1.0%, draft 2 1.0%" in text
    assert "Stopped early" not in text
    assert "Left out" not in text


def test_what_is_missing_is_said() -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), *turn({PLAIN: 0, AUTO: 0}, 1)]
    text = as_text(report(runs, complete=False), details=False)
    assert "Stopped early" in text
    assert "too short to have a speed: 1." in text


def test_one_category_has_no_mean() -> None:
    text = as_text(report(turn({PLAIN: 10, AUTO: 20}, 0)), details=False)
    assert "\nall" not in text


def test_temperatures_are_shown_when_there_are_several() -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), *turn({PLAIN: 10, AUTO: 5}, 0, temperature=0.8)]
    lines = table(report(runs), details=True)
    assert lines[0].split()[3] == "temp"
    assert [line.split()[3] for line in lines[1:5]] == ["0", "0", "0.8", "0.8"]
    assert lines[6].split()[3] == "temp"


def test_details_tell_each_answer_and_who_drafted() -> None:
    sources = {"lookup": 2, "draft": 3, "": 4}
    found = report([run(PLAIN, 10), run(AUTO, 25, accepted=3, tested=4, sources=sources)])
    lines = table(found, details=True)
    assert lines[4].split()[:3] == ["prompt", "method", "length"]
    assert lines[6].split()[:7] == ["p0", "auto", "-", "11", "25.0", "2.50x", "75%"]
    assert lines[6].endswith("lookup 2, draft 3, none 4")
    assert "prompt" not in table(found)[0]
    again = report([*turn({PLAIN: 10}, 0), *turn({PLAIN: 10}, 0, repeat=1)])
    assert table(again, details=True)[3].split()[3] == "repeat"


def test_markdown_has_the_same_cells() -> None:
    text = as_markdown(usual(), details=True).splitlines()
    cells = [cell.strip() for cell in text[4].strip("|").split("|")]
    assert cells[:5] == ["code", "draft", "4", "22.0", "2.20x"]
    assert text[1].startswith("| --- | --- | ---: |")
    assert {line.count("|") for line in text[: text.index("")]} == {text[0].count("|")}
    assert any(line.startswith("| p2 | server |") for line in text)


def test_a_bar_in_a_name_does_not_break_markdown() -> None:
    found = usual()
    found.rows[0] = dataclasses.replace(found.rows[0], category="a|b")
    line = as_markdown(found, details=False).splitlines()[2]
    assert line.startswith("| a\\|b | plain |")


def test_csv_has_full_numbers_and_no_nesting() -> None:
    found = usual()
    records = list(csv.DictReader(io.StringIO(as_csv(found, details=False))))
    assert len(records) == len(found.rows)
    assert float(records[2]["speedup"]) == found.rows[2].speedup
    assert records[2]["worst_prompt"] == "p0"
    assert float(records[2]["worst_speedup"]) == found.rows[2].worst_prompt.speedup
    assert records[2]["acceptance"] == ""


def test_csv_of_the_runs() -> None:
    found = report([run(PLAIN, 10), run(AUTO, 25, sources={"lookup": 2, "": 4})])
    plain, auto = csv.DictReader(io.StringIO(as_csv(found, details=True)))
    assert (plain["sources"], auto["sources"]) == ("", "lookup=2 none=4")
    assert (auto["id"], float(auto["speedup"]), auto["rounds"]) == ("p0", 2.5, "5")


def test_json_is_the_report() -> None:
    found = json.loads(as_json(usual()))
    assert set(found) == {
        "rows", "outside_llama_cpp", "summary", "runs", "complete", "left_out", "setup",
    }  # fmt: skip
    assert found["rows"][2]["worst_prompt"] == {"id": "p0", "speedup": 2.0}
    assert found["setup"] == {"target": "a-model"}
    assert len(found["runs"]) == 15
