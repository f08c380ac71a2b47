from __future__ import annotations

import pytest
from rich.cells import cell_len

from edgespec.session import Memory
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
    assert status_text(FULL, 50) == ("42.5 t/s │ draft 8 │ 65 % of 130 │ 612M/105M │ ctx 512/2048")


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
            "42.5 tok/s │ draft 8 │ 65 % of 130 tested │ mem 612M files 105M │ ctx 512/2048"
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
        assert "context 600/2048" in status(pilot)


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
