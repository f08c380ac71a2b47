"""Every screen as the README shows it: scripted, so that it is the same on every machine."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from textual.app import App
from textual.pilot import Pilot

from edgespec.first_run import Offer
from edgespec.history.records import Entry, Summary, Whole
from edgespec.history.store import History
from edgespec.memory import Device
from edgespec.memory_plan import Machine
from edgespec.personas import load_all
from edgespec.settings import Load
from edgespec.shelf.row import Row
from tests.tui.driving import eventually, make_app, prompt, ready, send, settled
from tests.tui.fake_readings import LAPTOP, WHY, history, mixed
from tests.tui.fake_session import FakeSession, answer
from tests.tui.hosting import Host, picture
from tests.tui.test_tune_screen import KNOWN
from tui.downloads import Downloads
from tui.screens.first_run import FirstRunScreen
from tui.screens.help import HelpScreen
from tui.screens.history import HistoryScreen
from tui.screens.models import ModelsScreen
from tui.screens.persona import PersonaScreen
from tui.screens.tune import TuneScreen
from tui.widgets.prompt import Prompt

ASKED = "Write a function that merges two sorted lists. Just the code, then why it is O(n)."
ANSWERED = """\
```python
def merge(left: list[int], right: list[int]) -> list[int]:
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]
```

Every step of the loop **takes one element off** one of the lists, and what is left at the end is
copied once. So each of the *n* elements is looked at a constant number of times.
"""
GIB = 1 << 30
MACHINE = Machine(Device("CPU", "cpu", 12 * GIB, 16 * GIB))
OFFER = Offer(
    hardware=(
        "A processor with 8 cores, 16 GB of memory, no graphics card that this build can use.",
    ),
    row=Row(
        "qwen2.5-coder-1.5b",
        "pair",
        "catalogue",
        "qwen2.5-coder-1.5b",
        sizes=(1_100_000_000, 491_000_000),
        use="code, on a small machine",
        licence="apache-2.0",
    ),
    why="It fits into memory beside other programs, and reads fast enough for people.",
    brings="How fast it is here is measured when it is here: nobody knows it before.",
)


@dataclass(frozen=True)
class Scene:
    """One picture."""

    title: str
    app: Callable[[], App[None]]
    arrange: Callable[[Pilot[Any]], Awaitable[None]]
    size: tuple[int, int] = (100, 32)


def _chat() -> App[None]:
    session = FakeSession(answer(ANSWERED, stats=list(history(mixed(), plain=0.05))[-1]))
    session.target_name = "Qwen2.5-Coder-7B-Instruct-Q4_K_M"
    session.draft_name = "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M"
    session.why = WHY
    session.memory = lambda: LAPTOP  # type: ignore[method-assign]
    return make_app(session, model="qwen2.5-coder-7b")


async def _talk(pilot: Pilot[Any]) -> None:
    await ready(pilot)
    prompt(pilot).cursor_blink = False
    await send(pilot, ASKED)
    await settled(pilot)
    await pilot.pause(1.5)  # what is drawn once a second is drawn


def _history() -> App[None]:
    place = Path(tempfile.mkdtemp()) / "history.db"
    told = [
        ("Why is the sky blue?", "", "Light of short waves is scattered more."),
        ("Translate this letter into French", "letters", "Chère Madame,"),
        ("Merge two sorted lists", "code", "Here is a function that does it."),
    ]
    kept = History.open(place)
    for day, (title, folder, text) in enumerate(told, start=1):
        when = datetime(2024, 3, day, 9, 30, tzinfo=UTC)
        summary = Summary(0, title, folder, when, when, "Qwen2.5-7B-Instruct-Q4_K_M", "", 2)
        asked = Entry(1, None, "user", title, complete=True, created_at=when)
        said = Entry(2, 1, "assistant", text, True, when, "Qwen2.5-7B-Instruct-Q4_K_M")
        kept.take(Whole(summary, (asked, said), 2))
    kept.close()
    return Host(HistoryScreen(lambda: History.open(place)))


async def _listed(pilot: Pilot[Any]) -> None:
    await eventually(lambda: "sky" in picture(pilot))
    await pilot.pause(0.2)


async def _stocked(pilot: Pilot[Any]) -> None:
    with patch("edgespec.fitting.this_machine", lambda *_: MACHINE):
        await eventually(lambda: "~" in picture(pilot))
        await pilot.pause(1.0)


async def _still(pilot: Pilot[Any]) -> None:
    await pilot.pause(0.5)


SCENES: dict[str, Scene] = {
    "chat": Scene("edgespec chat", _chat, _talk, (130, 38)),
    "models": Scene(
        "/models", lambda: Host(ModelsScreen(Downloads(), Load(), {})), _stocked, (100, 24)
    ),
    "tune": Scene(
        "/tune",
        lambda: Host(
            TuneScreen(lambda quick: iter(()), lambda: None, known=KNOWN, title="Qwen2.5-Coder-7B")
        ),
        _still,
        (100, 36),
    ),
    "history": Scene("/history", _history, _listed, (100, 16)),
    "persona": Scene(
        "/persona", lambda: Host(PersonaScreen(load_all(), "coder")), _still, (100, 24)
    ),
    "help": Scene(
        "/help", lambda: Host(HelpScreen({"Writing": Prompt.BINDINGS})), _still, (100, 32)
    ),
    "first-run": Scene(
        "the first start", lambda: Host(FirstRunScreen(lambda: OFFER)), _still, (100, 24)
    ),
}
"""By name."""
