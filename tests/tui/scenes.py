"""What the pictures of the README show: scripted, so that they are the same on every machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from textual.pilot import Pilot

from tests.tui.driving import make_app, prompt, ready, send, settled
from tests.tui.fake_session import FakeSession, answer
from tui.app import EdgeSpecApp

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


@dataclass(frozen=True)
class Scene:
    """One picture."""

    title: str
    app: Callable[[], EdgeSpecApp]
    arrange: Callable[[Pilot[None]], Awaitable[None]]
    size: tuple[int, int] = (100, 32)


def _session() -> FakeSession:
    session = FakeSession(answer(ANSWERED))
    session.target_name = "Qwen2.5-Coder-7B-Instruct-Q4_K_M"
    session.draft_name = "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M"
    return session


def _app() -> EdgeSpecApp:
    return make_app(_session(), model="qwen2.5-coder-7b")


async def _chat(pilot: Pilot[None]) -> None:
    await ready(pilot)
    prompt(pilot).cursor_blink = False
    await send(pilot, ASKED)
    await settled(pilot)


SCENES: dict[str, Scene] = {
    "chat": Scene("edgespec chat", _app, _chat),
}
