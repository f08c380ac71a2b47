"""The inner program of bench_app.py: decodes, alone or in the app, and tells the outer one how fast."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from textual import on
from textual.app import App, ComposeResult
from textual.widgets import Footer, Static

import tui.screens.chat
from edgespec.events import FirstToken, Prefilled, Reason, Round
from edgespec.reply import ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.sampling import Sampling
from edgespec.settings import Load, Settings
from edgespec.stats import Stats
from tests.tui.fake_session import FakeSession
from tui.messages import ReplyFinished, SessionReady, StatsArrived, TextArrived
from tui.session_like import SessionLike
from tui.widgets.answer_turn import AnswerTurn
from tui.widgets.prompt import Prompt
from tui.widgets.status_line import StatusLine
from tui.widgets.transcript import Transcript
from tui.worker import SessionScreen

STARTED = time.perf_counter()
IDLE_SECONDS = 5.0
QUESTION = "Write a very long tutorial about Python with many code examples in Markdown."
PARAGRAPH = (
    "Speculative decoding lets a **small model** propose what a large one then checks, so that "
    "several tokens come out of `one pass`; see [the notes][notes] for the *reasons*. "
)
CODE = '''\
class Window:
    """The turns that the model sees."""

    def __init__(self, size: int) -> None:
        self.size = size  # tokens
        self.turns: list[str] = []

    def add(self, turn: str) -> bool:
        if len(turn) > self.size:
            raise ValueError(f"too long: {len(turn)} > {self.size}")
        self.turns.append(turn)
        return sum(map(len, self.turns)) <= self.size

'''
PIECES = (
    f"## A section\n\n{PARAGRAPH * 3}\n\n",
    f"```python\n{CODE * 3}```\n\n",
    "".join(f"{item}. point {item} with **bold** and `code`\n" for item in range(1, 13)) + "\n",
    "| name | value | note |\n|:--|--:|---|\n"
    + "".join(f"| row {row} | {row * 7} | some words |\n" for row in range(10))
    + "\n",
    f"> {PARAGRAPH}\n\n- a\n  - nested\n- b\n\n",
)


def answer_tokens(count: int) -> list[str]:
    """Markdown with code, in pieces as large as tokens."""
    found = re.findall(r" ?\w{1,6}|\n+|[^\w\n]", "".join(PIECES))
    return (found * (count // len(found) + 1))[:count]


@dataclass(frozen=True)
class Entry:
    """A message of the restored conversation."""

    id: int
    role: str
    content: str
    complete: bool = True


def conversation(count: int) -> list[Entry]:
    """Questions, and answers of some paragraphs, lists and code."""
    answers = [PIECES[0] + PIECES[1], PIECES[0] + PIECES[2], PIECES[3] + PIECES[4]]
    return [
        Entry(n, "assistant", answers[n // 2 % 3]) if n % 2 else Entry(n, "user", f"Question {n}?")
        for n in range(count)
    ]


class Effort:
    """Native work on two cores that leaves the interpreter free, and ends when both are done."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._help, daemon=True).start()

    def __call__(self) -> None:
        """The work of one token."""
        self._go.release()
        hashlib.sha256(bytes(self._size))
        self._done.acquire()

    def _help(self) -> None:
        while self._go.acquire():
            hashlib.sha256(bytes(self._size))
            self._done.release()


