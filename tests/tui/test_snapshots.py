"""The pictures themselves: they show what is on the screen, and a difference fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.color import Color
from textual.screen import ModalScreen
from textual.widgets import Label

from tests.tui.snapshots import (
    FOLDER,
    SWITCH,
    assert_picture,
    compare,
    contrast,
    faint_text,
    picture,
    screen_styles,
    screen_text,
)


class Sample(App[None]):
    CSS = """
    #faint { color: #101010; background: #000000; }
    #wide { text-style: reverse; }
    Over { align: left top; background: black 50%; }
    """

    def compose(self) -> ComposeResult:
        yield Label("plain [b]bold[/b][b u]both[/b u]")
        yield Label("日本 x", id="wide")
        yield Label("hidden", id="faint")


class Over(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield Label("over")


@pytest.fixture
def _comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)


async def test_a_picture_has_characters_and_marks_but_no_colours() -> None:
    async with Sample().run_test(size=(24, 5)) as pilot:
        assert screen_text(pilot.app) == "plain boldboth\n日本 x\nhidden\n\n"
        assert screen_styles(pilot.app) == "  0  6-9 bold, 10-13 bold+underline\n  1  0-5 reverse"
        assert picture(pilot.app).splitlines()[5] == "=" * 24


async def test_what_shines_through_is_in_the_picture() -> None:
    async with Sample().run_test(size=(24, 5)) as pilot:
        pilot.app.push_screen(Over())
        await pilot.pause()
        pilot.app.screen.refresh()  # what was drawn before is not to be found in a cache
        first, second, *_ = screen_text(pilot.app).splitlines()
        assert first.startswith("over")
        assert second == "日本 x"


async def test_text_of_little_contrast_is_found() -> None:
    async with Sample().run_test(size=(24, 5)) as pilot:
        (found,) = faint_text(pilot.app)
        assert found.startswith("hidden (1.")


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast(Color.parse("#000"), Color.parse("#fff")) == pytest.approx(21)
    assert contrast(Color.parse("#777"), Color.parse("#fff")) == pytest.approx(4.48, abs=0.01)
    assert contrast(Color.parse("#123"), Color.parse("#123")) == 1


@pytest.mark.usefixtures("_comparing")
def test_a_difference_fails_and_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    compare("one\ntwo\n", file)
    with pytest.raises(AssertionError, match=r"(?s)-two.*\+three"):
        compare("one\nthree\n", file)
    with pytest.raises(AssertionError, match="has changed"):
        compare("one\ntwo", file)
    assert file.read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.usefixtures("_comparing")
def test_a_picture_that_is_missing_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"there is no a\.txt"):
        compare("x", tmp_path / "a.txt")


def test_the_switch_writes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")
    file = tmp_path / "new" / "a.txt"
    compare("été\n", file)
    compare("déjà\n", file)
    assert file.read_bytes() == "déjà\n".encode()


async def test_a_picture_is_compared_under_its_name_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.tui.snapshots.FOLDER", tmp_path)
    async with Sample().run_test(size=(24, 5)) as pilot:
        monkeypatch.setenv(SWITCH, "1")
        await assert_picture(pilot, "sample")
        monkeypatch.delenv(SWITCH)
        await assert_picture(pilot, "sample")
        pilot.app.query_one("#wide", Label).update("changed")
        with pytest.raises(AssertionError, match=r"\+changed"):
            await assert_picture(pilot, "sample")
    assert [file.name for file in tmp_path.iterdir()] == ["sample-24x5.txt"]


def test_every_kept_picture_says_its_size() -> None:
    for file in FOLDER.glob("*"):
        size = file.stem.rpartition("-")[2]
        width, _, height = size.partition("x")
        rows = file.read_text(encoding="utf-8").split("\n")
        assert rows[int(height)] == "=" * int(width), file.name
