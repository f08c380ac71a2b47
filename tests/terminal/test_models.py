"""Other models in a running conversation: switched to by name, fetched from the hub and chatted with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from model_registry.store import Store
from tests.conftest import ModelFiles
from tests.gguf_files import random_llama
from tests.registry.fake_hub import FakeHub
from tests.registry.stored import put
from tests.terminal.app import CUT, EMPTY_PROMPT, App, assert_clean
from tests.terminal.conftest import Open, options

REPO = "maker/toy-GGUF"


@pytest.fixture
def store(environment: dict[str, str], models: ModelFiles) -> Store:
    """A real model and a rambling one, under names."""
    store = Store(Path(environment["EDGESPEC_HOME"]))
    put(store, models.smollm2, linked=True, name="real")
    put(store, models["rambler"], linked=True, name="rambler")
    return store


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    folder = tmp_path / "hub" / REPO
    folder.mkdir(parents=True)
    random_llama(folder / "toy-q8_0.gguf", seed=7)
    with FakeHub(tmp_path / "hub") as hub:
        yield hub


def test_another_model_in_a_running_conversation(open_terminal: Open, store: Store) -> None:
    terminal = open_terminal()
    app = App(terminal, *options("rambler", "--max-tokens", "6"))
    app.ready()
    app.ask("Remember the word apple.")
    terminal.wait(CUT)
    app.at_rest()
    app.command("/model real", expect="SmolLM2")
    terminal.wait("Remember the word apple.", "SmolLM2-135M-Instruct.Q4_1 is ready")
    app.ask("What is the capital of France? Answer in one word.")
    terminal.wait("Remember the word apple.", f"the capital of france is {CUT}")
    app.at_rest()
    app.command("/model no-such-model", expect="Nothing here is called no-such-model")
    app.at_rest()
    app.ask("Still there?")
    terminal.wait("Still there?", EMPTY_PROMPT, CUT)
    assert app.quit() == 0
    assert_clean(terminal)


def test_a_model_from_the_hub(
    open_terminal: Open, rambler: list[str], environment: dict[str, str], hub: FakeHub
) -> None:
    terminal = open_terminal(width=100, HF_ENDPOINT=hub.url)
    app = App(terminal, *rambler, "--max-tokens", "6")
    app.ready()
    app.command("/models", expect="Use/fetch")
    terminal.type("/")
    terminal.wait(gone=("Use/fetch",))
    terminal.type("toy")
    terminal.press("Enter")
    terminal.wait(REPO)
    terminal.press("Enter")
    terminal.wait("Fetch it")
    terminal.press("Enter")
    store = Store(Path(environment["EDGESPEC_HOME"]))
    terminal.until(lambda: bool(store.read().models), "a stored model")
    assert hub.deliveries("toy-q8_0.gguf")
    terminal.wait("here now")
    terminal.press("Enter")
    terminal.wait("toy-q8_0 is ready", EMPTY_PROMPT)
    app.ask("hello")
    terminal.wait(CUT)
    assert app.quit() == 0
    assert_clean(terminal)
