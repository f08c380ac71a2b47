"""The first start as a person meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from edgespec import first_run
from edgespec.first_run import Offer
from edgespec.shelf.row import Row
from tests.tui.driving import eventually
from tests.tui.fake_session import Gate
from tests.tui.shelf_app import ScreenApp, drawn, until
from tui.screens.first_run import FirstChoice, FirstRunScreen, sentences

ROW = Row(
    "some-pair",
    "pair",
    "catalogue",
    "some-pair",
    sizes=(4_000_000_000, 500_000_000),
    use="chat",
    licence="mit",
)
OFFER = Offer(
    hardware=("Some [bold]Processor[/] with 8 cores, 32 GB of memory.",),
    hints=("A Card is here, but this build cannot use it. Build it: make it so",),
    row=ROW,
    why="The largest that fits.",
    brings="Nobody knows it before.",
)


@pytest.fixture(autouse=True)
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "first-run"
    monkeypatch.setattr(first_run, "marker", lambda: path)
    return path


class Looking:
    """Looks until the test lets it."""

    def __init__(self, offer: Offer | Exception = OFFER) -> None:
        self.gate = Gate()
        self.offer = offer

    def __call__(self) -> Offer:
        self.gate.wait()
        if isinstance(self.offer, Exception):
            raise self.offer
        return self.offer


def app(looking: Looking) -> ScreenApp[FirstChoice]:
    return ScreenApp(FirstRunScreen(looking))


async def test_the_small_model_can_be_started_before_anything_is_known(marker: Path) -> None:
    looking = Looking()
    host = app(looking)
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, looking.gate.reached.is_set)
        assert "Looking at this machine" in drawn(pilot)
        await pilot.press("2")
        assert host.results == []
        await pilot.press("enter")
        await until(pilot, lambda: host.results == [FirstChoice("start")])
        assert marker.exists()
        looking.gate.open()


async def test_what_was_found_is_told_and_the_pair_can_be_fetched() -> None:
    looking = Looking()
    looking.gate.open()
    host = app(looking)
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "some-pair" in drawn(pilot))
        shown = drawn(pilot)
        for text in (
            "Some [bold]Processor[/] with 8 cores",
            "make it so",
            "Proposed: some-pair, 4.5 GB, for chat. Licence: mit.",
            "Nobody knows it before.",
            "1  Start with the small built-in model",
            "2  Fetch some-pair (4.5 GB) while the small one answers",
            "3  Choose another",
        ):
            assert text in shown, text
        await pilot.press("down", "enter")
        await until(pilot, lambda: host.results == [FirstChoice("fetch", ROW)])


@pytest.mark.parametrize(
    ("key", "choice"),
    [
        ("1", FirstChoice("start")),
        ("2", FirstChoice("fetch", ROW)),
        ("3", FirstChoice("choose")),
        ("escape", FirstChoice("start")),
    ],
)
async def test_keys(key: str, choice: FirstChoice, marker: Path) -> None:
    looking = Looking()
    looking.gate.open()
    host = app(looking)
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "some-pair" in drawn(pilot))
        await pilot.press(key)
        await until(pilot, lambda: host.results == [choice])
        assert marker.exists()


@pytest.mark.parametrize(
    ("offer", "text"),
    [
        (replace(OFFER, row=None, why="Nothing fits."), "Nothing fits."),
        (ValueError("odd"), "could not be found out"),
    ],
)
async def test_where_nothing_can_be_proposed_there_is_still_a_way_on(
    offer: Offer | Exception, text: str
) -> None:
    looking = Looking(offer)
    looking.gate.open()
    host = app(looking)
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: text in drawn(pilot))
        await pilot.press("2")
        await pilot.press("down", "enter")
        await until(pilot, lambda: host.results == [FirstChoice("choose")])


async def test_leaving_while_it_looks_leaves_nothing_behind() -> None:
    looking = Looking()
    async with app(looking).run_test() as pilot:
        await until(pilot, looking.gate.reached.is_set)
    looking.gate.open()
    await eventually(looking.gate.opened.is_set)


def test_a_size_that_only_the_hub_knows() -> None:
    lines = sentences(replace(OFFER, row=replace(ROW, sizes=(None, 1))))
    assert any("of a size that the hub knows" in line for line in lines)
