"""The models screen as a person meets it: what it shows, and what is chosen, checked and removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgespec.settings import Load
from edgespec.shelf.stock import rows
from model_registry.store import Store
from tests.gguf_files import byte_vocab
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub
from tests.shelf_stand import DRAFT, PAIR, USE, put_model
from tests.tui import models_driving
from tests.tui.models_driving import Models, typed
from tests.tui.shelf_app import drawn, until
from tui.screens.models import ModelChoice

fake, hub_settings = registry.fake, registry.hub_settings
store, hub = models_driving.store, models_driving.hub


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_one_table_for_all_there_is(
    size: tuple[int, int], hub: FakeHub, store: Store, tmp_path: Path
) -> None:
    put_model(store, tmp_path, "mine")
    models = Models()
    async with models.app.run_test(size=size) as pilot:
        await models.on(pilot, "qwen2.5-7b")
        await until(pilot, lambda: models.cells("qwen2.5-7b")[2].startswith("~"))
        await until(pilot, lambda: models.cells("mine")[2] in {"RAM", "GPU"})
        assert models.names[0] == "mine"
        assert models.names.index("built-in") < models.names.index(PAIR)
        assert not models.screen.asked_hub
        assert models.cells("qwen2.5-7b")[1:4:2] == ["5.2 GB", "—"]
        assert models.where("built-in") == "in use"
        assert models.where("mine") == "here"
        shown = drawn(pilot)
        for text in (
            "Name",
            "Fit",
            "5.2 GB",
            "catalogue: chat",
            "in use: built-in",
            "/ Find",
            "esc Back",
        ):
            assert text in shown, text
        assert all(len(line) <= size[0] for line in shown.splitlines())
        assert "apache-2.0" in models.about
        assert "Guessed from the size" in models.about
        await models.on(pilot, PAIR)
        assert USE in models.about
        assert hub.calls == []
        await pilot.press("escape")
        await until(pilot, lambda: models.app.results == [None])


async def test_the_filter_narrows_at_once_and_sends_nothing_before_enter(hub: FakeHub) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, PAIR)
        await typed(pilot, "toy")
        await until(pilot, lambda: models.names == [PAIR, "toy-big", "toy-small"])
        assert hub.calls == []
        await pilot.press("escape")
        assert models.table.has_focus
        await typed(pilot, "zz")
        await until(pilot, lambda: models.names == [])
        assert "Nothing matches" in models.about
        models.screen.filter.value = "small"
        await pilot.press("enter")
        await until(pilot, lambda: DRAFT in models.names)
        assert [call.path.partition("?")[0] for call in hub.calls] == ["/api/models"]
        assert "search=small" in hub.calls[0].path
        assert "1 found on the hub" in models.said
        assert models.cells(DRAFT)[4] == "hub: 1000 downloads"


async def test_without_a_network_a_line_says_so() -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "built-in")
        await pilot.press("h")
        assert "Write a part of a name" in models.said
        assert models.screen.filter.has_focus
        await pilot.press("q", "enter")
        await until(pilot, lambda: "cannot be reached" in models.said)
        assert "qwen2.5-7b" in models.names
        assert "cannot be reached" in drawn(pilot)


async def test_a_draft_must_fit_what_answers(store: Store, tmp_path: Path) -> None:
    put_model(store, tmp_path, "big", width=64)
    put_model(store, tmp_path, "fits", seed=1)
    put_model(store, tmp_path, "foreign", vocab=byte_vocab().padded(200))
    models = Models(Load(model="big"))
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "foreign")
        await pilot.press("d")
        await until(pilot, lambda: "does not fit the target (size)" in models.said)
        await models.on(pilot, "big")
        await pilot.press("d")
        await until(pilot, lambda: "is the model that answers" in models.said)
        await pilot.press("enter")
        assert "answers already" in models.said
        await models.on(pilot, "fits")
        await pilot.press("d")
        await until(pilot, lambda: models.app.results == [ModelChoice("big", "fits")])


async def test_the_draft_in_use_is_taken_away_by_the_same_key(store: Store, tmp_path: Path) -> None:
    put_model(store, tmp_path, "big")
    put_model(store, tmp_path, "small", seed=1)
    models = Models(Load(model="big", draft="small"))
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "small")
        assert models.where("small") == "the draft in use"
        assert models.where("big") == "in use"
        await pilot.press("d")
        await until(pilot, lambda: models.app.results == [ModelChoice("big", "none")])


async def test_removing_asks_and_keeps_what_a_pair_uses(store: Store, tmp_path: Path) -> None:
    big = put_model(store, tmp_path, "big", width=64, alone=False)
    small = put_model(store, tmp_path, "small", seed=1)
    store.add_pair("duo", big, small, verdict="")
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "small")
        await pilot.press("delete")
        await until(pilot, lambda: "belongs to the pair duo" in models.said)
        await models.on(pilot, "duo")
        await pilot.press("delete")
        await until(pilot, lambda: models.asked)
        assert "big goes" in drawn(pilot)
        assert "small stays" in drawn(pilot)
        await models.answer(pilot, "enter")
        assert store.read().pair("duo"), "Enter alone removes nothing"
        await pilot.press("delete")
        await models.answer(pilot, "down", "enter")
        await until(pilot, lambda: "duo" not in models.names)
        assert [row.name for row in rows() if row.where == "here"] == ["small", "built-in"]
        assert "freed" in models.said
        await models.on(pilot, "built-in")
        await pilot.press("delete")
        assert "stays with it" in models.said


async def test_verifying_reads_every_byte(store: Store, tmp_path: Path) -> None:
    record = put_model(store, tmp_path, "mine")
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "mine")
        await pilot.press("v")
        await until(pilot, lambda: "mine is as it came" in models.said)
        content = bytearray(store.path(record).read_bytes())
        content[-1] ^= 1
        store.path(record).write_bytes(content)
        await pilot.press("v")
        await until(pilot, lambda: "does not have the content" in models.said)
        assert models.where("mine") == "here"


async def test_details_are_shown_and_closed(store: Store, tmp_path: Path) -> None:
    record = put_model(store, tmp_path, "mine")
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "mine")
        await pilot.press("i")
        await until(pilot, lambda: models.asked)
        await pilot.press("end")
        await until(pilot, lambda: record.files[0].sha256[:12] in drawn(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: not models.asked)


async def test_only_keys_that_do_something_are_offered(store: Store, tmp_path: Path) -> None:
    put_model(store, tmp_path, "mine")
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "mine")
        await until(pilot, lambda: "Verify" in drawn(pilot))
        assert "Cancel" not in drawn(pilot)
        await models.on(pilot, "qwen2.5-7b")
        await until(pilot, lambda: "Verify" not in drawn(pilot))
        assert "Details" in drawn(pilot)


async def test_a_broken_catalogue_is_told_and_the_rest_is_there(
    store: Store, tmp_path: Path
) -> None:
    put_model(store, tmp_path, "mine")
    (tmp_path / "catalog.yaml").write_text("schema: 1\nmodels: {x: 3}\n")
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: models.names == ["mine", "built-in"])
        assert "catalog.yaml" in models.said


async def test_the_cursor_stays_on_its_row_when_the_window_changes(hub: FakeHub) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, "toy-big")
        await pilot.resize_terminal(120, 30)
        await until(pilot, lambda: models.screen.size.width == 120)
        assert models.table.current == "toy-big"
        assert models.cells("toy-big")[1] != ""
        await pilot.resize_terminal(60, 16)
        await until(pilot, lambda: models.screen.size.width == 60)
        assert models.table.current == "toy-big"
        assert "toy-big" in drawn(pilot)


async def test_what_only_the_hub_can_tell_is_no_secret_from_the_offline_mark(hub: FakeHub) -> None:
    models = Models()
    async with models.app.run_test(size=(80, 24)) as pilot:
        await models.on(pilot, PAIR)
        await pilot.press("enter")
        await models.answer(pilot, "escape")
        assert not models.screen.asked_hub, "the catalogue knows this one"
        await models.on(pilot, "qwen2.5-coder-14b")
        await pilot.press("enter")
        assert models.screen.asked_hub
        await until(pilot, lambda: "is not on the hub" in models.said)
