from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from edgespec.memory import Memory
from edgespec.stats import Stats
from tests.tui.driving import eventually
from tests.tui.fake_readings import (
    GIGA,
    LAPTOP,
    MEGA,
    WHY,
    WORKSTATION,
    Beside,
    begun,
    filled,
    history,
    mixed,
    round_of,
)
from tests.tui.snapshots import screen_text
from tui.widgets.gauges import Heading
from tui.widgets.instruments import SIDE_HEIGHT, SIDE_WIDTH, InstrumentsPanel
from tui.widgets.instruments_compact import COMPACT_HEIGHT
from tui.widgets.readings import letter

SIZES = [
    *((width, height) for width in (20, 28, 36, 38, 60) for height in (12, 14, 18, 24, 34, 60)),
    *((width, height) for width in (12, 20, 40, 50, 61, 62, 78, 98) for height in (1, 3, 7, 11)),
]


def shown(panel: InstrumentsPanel, width: int = 36, height: int = 60) -> str:
    return "\n".join(panel.lines(width, height))


def test_what_is_not_known_is_a_dash_and_never_a_zero() -> None:
    for width, height in ((36, 40), (36, 12), (78, 7), (50, 7)):
        text = shown(InstrumentsPanel(), width, height)
        assert "—" in text
        assert "0" not in text, text
    text = shown(InstrumentsPanel())
    for part in ("— tok/s", "plain —", "speed-up —", "Drafts  —", "Accepted  —", "First token  —"):
        assert part in text
    for part in ("Prompt       —", "Context      —/—", "Memory  —"):
        assert part in text


def test_the_numbers_are_those_of_the_stats_and_of_the_memory() -> None:
    *_, stats = history(mixed(), plain=0.05)
    text = shown(filled())
    assert stats.tokens_per_second is not None
    assert stats.speed_up is not None
    assert f"Speed  {stats.tokens_per_second:.1f} tok/s" in text
    assert "╌ plain 20.0" in text
    assert f"\n{stats.speed_up:.1f}x plain\n" in text
    assert f"Accepted  {stats.acceptance:.0%} of {stats.tested}".replace("%", " %") in text
    assert f"{stats.tokens_per_round:.1f} a round" in text
    assert "First token  0.25 s" in text
    assert "Prompt       40, 12 reused, 0.20 s" in text
    assert "512/2048  25 %" in text
    assert "7.9G of 16G free" in text
    assert re.search(r"█ target +105M +8M +12M$", text, re.MULTILINE)
    assert re.search(r"▓ draft +100M +4M +10M$", text, re.MULTILINE)
    assert text.replace("\n", " ").endswith(WHY)


def test_slower_than_plain_is_said_in_words() -> None:
    for width, height in ((36, 40), (36, 12), (78, 7), (60, 7)):
        assert "slower than plain: 0." in shown(filled(plain=0.01), width, height)


def test_an_answer_without_a_draft_is_plain_decoding() -> None:
    panel = InstrumentsPanel()
    for stats in history([round_of(seconds=0.051)] * 20, plain=0.05):
        panel.show(stats)
    text = shown(panel)
    assert "\nplain decoding\n" in text
    assert "slower" not in text
    assert "Drafts  now · plain\n" in text
    assert "· plain 100 %" in text
    assert "Accepted  —, 1.0 tok/round" in text


def test_the_line_of_plain_decoding_shows_where_the_answer_is_slower() -> None:
    panel = InstrumentsPanel()
    rounds = [round_of(seconds=0.25)] * 6 + [round_of(4, 4, source="draft", seconds=0.25)] * 12
    for stats in history(rounds, plain=1 / 12):
        panel.show(stats)
    (row,) = [line for line in panel.lines(36, 40) if "┼" in line]
    label, _, cells = row.partition("┼")
    assert label.strip() == "12.0"
    assert cells.startswith("╌" * 6)
    assert cells[8:18] == "█" * 10
    assert set(cells[18:]) == {"╌"}, "the line goes on where nothing is drawn yet"


def test_what_drafted_is_below_the_speed_column_by_column() -> None:
    panel = InstrumentsPanel()
    rounds = [round_of(seconds=0.3)] * 3
    rounds += [round_of(2, 1, source="lookup", seconds=0.3)] * 2
    rounds += [round_of(8, 1, source="draft", seconds=0.3)] * 2
    rounds += [round_of(4, 4, source="draft+lookup", seconds=0.3)]
    for stats in history(rounds):
        panel.show(stats)
    lines = panel.lines(36, 40)
    assert "  how ···LLDDB" in lines
    assert " to 8    ▂▂██▄" in lines
    assert "Drafts  now B draft+lookup, 4 tokens" in lines
    names = " ".join(lines)
    for part in ("· plain 38 %", "L lookup 25 %", "D draft 25 %", "B draft+lookup 12 %"):
        assert part in names
    assert "· 38 %  L 25 %  D 25 %  B 12 %" in panel.lines(36, 22)


