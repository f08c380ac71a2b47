"""A session that follows a script, so that a test decides when an answer goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from edgespec.conversation import Message
from edgespec.errors import UsageError
from edgespec.events import FirstToken, Prefilled, Reason, Round
from edgespec.measuring import TuneEvent
from edgespec.memory import Memory
from edgespec.reply import ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.settings import Method, Settings
from edgespec.stats import Stats
from profiles.tuned import Tuned

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
        self.opens_thought = False
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
        self.settings = Settings()
        self.messages: tuple[Message, ...] = ()
        self.why: str | None = None
        self.tunes: list[list[TuneEvent]] = []
        self._iterated = False
        self._cancelled = threading.Event()
        self._gate: Gate | None = None

    def lack(self, method: Method) -> str | None:
        return "The method tree needs a draft model." if method == "tree" else None

    def count(self, text: str) -> int:
        return len(text.split())

    def restore(self, messages: Sequence[Message]) -> None:
        self.messages = tuple(messages)

    def configure(self, settings: Settings) -> None:
        if settings.load != self.settings.load:
            raise UsageError("Another model has to be loaded for this.", "Open it instead.")
        self.settings = settings

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        self.asked.append(text)
        return self._talk((*self.messages, Message("user", text)))

    def edit(self, index: int, text: str) -> Iterator[ReplyEvent]:
        self.asked.append(f"(instead of {index}) {text}")
        return self._talk((*self.messages[:index], Message("user", text)))

    def regenerate(self) -> Iterator[ReplyEvent]:
        self.asked.append("(again)")
        return self._talk(self.messages[:-1])

    def continue_answer(self) -> Iterator[ReplyEvent]:
        self.asked.append("(go on)")
        return self._talk(self.messages[:-1], self.messages[-1].content)

    def tune(self, *, quick: bool, force: bool) -> Iterator[TuneEvent]:
        yield from self.tunes.pop(0)

    def tuned(self) -> Tuned | None:
        return None

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

    def _talk(self, messages: tuple[Message, ...], begun: str = "") -> Iterator[ReplyEvent]:
        """As `Session` does: nothing changes where an answer fails, or another does not come."""
        before, self.messages = self.messages, messages
        kept = False
        try:
            if begun:
                yield TextDelta(begun)
            for event in self._run(self.scripts.pop(0)):
                if isinstance(event, ReplyDone):
                    text = begun + event.text
                    kept = bool(text) or len(messages) > len(before)
                    complete = event.reason in {Reason.END, Reason.STOP}
                    if text:
                        self.messages = (*messages, Message("assistant", text, (), complete))
                    yield ReplyDone(text, event.reason, event.stats)
                else:
                    yield event
        finally:
            if not kept:
                self.messages = before

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