def calibrated(rate: float) -> int:
    """Bytes whose digest takes one token's time on this machine, alone."""
    size = 1_000_000
    effort, seconds = Effort(size), []
    for _ in range(200):
        start = time.perf_counter()
        effort()
        seconds.append(time.perf_counter() - start)
    return round(size / rate / sorted(seconds)[len(seconds) // 2])


class PacedSession(FakeSession):
    """Decodes nothing, at the price of decoding."""

    def __init__(self, tokens: int, size: int) -> None:
        super().__init__()
        self._tokens = answer_tokens(tokens)
        self._effort = Effort(size)

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        """The same Markdown for every question."""
        stats = Stats().after(Prefilled(8, 8, 0, 0.1)).after(FirstToken(1, 0.1))
        for token in self._tokens:
            start = time.perf_counter()
            self._effort()
            seconds = time.perf_counter() - start
            self.context_used += 1
            stats = stats.after(Round((1,), 0, 0, 0, 0.0, seconds, seconds))
            yield TextDelta(token)
            yield StatsChanged(stats)
        yield ReplyDone("".join(self._tokens), Reason.END, stats)


def open_session(options: argparse.Namespace) -> SessionLike:
    """The session that the options ask for."""
    if not options.model:
        return PacedSession(options.tokens, options.size)
    from edgespec.session import Session  # noqa: PLC0415 - loads the runtime

    load = Load(model=options.model, draft="none", threads=options.threads, context=8192)
    settings = Settings(load=load, sampling=Sampling(temperature=0.0), max_tokens=options.tokens)
    return Session.open(settings)


class Watch:
    """Counts the passes of an answer as they leave the session; without drafts, tokens."""

    def __init__(self) -> None:
        self.first = self.last = 0.0
        self.passes = 0

    def __call__(self, events: Iterator[ReplyEvent]) -> Iterator[ReplyEvent]:
        """The same events."""
        for event in events:
            if isinstance(event, StatsChanged):
                self.last = time.perf_counter()
                self.first = self.first or self.last
                self.passes += 1
            yield event

    @property
    def seconds(self) -> float:
        """From the first pass to the last."""
        return self.last - self.first

    @property
    def rate(self) -> float:
        """Passes a second."""
        return (self.passes - 1) / self.seconds


def report(options: argparse.Namespace, event: str, **values: float) -> None:
    """Tell the outer program."""
    os.write(options.reports, (json.dumps({"event": event, **values}) + "\n").encode())


class BenchScreen(SessionScreen):
    """Transcript, prompt and status line, with the app's own worker."""

    CSS_PATH = Path(tui.screens.chat.__file__).with_name("chat.tcss")

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(Settings(), lambda _: open_session(options))
        self.options = options
        self.counted = Watch()
        self.used = self.rested = self.begun = 0.0

    def compose(self) -> ComposeResult:
        """As in the chat."""
        yield Static("EdgeSpec  benchmark", id="headline")
        yield Transcript()
        yield Prompt()
        yield StatusLine()
        yield Footer()

    def on_mount(self) -> None:
        """First a picture, then the conversation."""
        self.query_one(Prompt).focus()
        self.call_after_refresh(self.fill)

    async def fill(self) -> None:
        """Show the restored conversation."""
        self.begun = time.perf_counter()
        await self.query_one(Transcript).show(conversation(self.options.messages))
        self.call_after_refresh(self.filled)

    def filled(self) -> None:
        """The conversation is on the screen."""
        shown = time.perf_counter() - self.begun
        report(self.options, "shown", open=shown, first_frame=self.begun - STARTED)
        self.open_session()

    @on(SessionReady)
    def ready(self) -> None:
        """Let the typist type for a while before anything streams."""
        report(self.options, "ready")
        self.set_timer(self.options.quiet, self.begin)

    async def begin(self) -> None:
        """Ask."""
        transcript = self.query_one(Transcript)
        await transcript.add_question(QUESTION)
        await transcript.begin_answer(again=False)
        self.used = time.thread_time()
        self.start_reply(lambda session: self.counted(session.reply(QUESTION)))
        report(self.options, "begin")

    @on(TextArrived)
    def text_arrived(self, event: TextArrived) -> None:
        """As in the chat."""
        transcript = self.query_one(Transcript)
        for piece in event.pieces:
            transcript.write(piece.text, piece.drafted)
        transcript.draw()

    @on(StatsArrived)
    def stats_arrived(self, event: StatsArrived) -> None:
        """As in the chat."""
        line = self.query_one(StatusLine)
        line.status = replace(line.status, stats=event.stats, context_used=event.context_used)

    @on(ReplyFinished)
    async def finished(self, event: ReplyFinished) -> None:
        """As in the chat."""
        self.used = time.thread_time() - self.used
        await self.query_one(Transcript).finish_answer(event.done.text, event.done.reason)

    @on(AnswerTurn.Settled)
    def settled(self) -> None:
        """The last word is on the screen."""
        watch, now = self.counted, time.perf_counter()
        report(
            self.options, "end", rate=watch.rate, tokens=watch.passes,
            behind=now - watch.last, share=self.used / watch.seconds,
        )  # fmt: skip
        self.set_timer(2.0, self.rest)

    def rest(self) -> None:
        """Do nothing for a while."""
        self.rested = time.process_time()
        self.set_timer(IDLE_SECONDS, self.leave)

    def leave(self) -> None:
        """Tell what doing nothing cost, and go."""
        report(self.options, "idle", share=(time.process_time() - self.rested) / IDLE_SECONDS)
        self.leave_session()
        self.app.exit()


class BenchApp(App[None]):
    """Only the one screen."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options = options

    def on_mount(self) -> None:
        """Show it."""
        self.push_screen(BenchScreen(self.options))


def run_alone(options: argparse.Namespace) -> None:
    """Decode without an app, as `edgespec run` does."""
    session, watch = open_session(options), Watch()
    for _ in watch(session.reply(QUESTION)):
        pass
    session.close()
    report(options, "end", rate=watch.rate, tokens=watch.passes)


def main() -> None:
    """Do what the outer program asks for."""
    options = argparse.Namespace(**json.loads(sys.argv[1]))
    if options.kind == "app":
        BenchApp(options).run()
    elif options.kind == "alone":
        run_alone(options)
    else:
        report(options, "end", size=calibrated(options.rate))


if __name__ == "__main__":
    main()