@pytest.mark.parametrize(
    ("source", "sign"),
    [
        ("plain", "·"),
        ("tree", "T"),
        ("draft+tree", "T"),
        ("kseq", "K"),
        ("suffix", "S"),
        ("lookahead", "A"),
        ("lookup", "L"),
        ("draft+suffix", "B"),
        ("", "D"),
    ],
)
def test_every_way_to_draft_has_a_sign(source: str, sign: str) -> None:
    assert letter(source) == sign


def test_the_answers_before_stay_in_the_drawing() -> None:
    panel = InstrumentsPanel()
    for stats in history([round_of(seconds=0.3)] * 3, plain=0.3):
        panel.show(stats)
    panel.begin()
    lines = panel.lines(36, 40)
    assert lines[0].startswith("Speed  — tok/s")
    assert "3.3" in lines[0], "what plain decoding takes is still known"
    assert "  how ···" in lines
    for stats in history([round_of(2, 1, source="draft", seconds=0.3)] * 2):
        panel.show(stats)
    assert "  how ··· DD" in panel.lines(36, 40)
    panel.begin()
    panel.show(stats)
    assert "  how ··· DD D" in panel.lines(36, 40)
    panel.forget()
    assert shown(panel) == shown(InstrumentsPanel())


def test_the_histogram_counts_each_round_once() -> None:
    rounds = [round_of(seconds=0.1)] * 5
    rounds += [round_of(4, n, source="draft", seconds=0.1) for n in (0, 0, 0, 2, 4, 4)]
    panel = InstrumentsPanel()
    *_, stats = history(rounds)
    panel.show(stats)
    lines = panel.lines(36, 40)
    start = next(at for at, line in enumerate(lines) if line.split()[:2] == ["·", "5"])
    assert lines[start].endswith(" 5 " + "█" * 27)
    assert [line.split()[:2] for line in lines[start : start + 6]] == [
        ["·", "5"],
        ["0", "3"],
        ["1", "0"],
        ["2", "1"],
        ["3", "0"],
        ["4", "2"],
    ]
    assert "Rounds  ·:█5 0:▅3 1:0 2:▂1 3:0 4:▃2" in panel.lines(90, 7)[3]
    assert "Rounds  ·:█5 0:▅3 1-2:▂1 3-4:▃2" in panel.lines(62, 7)[3]


@pytest.mark.parametrize("memory", [None, LAPTOP, WORKSTATION, replace(LAPTOP, devices=())])
def test_every_size_has_lines_that_fit(memory: Memory | None) -> None:
    for ascii in (False, True):
        panel, empty = filled(memory, ascii=ascii), InstrumentsPanel(ascii=ascii)
        for width, height in SIZES:
            for lines in (panel.lines(width, height), empty.lines(width, height)):
                assert len(lines) <= height
                assert all(cell_len(line) <= width for line in lines), lines
                assert not ascii or all(line.isascii() for line in lines)


def test_large_numbers_fit_the_column_and_the_lines_below() -> None:
    panel = filled(WORKSTATION)
    panel.show(
        replace(
            begun(ttft=12.345, prompt=131_000, reused=130_000),
            rounds=99_999,
            round_tokens=123_456,
            tokens=123_457,
            proposed=99_999,
            tested=99_999,
            accepted=54_321,
            decode_seconds=100.0,
            accepted_lengths=(90_000, *range(31)),
            rounds_by=(("draft+lookup", 99_999),),
            last_draft=("draft+lookup", 31),
            plain_seconds=0.001,
        )
    )
    panel.show_context(131_000, 131_072)
    for width, height in ((36, 40), (78, 7)):
        text = shown(panel, width, height)
        for part in ("1235 tok/s", "1.2x plain", "54 % of 99999", "12.3", "131000"):
            assert part in text, text
        assert "131000/131072" in text
        assert all(cell_len(line) <= width for line in text.splitlines())


def test_two_devices_each_have_their_models() -> None:
    lines = filled(WORKSTATION).lines(36, 50)
    start = next(at for at, line in enumerate(lines) if line.startswith("CUDA0"))
    assert re.fullmatch(r"CUDA0 █+▓*▒*░+ 1.2G of 12G free", lines[start])
    assert re.fullmatch(r" █ target +8.1G +900M +310M", lines[start + 1])
    assert re.fullmatch(r" ▓ draft +900M +120M +96M", lines[start + 2])
    assert re.fullmatch(r"RAM ▒+░+ 48G of 64G free", lines[start + 3])
    assert re.fullmatch(r" █ target +600M +80M +150M", lines[start + 4])
    assert not lines[start + 5].startswith(" ▓"), "the draft has nothing there"
    (line,) = [one for one in filled(WORKSTATION).lines(120, 7) if one.startswith("Memory")]
    assert line == (
        "Memory  CUDA0  target 9.3G draft 1.1G, 1.2G of 12G free"
        " │ RAM  target 830M, 48G of 64G free"
    )


