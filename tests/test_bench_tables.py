"""A benchmark's report as text."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

from edgespec.bench.report import PLAIN, Key, Report
from edgespec.bench.tables import as_csv, as_json, as_markdown, as_text
from tests.bench_runs import AUTO, report, run, turn, usual


def table(found: Report, *, details: bool = False) -> list[str]:
    return as_text(found, details=details).splitlines()


def test_a_table_for_each_category_then_all_with_the_fastest_first() -> None:
    lines = table(usual())
    assert lines[:3] == ["code", "", lines[2]]
    assert lines[2].split() == [
        "method", "tok/s", "speed-up", "quartiles", "worst", "accepted", "tok/round", "rows/round",
        "TTFT", "s", "exact",
    ]  # fmt: skip
    assert lines[5].split() == [
        "draft", "4", "22.0", "2.20x", "2.10-2.30", "2.00x", "-", "2.00", "2.40", "0.50", "yes",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[3:8]] == ["plain", "draft", "draft", "auto", "server"]
    assert lines[9] == "prose"
    start = lines.index("all, the fastest first") + 2
    assert lines[start].split() == [
        "method", "speed-up", "worst", "accepted", "tok/round", "rows/round", "cost/round", "memory",
        "exact",
    ]  # fmt: skip
    assert [line.split() for line in lines[start + 1 : start + 6]] == [
        ["auto", "1.52x", "1.10x", "-", "2.00", "2.40", "0.62", "1.23", "GB", "yes"],
        ["draft", "2", "1.25x", "1.20x", "-", "2.00", "2.40", "0.79", "512", "MB", "yes"],
        ["draft", "4", "1.05x", "0.50x", "-", "2.00", "2.40", "0.97", "512", "MB", "yes"],
        ["plain", "1.00x", "1.00x", "-", "2.00", "2.40", "1.00", "0", "yes"],
        ["server", "0.95x", "0.80x", "-", "2.00", "-", "-", "-", "yes"],
    ]


def test_a_terminal_of_a_hundred_columns_holds_the_tables() -> None:
    longest: Key = ("auto-lookup", 0)
    runs = turn({PLAIN: 1000, ("confidence", 31): 9345.6, longest: 2345}, 0, temperature=0.8)
    lines = as_text(report(runs), details=False).splitlines()
    assert all(len(line) <= 100 for line in lines[:14])
    assert "by rule" in lines[4]
    assert lines[3].split()[-1] == "-", "plain decoding has no rule"


def test_numbers_stand_right_and_names_left() -> None:
    head, *lines = table(usual())[2:8]
    for title in ("tok/s", "TTFT s"):
        end = head.index(title) + len(title)
        assert all(line[end - 1].isdigit() for line in lines)
    assert all(line[head.index("method")] in "pdas" for line in lines)


def test_another_text_is_a_near_tie_or_a_mistake() -> None:
    assert "exact, " not in as_text(usual(), details=False)
    runs = [run(PLAIN, 10), run(AUTO, 20, tokens=(7, 8, 1))]
    for apart, word, other in ((0.25, "tie", "no"), (1.5, "no", "tie"), (None, "no", "tie")):
        known = {} if apart is None else {(AUTO, runs[1].turn): apart}
        text = as_text(report(runs, parted=known), details=True)
        last = [line.split() for line in text.splitlines() if line[:4] in {"plai", "auto"}]
        assert [line[-1] for line in last if "lost" not in line] == ["yes", word, word, "yes"]
        assert f"exact, {word}: " in text
        assert f"exact, {other}: " not in text
        assert ("0.25 apart" in text) is (word == "tie")


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


def test_what_is_no_surprise_is_said_too() -> None:
    found = report(
        turn({PLAIN: 10, AUTO: 20}, 0), doubts=["lookahead is off by default here: rows."]
    )
    assert "\n\nlookahead is off by default here: rows.\n\n" in as_text(found, details=False)


def test_what_is_missing_is_said() -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), *turn({PLAIN: 0, AUTO: 0}, 1)]
    text = as_text(report(runs, complete=False), details=False)
    assert "Stopped early" in text
    assert "too short to have a speed: 1." in text


def test_one_category_has_no_mean() -> None:
    text = as_text(report(turn({PLAIN: 10, AUTO: 20}, 0)), details=False)
    assert "all: the geometric mean" not in text


def test_temperatures_are_shown_when_there_are_several() -> None:
    runs = [*turn({PLAIN: 10, AUTO: 20}, 0), *turn({PLAIN: 10, AUTO: 5}, 0, temperature=0.8)]
    lines = table(report(runs), details=True)
    titles = [line for line in lines if "temperature" in line and not line.endswith(".")]
    assert any(line.startswith("temperature 0.8: auto lost to plain") for line in lines)
    assert titles == [
        "code, temperature 0",
        "code, temperature 0.8",
        "all, the fastest first, temperature 0",
        "all, the fastest first, temperature 0.8",
    ]
    assert lines[lines.index(titles[2]) + 3].startswith("auto"), "the fastest is first"
    assert lines[lines.index(titles[3]) + 3].startswith("plain")
    runs_at = next(n for n, line in enumerate(lines) if line.startswith("prompt"))
    assert lines[runs_at].split()[2] == "temp"
    assert "temperature" not in as_text(usual(), details=False)


def details_of(found: Report) -> list[str]:
    """The table of the answers."""
    lines = table(found, details=True)
    return lines[next(n for n, line in enumerate(lines) if line.startswith("prompt")) :]


def test_details_tell_each_answer_and_who_drafted() -> None:
    sources = {"lookup": 2, "draft": 3, "": 4}
    found = report([run(PLAIN, 10), run(AUTO, 25, accepted=3, tested=4, sources=sources)])
    lines = details_of(found)
    assert lines[0].split()[:3] == ["prompt", "method", "tokens"]
    assert lines[2].split()[:6] == ["p0", "auto", "11", "25.0", "2.50x", "75%"]
    assert lines[2].endswith("lookup 2, draft 3, none 4")
    assert not any(line.startswith("prompt") for line in table(found))
    again = report([*turn({PLAIN: 10}, 0), *turn({PLAIN: 10}, 0, repeat=1)])
    assert details_of(again)[0].split()[2] == "repeat"


def test_markdown_has_the_same_cells() -> None:
    text = as_markdown(usual(), details=True).splitlines()
    assert text[0] == "**code**"
    cells = [cell.strip() for cell in text[6].strip("|").split("|")]
    assert cells[:3] == ["draft 4", "22.0", "2.20x"]
    assert text[3].startswith("| --- | ---: |")
    assert {line.count("|") for line in text[2:9]} == {text[2].count("|")}
    assert any(line.startswith("| p2 | server |") for line in text)


def test_a_bar_in_a_name_does_not_break_markdown() -> None:
    found = usual()
    found.rows[0] = dataclasses.replace(found.rows[0], category="a|b")
    assert as_markdown(found, details=False).startswith("**a\\|b**")
    found.runs[0] = dataclasses.replace(found.runs[0], id="c|d")
    assert "| c\\|d | plain |" in as_markdown(found, details=True)


def test_csv_has_full_numbers_and_no_nesting() -> None:
    found = usual()
    records = list(csv.DictReader(io.StringIO(as_csv(found, details=False))))
    assert len(records) == len(found.rows)
    assert float(records[2]["speedup"]) == found.rows[2].speedup
    assert records[2]["worst_prompt"] == "p0"
    assert float(records[2]["worst_speedup"]) == found.rows[2].worst_prompt.speedup
    assert records[2]["acceptance"] == ""
    assert records[2]["memory_bytes"] == "512000000"
    assert float(records[2]["rows_per_round"]) == 2.4


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


def test_a_busy_machine_is_named_before_anybody_believes_the_figures() -> None:
    for share, told in ((0.5, True), (0.05, False), (None, False)):
        found = dataclasses.replace(usual(), setup={"others": share})
        assert (
            "Other programs kept 50% of the processor busy. Speeds" in as_text(found, details=False)
        ) is told
