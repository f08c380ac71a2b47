from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from edgespec.memory import Memory
from edgespec.stats import Stats
from tests.tui.driving import drawn, make_app, ready, send, settled, status, until
from tests.tui.fake_session import STATS, FakeSession, Gate, answer
from tui.widgets.status_line import Status, size, status_text

FULL = Status(
    method="draft",
    draft_length=8,
    stats=STATS,
    memory=Memory(process=612_000_000, weights=105_000_000, kv_cache=8_000_000),
    context_used=512,
    context_size=2048,
)


def test_every_number_is_there_and_shortens_with_the_width() -> None:
    assert status_text(FULL, 120) == (
        "42.5 tok/s │ draft 8 │ 65 % of 130 tested │ memory 612 MB, model files 105 MB"
        " │ context 512/2048"
    )
    assert status_text(FULL, 78) == (
        "42.5 tok/s │ draft 8 │ 65 % of 130 tested │ mem 612M files 105M │ ctx 512/2048"
    )
    assert status_text(FULL, 77) == (
        "42.5 tok/s │ draft 8 │ 65 % of 130 tested │ mem 612M/105M │ ctx 512/2048"
    )
    assert status_text(FULL, 59) == ("42.5 t/s │ draft 8 │ 65 % of 130 │ 612M/105M │ ctx 512/2048")


FASTER = replace(
    FULL,
    offline=True,
    stats=replace(STATS, plain_seconds=1 / 23.6, rounds_by=(("draft", 1),)),
)
AT_WIDTHS = {
    119: "42.5 tok/s │ 1.8x plain │ draft 8 │ 65 % of 130 tested"
    " │ memory 612 MB, model files 105 MB │ context 512/2048 │ offline",
    101: "42.5 tok/s │ 1.8x plain │ draft 8 │ 65 % of 130 tested │ mem 612M files 105M"
    " │ ctx 512/2048 │ offline",
    95: "42.5 tok/s │ 1.8x plain │ draft 8 │ 65 % of 130 tested │ mem 612M/105M │ ctx 512/2048"
    " │ offline",
    88: "42.5 tok/s │ 1.8x plain │ draft 8 │ 65 % of 130 │ mem 612M/105M │ ctx 512/2048 │ offline",
    76: "42.5 t/s │ 1.8x │ draft 8 │ 65 % of 130 │ 612M/105M │ ctx 512/2048 │ offline",
    64: "42.5 t/s │ 1.8x │ draft 8 │ 65 % of 130 │ ctx 512/2048 │ offline",
    50: "42.5 t/s │ 1.8x │ draft 8 │ ctx 512/2048 │ offline",
    40: "42.5 t/s │ 1.8x │ ctx 512/2048 │ offline",
    30: "42.5 t/s │ 1.8x │ ctx 512/2048",
    15: "42.5 t/s │ 1.8x",
    8: "42.5 t/s",
    4: "42.5",
    0: "",
}
"""The least width of each form."""


@pytest.mark.parametrize("width", range(125))
def test_what_has_no_room_leaves_as_a_whole(width: int) -> None:
    assert status_text(FASTER, width) == AT_WIDTHS[max(w for w in AT_WIDTHS if w <= width)]


def test_an_activity_that_has_no_room_is_not_cut_in_its_number() -> None:
    reading = replace(FULL, activity="reading 512/15000")
    assert status_text(reading, 17) == "reading 512/15000"
    assert status_text(reading, 16) == "reading"
    assert status_text(reading, 6) == ""


def test_slower_than_plain_is_said() -> None:
    slower = replace(FASTER, stats=replace(FASTER.stats, plain_seconds=1 / 45.7))
    assert " │ slower than plain: 0.93x │ " in status_text(slower, 140)
    assert " │ 0.93x plain │ " in status_text(slower, 100)
    assert " │ 0.93x │ " in status_text(slower, 70)
    hardly = replace(FASTER, stats=replace(FASTER.stats, plain_seconds=1 / 42.6))
    assert " │ 1.0x plain │ " in status_text(hardly, 140)


