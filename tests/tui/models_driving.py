"""Driving the models screen: the screen in an app, a hub on loopback, a store of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from edgespec.settings import Load
from model_registry import catalog
from model_registry.store import Store
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub
from tests.shelf_stand import catalogue, put_on_hub
from tests.tui.shelf_app import ScreenApp, until
from tui.downloads import Downloads
from tui.screens.ask import AskScreen
from tui.screens.models import ModelChoice, ModelsScreen
from tui.widgets.model_table import ModelTable

fake, hub_settings = registry.fake, registry.hub_settings


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_settings: Path) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(catalog, "user_file", lambda: tmp_path / "catalog.yaml")
    return Store(tmp_path / "store")


@pytest.fixture
def hub(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    put_on_hub(fake)
    (tmp_path / "catalog.yaml").write_text(catalogue(fake))
    monkeypatch.setenv("HF_ENDPOINT", fake.url)
    return fake


class Models:
    """The screen in an app, and what a test looks at."""

    def __init__(self, load: Load | None = None) -> None:
        self.downloads = Downloads()
        self.screen = ModelsScreen(self.downloads, load or Load())
        self.app: ScreenApp[ModelChoice | None] = ScreenApp(self.screen)

    @property
    def table(self) -> ModelTable:
        return self.screen.table

    def cells(self, name: str) -> Sequence[str]:
        """The cells of the row of this name, empty for none."""
        found = ([str(cell) for cell in self.table.get_row(key)] for key in self.table.rows)
        return next((cells for cells in found if cells[0] == name), [""] * 5)

    def where(self, name: str) -> str:
        return self.cells(name)[4].partition(":")[0]

    @property
    def names(self) -> list[str]:
        return [str(self.table.get_row(key)[0]) for key in self.table.rows]

    @property
    def said(self) -> str:
        return str(self.screen.query_one("#said", Static).content)

    @property
    def about(self) -> str:
        return str(self.screen.query_one("#about", Static).content)

    @property
    def asked(self) -> bool:
        return isinstance(self.app.screen, AskScreen)

    async def on(self, pilot: Pilot[Any], name: str) -> None:
        """Put the cursor on a row once it is there."""
        await until(pilot, lambda: name in self.names)
        self.table.move_cursor(row=self.names.index(name))
        await pilot.pause()

    async def answer(self, pilot: Pilot[Any], *keys: str) -> None:
        """Answer the question that comes."""
        await until(pilot, lambda: self.asked)
        await pilot.press(*keys)
        await until(pilot, lambda: not self.asked)

    async def fetch(self, pilot: Pilot[Any], name: str) -> None:
        await self.on(pilot, name)
        await pilot.press("enter")
        await self.answer(pilot, "enter")

    async def arriving(self, pilot: Pilot[Any], name: str) -> None:
        await until(pilot, lambda: self.where(name).startswith("↓") and "%" in self.where(name))


async def typed(pilot: Pilot[Any], text: str) -> None:
    await pilot.press("slash", *text)
