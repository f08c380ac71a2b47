"""The chat as it looks: narrow and wide, dark and light, while it answers and when there is no model."""

from __future__ import annotations

import re

import pytest
from textual.pilot import Pilot

from edgespec.errors import ModelFileError
from edgespec.events import Reason
from edgespec.reply import StatsChanged, TextDelta
from edgespec.settings import Load, Settings
from tests.tui.driving import make_app, prompt, ready, screen, send, settled, until
from tests.tui.fake_readings import LAPTOP, WHY, history, mixed
from tests.tui.fake_session import FakeSession, Gate, Step, answer
from tests.tui.snapshots import assert_picture, faint_text, picture
from tui.app import EdgeSpecApp
from tui.phase import Phase
from tui.services import Services
from tui.session_like import SessionLike

ANSWER = """\
Two ways, both in *linear* time:

1. `sorted(a + b)` is short.
2. Merging keeps it stable:

```python
def merge(a, b):
    while a and b:
        yield (a if a[0] <= b[0] else b).pop(0)
```

| way | time |
|---|---|
| sort | n log n |
| merge | n |
"""


NUMBERS = list(history(mixed(), plain=0.05))[-1]


def talking(*, thought: str = "", reason: Reason = Reason.END) -> FakeSession:
    session = FakeSession(answer(thought + ANSWER, reason=reason, stats=NUMBERS))
    session.why = WHY
    session.memory = lambda: LAPTOP  # type: ignore[method-assign]
    return session


async def asked(pilot: Pilot[None], text: str = "How do I merge two sorted lists?") -> None:
    await ready(pilot)
    await send(pilot, text)
    await settled(pilot)
    await until(pilot, lambda: screen(pilot).status.memory is LAPTOP)
    await pilot.pause(0.5)  # what is drawn at most some times a second is drawn


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (140, 40), (40, 12)])
async def test_an_answer(size: tuple[int, int]) -> None:
    async with make_app(talking()).run_test(size=size) as pilot:
        await asked(pilot)
        await assert_picture(pilot, "chat")


async def test_an_answer_with_the_instruments_in_a_small_terminal() -> None:
    async with make_app(talking()).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("f9")
        await asked(pilot)
        await assert_picture(pilot, "chat-instruments")


async def test_thoughts_are_folded_and_a_cut_answer_says_so() -> None:
    session = talking(thought="<think>\nLists.\nSorted.\n</think>\n", reason=Reason.LENGTH)
    async with make_app(session).run_test(size=(80, 40)) as pilot:
        await asked(pilot)
        await assert_picture(pilot, "chat-thought")
        await pilot.press("ctrl+t")
        await pilot.pause()
        await assert_picture(pilot, "chat-thought-open")


async def test_a_command_is_being_written() -> None:
    async with make_app(FakeSession()).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("slash", "m")
        await pilot.pause()
        await assert_picture(pilot, "chat-command")


async def test_what_was_drafted_is_marked_without_colour() -> None:
    steps: list[Step] = [*answer()[:1], TextDelta("drafted and own", drafted=7)]
    session = FakeSession(
        [
            *steps,
            StatsChanged(NUMBERS),
            *answer("drafted and own")[-1:],
        ]
    )
    async with make_app(session).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await settled(pilot)
        await pilot.press("f8")
        await pilot.pause(0.5)
        await assert_picture(pilot, "chat-tint")


async def test_a_selected_message_is_marked_without_colour() -> None:
    async with make_app(talking()).run_test(size=(80, 40)) as pilot:
        await asked(pilot)
        await pilot.press("tab", "up")
        await pilot.pause()
        await assert_picture(pilot, "chat-selected")


async def test_loading_and_no_model() -> None:
    gate = Gate()

    def opener(_: Settings) -> SessionLike:
        gate.wait()
        raise ModelFileError("x.gguf is damaged.", "Fetch it again.")

    app = EdgeSpecApp(
        Settings(load=Load(model="x.gguf")), Services(open_session=opener, open_history=None)
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, gate.reached.is_set)
        await pilot.pause(0.3)
        await assert_picture(pilot, "chat-loading")
        gate.open()
        await until(pilot, lambda: screen(pilot).phase is Phase.FAILED)
        await pilot.pause(0.3)
        await assert_picture(pilot, "chat-no-model")


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_both_themes_can_be_read_and_show_the_same(theme: str) -> None:
    async with make_app(talking()).run_test(size=(140, 40)) as pilot:
        await asked(pilot)
        before = picture(pilot.app)
        pilot.app.theme = theme
        prompt(pilot).cursor_blink = False
        await pilot.pause(0.5)
        assert picture(pilot.app) == before
        # What Textual draws beside the text may be faint, and so may a placeholder.
        words = [text for text in faint_text(pilot.app, 2.5) if re.search(r"\w.* \(", text)]
        assert words == []
