"""The other screens as they look, in a small and in a larger terminal, dark and light."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgespec import first_run
from tests.tui.scenes import SCENES
from tests.tui.snapshots import assert_picture, faint_text, picture

TIMELESS = ("tune", "history", "persona", "help", "first-run")
"""Those that show nothing of the machine they run on."""


@pytest.fixture(autouse=True)
def _nothing_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "marker", lambda: tmp_path / "first-run")
    monkeypatch.setattr("tui.screens.persona.user_folder", lambda: Path("personas"))
    monkeypatch.setenv("TZ", "UTC")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("name", TIMELESS)
async def test_a_screen(name: str, size: tuple[int, int]) -> None:
    scene = SCENES[name]
    async with scene.app().run_test(size=size) as pilot:
        await scene.arrange(pilot)
        await assert_picture(pilot, name)


@pytest.mark.parametrize("name", TIMELESS)
async def test_a_light_theme_shows_the_same_and_can_be_read(name: str) -> None:
    scene = SCENES[name]
    async with scene.app().run_test(size=(80, 24)) as pilot:
        await scene.arrange(pilot)
        before = picture(pilot.app)
        pilot.app.theme = "textual-light"
        await pilot.pause(0.3)
        assert picture(pilot.app) == before
        assert [text for text in faint_text(pilot.app, 2.0) if re.search(r"\w.* \(", text)] == []
