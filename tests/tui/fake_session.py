"""A session that follows a script, so that a test decides when an answer goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from edgespec.events import FirstToken, Prefilled, Reason, Round
from edgespec.reply import ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.session import Memory
from edgespec.stats import Stats

SAFETY_SECONDS = 60


class Gate:
    """A place in a script where the session waits for the test."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def open(self) -> None:
        self.opened.set()

    def wait(self) -> None:
        self.reached.set()
        self.opened.wait(SAFETY_SECONDS)


Step = ReplyEvent | Gate | Exception

STATS = (
    Stats()
    .after(Prefilled(done=40, total=40, reused=0, seconds=0.2))
    .after(FirstToken(token=1, seconds=0.25))
    .after(
        Round(
            tokens=tuple(range(85)),
            proposed=160,
            tested=130,
            accepted=84,
            draft_seconds=0.5,
            verify_seconds=1.4,
            seconds=2.0,
        )
    )
)
"""42.5 tokens a second, 65 % of 130 tested drafts accepted."""


def answer(*texts: str, reason: Reason = Reason.END, stats: Stats = STATS) -> list[Step]:
    """A whole answer, one round for each text."""
    steps: list[Step] = [Prefilled(done=40, total=40, reused=0, seconds=0.2)]
    for text in texts:
        steps += [TextDelta(text), StatsChanged(stats)]
    return [*steps, ReplyDone("".join(texts), reason, stats)]


class FakeSession:
    """Implements `tui.session_like.SessionLike`; gives one script after the other."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = [list(script) for script in scripts]
        self.notices: tuple[str, ...] = ()
        self.target_name = "Fake-1B-Q4_K_M"
        self.draft_name: str | None = "Fake-100M-Q8_0"
        self.method = "draft"
        self.draft_length = 8
        self.context_size = 2048
        self.context_used = 512
        self.asked: list[str] = []
        self.cancels = 0
        self.closes = 0
        self.closed_while_iterated = False
        self.closed_in: threading.Thread | None = None
        self.late_cancel = False
        """Whether a cancel that comes before the first event is lost, as a race would lose it."""
        self.deaf = False
        """Whether a cancel does not reach the place where the script waits."""
        self.process = 612_000_000
        self._iterated = False
        self._cancelled = threading.Event()
        self._gate: Gate | None = None

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        self.asked.append(text)
        return self._run(self.scripts.pop(0))

    def regenerate(self) -> Iterator[ReplyEvent]:
        self.asked.append("(again)")
        return self._run(self.scripts.pop(0))

    def cancel(self) -> None:
        self.cancels += 1
        self._cancelled.set()
        if self._gate is not None and not self.deaf:
            self._gate.open()

    def memory(self) -> Memory:
        return Memory(process=self.process, weights=105_000_000, kv_cache=8_000_000)

    def close(self) -> None:
        self.closes += 1
        self.closed_while_iterated |= self._iterated
        self.closed_in = threading.current_thread()

    def _run(self, steps: list[Step]) -> Iterator[ReplyEvent]:
        self._cancelled.clear()
        self._iterated = True
        text = ""
        try:
            for step in steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, Gate):
                    self._pass(step)
                elif not self._cancelled.is_set():
                    text += step.text if isinstance(step, TextDelta) else ""
                    yield step
                if self._cancelled.is_set():
                    break
        finally:
            self._iterated = False
        if self._cancelled.is_set():
            yield ReplyDone(text, Reason.CANCELLED, STATS)

    def _pass(self, gate: Gate) -> None:
        self._gate = gate
        if self.late_cancel:
            gate.wait()
            self._cancelled.clear()
            self.late_cancel = False
        else:
            gate.wait()
        self._gate = None