@pytest.mark.parametrize(
    "change",
    [
        {"activity": "reading"},
        {"stats": STATS},
        {"stats": replace(STATS, plain_seconds=0.05, rounds_by=(("plain", 1),))},
    ],
)
def test_no_speed_up_where_there_is_none(change: dict[str, Any]) -> None:
    status = replace(FASTER, **change)
    for width in (140, 100, 70):
        assert "x" not in status_text(status, width).replace("ctx", "").replace("context", "")


def test_the_offline_mark_is_there_when_told() -> None:
    assert "offline" not in status_text(FULL, 140)
    assert status_text(Status(offline=True), 140).endswith(" │ offline")


def test_large_numbers_fit_eighty_columns() -> None:
    stats = Stats(
        rounds=9999, round_tokens=99_999, tested=99_999, accepted=54_321, decode_seconds=100.0
    )
    memory = Memory(process=123_400_000_000, weights=99_900_000_000, kv_cache=0)
    status = Status("", "lookup", 16, stats, memory, 131_000, 131_072)
    text = status_text(status, 78)
    assert cell_len(text) <= 78
    for part in ("1000 t", "lookup 16", "54 % of 99999", "123G", "100G", "131000/131072"):
        assert part in text


def test_what_is_not_known_is_a_dash_not_a_zero() -> None:
    assert status_text(Status(), 78) == (
        "— tok/s │ — │ accepted — │ memory —, model files — │ context —/—"
    )
    assert "0 % of 12" in status_text(Status(stats=Stats(tested=12)), 78)


def test_plain_decoding_has_no_draft_length() -> None:
    assert " │ plain │ " in status_text(Status(method="plain", draft_length=0), 78)


@pytest.mark.parametrize(
    ("last", "text"), [(("lookup", 12), "auto: lookup 12"), (("plain", 0), "auto: plain")]
)
def test_auto_says_what_it_did_last(last: tuple[str, int], text: str) -> None:
    status = Status(method="auto", draft_length=31, stats=Stats(last_draft=last))
    assert f" │ {text} │ " in status_text(status, 78)


@pytest.mark.parametrize(
    ("count", "short"),
    [
        (0, "0M"),
        (105_400_000, "105M"),
        (999_400_000, "999M"),
        (999_600_000, "1.0G"),
        (9_990_000_000, "10.0G"),
        (12_300_000_000, "12G"),
    ],
)
def test_sizes_have_three_digits(count: int, short: str) -> None:
    assert size(count) == short


async def test_the_numbers_of_an_answer_at_80_by_24() -> None:
    async with make_app(FakeSession(answer("text"))).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        assert status(pilot).startswith("— tok/s │ draft 8 │ accepted —")
        await send(pilot, "x")
        await settled(pilot)
        await until(pilot, lambda: "42.5" in drawn(pilot))
        lines = drawn(pilot).splitlines()
        assert lines[-2].strip() == (
            "42.5 tok/s │ draft 8 │ 65 % of 130 │ mem 612M/105M │ ctx 512/2048 │ offline"
        )
        assert all(cell_len(line) <= 80 for line in lines)
        assert len(lines) == 24


async def test_memory_and_context_are_kept_up_to_date() -> None:
    session = FakeSession(answer("text"))
    async with make_app(session).run_test(size=(100, 24)) as pilot:
        await ready(pilot)
        session.process = 700_000_000
        await until(pilot, lambda: "memory 700 MB" in status(pilot))
        session.context_used = 600
        await send(pilot, "x")
        await settled(pilot)
        assert "ctx 600/2048" in status(pilot)


async def test_the_numbers_start_anew_with_each_answer() -> None:
    gate = Gate()
    async with make_app(FakeSession(answer("a"), [gate, *answer("b")])).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await settled(pilot)
        assert "65 % of 130" in status(pilot)
        await send(pilot, "y")
        await until(pilot, gate.reached.is_set)
        assert status(pilot).startswith("reading │ draft 8 │ accepted —")
        gate.open()
        await settled(pilot)