def test_what_the_runtime_took_beyond_its_share_does_not_spoil_the_bar() -> None:
    device = replace(LAPTOP.devices[0], free=16 * GIGA, total=16 * GIGA)
    for changed in (
        device,
        replace(device, free=0),
        replace(device, total=0),
        replace(device, total=MEGA),
    ):
        lines = filled(replace(LAPTOP, devices=(changed,))).lines(36, 40)
        assert all(cell_len(line) <= 36 for line in lines)


def test_no_name_can_command_the_terminal() -> None:
    device = replace(LAPTOP.devices[0], kind="gpu", name="RPC\x1b[2J\n0")
    panel = filled(replace(LAPTOP, devices=(device,)))
    panel.show_why("a\x1b[31mb")
    assert not set(shown(panel)) & {"\x1b"}
    assert "a␛[31mb" in shown(panel)
    assert "RPC␛[2J 0" in shown(panel, 78, 7)


def test_more_room_shows_more() -> None:
    panel = filled()
    used = [len(panel.lines(36, height)) for height in range(SIDE_HEIGHT, 60)]
    assert all(one <= other for one, other in pairwise(used))
    assert used[-1] > 35
    assert len(panel.lines(78, 11)) == COMPACT_HEIGHT
    for height in range(SIDE_HEIGHT, 60):
        text = shown(panel, 36, height)
        for part in ("tok/s", " how ", "Drafts", "Accepted", "First token", "Prompt", "Context"):
            assert part in text, height


def test_parts_begin_with_a_heading() -> None:
    heads = [line.split()[0] for line in filled().lines(36, 40) if isinstance(line, Heading)]
    assert heads == ["Speed", "Drafts", "Accepted", "Memory"]
    assert [type(line) for line in filled(ascii=True).lines(36, 40)] == [
        type(line) for line in filled().lines(36, 40)
    ]


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (140, 40)])
async def test_what_is_drawn_are_the_lines(size: tuple[int, int]) -> None:
    panel = filled()
    async with Beside(panel).run_test(size=size) as pilot:
        await pilot.pause()
        assert panel.compact == (size[0] < 100)
        for line in panel.text.splitlines():
            assert line.rstrip() in screen_text(pilot.app)
        assert panel.size.height == (COMPACT_HEIGHT if size[0] < 100 else size[1])


async def test_the_layout_follows_the_terminal() -> None:
    panel = filled()
    async with Beside(panel).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Rounds" in screen_text(pilot.app)
        await pilot.resize_terminal(140, 40)
        await pilot.pause()
        assert not panel.compact
        assert "Rounds" not in screen_text(pilot.app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert panel.compact
        assert "Rounds" in screen_text(pilot.app)


async def test_new_numbers_are_drawn_after_a_while_and_only_where_they_changed() -> None:
    panel = filled()
    async with Beside(panel).run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        drawn: list[int] = []
        render = panel.render_line

        def watched(y: int) -> object:
            drawn.append(y)
            return render(y)

        panel.render_line = watched  # type: ignore[method-assign, assignment]
        for used in range(600, 700):
            panel.show_context(used, 2048)
        await eventually(lambda: "699/2048" in screen_text(pilot.app))
        assert len(set(drawn)) == 1
        assert len(drawn) <= 5, "a hundred changes are not a hundred drawings"


async def test_nothing_is_drawn_while_nobody_looks() -> None:
    panel = filled()
    async with Beside(panel).run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        panel.display = False
        await pilot.pause()
        panel.show_context(700, 2048)
        assert not panel._redraw_due
        panel.display = True
        await eventually(lambda: "700/2048" in screen_text(pilot.app))


async def test_the_panel_has_a_size_of_its_own() -> None:
    class Bare(App[None]):
        CSS = "InstrumentsPanel { width: auto; height: auto; }"

        def compose(self) -> ComposeResult:
            yield InstrumentsPanel()

    async with Bare().run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        panel = pilot.app.query_one(InstrumentsPanel)
        assert panel.size == (SIDE_WIDTH - 2, COMPACT_HEIGHT)


def test_before_it_is_on_a_screen_it_only_remembers() -> None:
    panel = InstrumentsPanel()
    panel.show(Stats())
    panel.begin()
    assert not panel._redraw_due
