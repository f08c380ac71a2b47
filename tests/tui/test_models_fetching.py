"""Fetching from the models screen: real HTTP on loopback, and a store that fills."""

from __future__ import annotations

from edgespec.settings import Load
from model_registry import unfinished
from model_registry.store import Store
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub, Fault
from tests.shelf_stand import BIG_FILE, PAIR, TARGET
from tests.tui import models_driving
from tests.tui.models_driving import Models, typed
from tests.tui.shelf_app import drawn, until
from tui.screens.models import ModelChoice, ModelsScreen

fake, hub_settings = registry.fake, registry.hub_settings
store, hub = models_driving.store, models_driving.hub

SLOW = Fault(rate=100_000)


async def test_a_pair_is_fetched_after_asking_and_then_chosen(hub: FakeHub, store: Store) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, PAIR)
        await pilot.press("enter")
        await until(pilot, lambda: models.asked)
        shown = drawn(pilot)
        for text in (
            f"Fetch {PAIR}?",
            "toy-big",
            "draft: toy-small",
            "free",
            "Licence: mit.",
            "Fetch it",
        ):
            assert text in shown, text
        assert hub.calls == [], "the catalogue knows it all"
        await models.answer(pilot, "escape")
        assert models.downloads.all() == ()
        await models.fetch(pilot, PAIR)
        await until(pilot, lambda: models.where(PAIR) == "here")
        await until(pilot, lambda: models.downloads.all() == ())
        assert store.read().pair(PAIR)
        await models.on(pilot, PAIR)
        await pilot.press("enter")
        await until(pilot, lambda: models.app.results == [ModelChoice(PAIR, None)])


async def test_a_repository_is_fetched_with_the_draft_that_fits(hub: FakeHub, store: Store) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, PAIR)
        await typed(pilot, "big-gguf")
        await pilot.press("enter")
        await models.on(pilot, TARGET)
        await pilot.press("enter")
        await until(pilot, lambda: models.asked)
        assert BIG_FILE in drawn(pilot)
        assert "It would run" in drawn(pilot)
        await models.answer(pilot, "down", "enter")
        await until(pilot, lambda: models.where(TARGET) == "here now")
        (pair,) = store.read().pairs
        assert store.read().with_id(pair.draft).name == "toy-small"
        await pilot.press("enter")
        await until(pilot, lambda: models.app.results == [ModelChoice(pair.name, None)])


async def test_a_download_is_paused_gone_on_with_and_given_up(hub: FakeHub, store: Store) -> None:
    hub.always = SLOW
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.fetch(pilot, "toy-big")
        await models.arriving(pilot, "toy-big")
        assert "1 download" in drawn(pilot)
        await pilot.press("enter")
        assert "On its way".lower() in models.said.lower()
        await pilot.press("p")
        await until(pilot, lambda: models.where("toy-big").startswith("paused"))
        assert "1 paused" in drawn(pilot)
        await pilot.press("p")
        await models.arriving(pilot, "toy-big")
        await pilot.press("c")
        await until(pilot, lambda: models.asked)
        assert "have come" in drawn(pilot)
        await models.answer(pilot, "down", "enter")
        await until(pilot, lambda: models.where("toy-big").startswith("unfinished"))
        assert unfinished.listed(store)
        await until(pilot, lambda: "Remove" in drawn(pilot))
        await pilot.press("p")
        await models.arriving(pilot, "toy-big")
        await until(pilot, lambda: "Remove" not in drawn(pilot))
        await pilot.press("c")
        await models.answer(pilot, "down", "down", "enter")
        await until(pilot, lambda: models.where("toy-big") == "catalogue")
        assert not unfinished.listed(store)


async def test_a_download_goes_on_when_the_screen_is_closed(hub: FakeHub, store: Store) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        hub.always = SLOW
        await models.fetch(pilot, "toy-big")
        await models.arriving(pilot, "toy-big")
        await pilot.press("escape")
        await until(pilot, lambda: models.app.results == [None])
        assert models.downloads.all()[0].at_work
        again = ModelsScreen(models.downloads, Load())
        await models.app.push_screen(again)
        models.screen = again
        await models.arriving(pilot, "toy-big")
    assert models.downloads.close().startswith("The download of toy-big was stopped; ")
    assert unfinished.fetched(store, unfinished.listed(store)[0]) > 0


async def test_an_error_stays_readable_until_it_is_given_up(hub: FakeHub) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "toy-small")
        await pilot.press("enter")
        await until(pilot, lambda: models.asked)
        hub.always = Fault(status=403)
        await models.answer(pilot, "enter")
        await until(pilot, lambda: models.where("toy-small") == "failed")
        assert "refuses access" in models.about
        await pilot.press("up")
        assert "refuses access" not in models.about
        await pilot.press("down")
        assert "refuses access" in drawn(pilot)
        await pilot.press("c")
        await models.answer(pilot, "down", "enter")
        await until(pilot, lambda: models.where("toy-small") == "catalogue")
