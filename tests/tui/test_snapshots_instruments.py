from __future__ import annotations

import pytest

from tests.tui.fake_readings import WORKSTATION, Beside, filled
from tests.tui.snapshots import assert_picture, faint_text, picture, screen_text
from tui.widgets.instruments import InstrumentsPanel

SIZES = [(80, 24), (100, 30), (140, 40)]


@pytest.mark.parametrize("size", SIZES)
async def test_an_answer(size: tuple[int, int]) -> None:
    async with Beside(filled()).run_test(size=size) as pilot:
        await assert_picture(pilot, "instruments")


async def test_two_devices() -> None:
    async with Beside(filled(WORKSTATION)).run_test(size=(140, 40)) as pilot:
        await assert_picture(pilot, "instruments-two-devices")


@pytest.mark.parametrize("size", SIZES[:2])
async def test_nothing_is_known_yet(size: tuple[int, int]) -> None:
    async with Beside(InstrumentsPanel()).run_test(size=size) as pilot:
        await assert_picture(pilot, "instruments-empty")


@pytest.mark.parametrize("size", SIZES[:2])
async def test_a_terminal_without_unicode(size: tuple[int, int]) -> None:
    async with Beside(filled(ascii=True)).run_test(size=size) as pilot:
        await assert_picture(pilot, "instruments-ascii")
        assert screen_text(pilot.app).isascii()


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_both_themes_can_be_read_and_show_the_same(theme: str) -> None:
    async with Beside(filled()).run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        before = picture(pilot.app)
        pilot.app.theme = theme
        await pilot.pause()
        assert picture(pilot.app) == before
        assert faint_text(pilot.app) == []


async def test_without_colours_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with Beside(filled()).run_test(size=(100, 30)) as pilot:
        assert pilot.app.no_color
        await assert_picture(pilot, "instruments")
        assert faint_text(pilot.app) == []
