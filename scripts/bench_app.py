"""What the app costs: keystrokes while an answer streams, and what drawing takes from the model.

The app runs in a terminal of its own (a pty). This program types into it and waits for each
character to come back painted, while a thread of the app decodes: 4,000 tokens of Markdown with code
into a conversation of 200 messages. The thread works as llama.cpp does, on all cores and without the
interpreter; alone it delivers the given number of tokens a second. With --model it is a real session.
Numbers are printed, nothing is judged. Linux and macOS.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import random
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

GLYPHS = [chr(code) for code in range(0x2801, 0x2900)]
"""Characters to type: braille, which no answer holds, each one once."""
PATIENCE = 5.0
IDLE_SECONDS = 5.0
LAYERS, SIZE = 24, 640
"""A made-up model: matrices that one token goes through."""

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
    f"## Section {{n}}\n\n{PARAGRAPH * 3}\n\n",
    f"```python\n{CODE * 3}```\n\n",
    "".join(f"{item}. point {item} with **bold** and `code` in it\n" for item in range(1, 13))
    + "\n",
    "| name | value | note |\n|:--|--:|---|\n"
    + "".join(f"| row {row} | {row * 7} | some words |\n" for row in range(10))
    + "\n",
    f"> {PARAGRAPH}\n\n- a\n  - nested\n- b\n\n",
)


def answer_tokens(count: int) -> list[str]:
    """Markdown with code, in pieces as large as tokens."""
    found: list[str] = []
    number = 0
    while len(found) < count:
        text = PIECES[number % len(PIECES)].replace("{n}", str(number))
        found += re.findall(r" ?\w{1,6}|\n+|[^\w\n]", text)
        number += 1
    return found[:count]


@dataclass(frozen=True)
class Entry:
    """A message of the restored conversation."""

    id: int
    role: str
    content: str
    complete: bool = True


def conversation(count: int) -> list[Entry]:
    """Questions and answers of some paragraphs, lists and code."""
    answers = [PIECES[0] + PIECES[1], PIECES[0] + PIECES[2], PIECES[3] + PIECES[4]]
    return [
        Entry(n, "assistant", answers[n // 2 % 3]) if n % 2 else Entry(n, "user", f"Question {n}?")
        for n in range(count)
    ]


class FakeSession:
    """Decodes nothing, at the price of decoding."""

    notices: tuple[str, ...] = ()
    target_name, draft_name, method, draft_length = "fake", None, "plain", 0
    context_size, context_used, why = 8192, 0, None

    def __init__(self, tokens: int, layers: int) -> None:
        import numpy as np  # noqa: PLC0415 - only the inner program works

        chance = np.random.default_rng(1)
        scale = 1 / SIZE**0.5
        self._layers = [
            (chance.standard_normal((SIZE, SIZE)) * scale).astype("float32") for _ in range(LAYERS)
        ]
        self._passes = layers
        self._state = chance.standard_normal((SIZE, 8)).astype("float32")
        self._tokens = answer_tokens(tokens)
        self._stop = threading.Event()

    def token(self) -> None:
        """The work of one token: the interpreter is free for most of it."""
        state = self._state
        for number in range(self._passes):
            state = self._layers[number % LAYERS] @ state
        self._state = state / abs(state).max()

    def reply(self, text: str) -> Iterator[Any]:
        from edgespec.events import FirstToken, Prefilled, Reason, Round  # noqa: PLC0415
        from edgespec.reply import ReplyDone, StatsChanged, TextDelta  # noqa: PLC0415
        from edgespec.stats import Stats  # noqa: PLC0415

        stats = Stats().after(Prefilled(8, 8, 0, 0.1)).after(FirstToken(1, 0.1))
        for token in self._tokens:
            start = time.perf_counter()
            self.token()
            seconds = time.perf_counter() - start
            self.context_used += 1
            stats = stats.after(Round((1,), 0, 0, 0, 0.0, seconds, seconds))
            yield TextDelta(token)
            yield StatsChanged(stats)
            if self._stop.is_set():
                break
        yield ReplyDone("".join(self._tokens), Reason.END, stats)

    regenerate = reply

    def cancel(self) -> None:
        self._stop.set()

    def memory(self) -> Any:
        return None

    def close(self) -> None:
        pass


def calibrated(rate: float) -> int:
    """Passes that take one token's time on this machine, alone."""
    session = FakeSession(1, LAYERS)
    for _ in range(20):
        session.token()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < 1.5:
        session.token()
        count += 1
    return max(round(LAYERS * count / (time.perf_counter() - start) / rate), 1)


def open_session(options: argparse.Namespace) -> Any:
    """The session that the options ask for."""
    if not options.model:
        return FakeSession(options.tokens, options.passes)
    from edgespec.sampling import Sampling  # noqa: PLC0415
    from edgespec.session import Session  # noqa: PLC0415
    from edgespec.settings import Load, Settings  # noqa: PLC0415

    load = Load(model=options.model, draft="none", threads=options.threads, context=8192)
    return Session.open(
        Settings(load=load, sampling=Sampling(temperature=0.0), max_tokens=options.tokens)
    )


QUESTION = "Write a very long tutorial about Python with many code examples in Markdown."


@dataclass
class Watch:
    """Counts the pieces of an answer as they leave the session."""

    first: float = 0.0
    last: float = 0.0
    pieces: int = 0

    def __call__(self, events: Iterator[Any]) -> Iterator[Any]:
        from edgespec.reply import StatsChanged  # noqa: PLC0415

        for event in events:
            if isinstance(event, StatsChanged):
                self.last = time.perf_counter()
                self.first = self.first or self.last
                self.pieces += 1
            yield event

    @property
    def rate(self) -> float:
        """Passes a second, which are tokens where nothing is drafted."""
        return (self.pieces - 1) / (self.last - self.first)


# The inner program


def report(options: argparse.Namespace, **values: Any) -> None:
    """Tell the outer program."""
    os.write(options.reports, (json.dumps(values) + "\n").encode())


def run_alone(options: argparse.Namespace) -> None:
    """Decode without an app, as `edgespec run` does."""
    session, watch = open_session(options), Watch()
    for _ in watch(session.reply(QUESTION)):
        pass
    session.close()
    report(options, event="end", rate=watch.rate, tokens=watch.pieces)


def run_app(options: argparse.Namespace) -> None:
    """Show the conversation, stream the answer, then stay idle."""
    started = time.perf_counter()
    from textual import on  # noqa: PLC0415
    from textual.app import App, ComposeResult  # noqa: PLC0415
    from textual.widgets import Footer, Static  # noqa: PLC0415

    import tui.screens.chat  # noqa: PLC0415
    from edgespec.settings import Settings  # noqa: PLC0415
    from tui.messages import ReplyFinished, SessionReady, StatsArrived, TextArrived  # noqa: PLC0415
    from tui.widgets.answer_turn import AnswerTurn  # noqa: PLC0415
    from tui.widgets.prompt import Prompt  # noqa: PLC0415
    from tui.widgets.status_line import StatusLine  # noqa: PLC0415
    from tui.widgets.transcript import Transcript  # noqa: PLC0415
    from tui.worker import SessionScreen  # noqa: PLC0415

    watch = Watch()

    class BenchScreen(SessionScreen):
        CSS_PATH = Path(tui.screens.chat.__file__).with_name("chat.tcss")

        def compose(self) -> ComposeResult:
            yield Static("EdgeSpec  benchmark", id="headline")
            yield Transcript()
            yield Prompt()
            yield StatusLine()
            yield Footer()

        async def on_mount(self) -> None:
            self.query_one(Prompt).focus()
            self.call_after_refresh(self.fill)

        async def fill(self) -> None:
            begun = time.perf_counter()
            first_frame = begun - started
            await self.query_one(Transcript).show(conversation(options.messages))
            self.call_after_refresh(self.filled, begun, first_frame)

        def filled(self, begun: float, first_frame: float) -> None:
            report(
                options, event="shown", open=time.perf_counter() - begun, first_frame=first_frame
            )
            self.open_session()

        @on(SessionReady)
        def ready(self) -> None:
            report(options, event="ready")
            self.set_timer(options.quiet, self.begin)

        async def begin(self) -> None:
            transcript = self.query_one(Transcript)
            await transcript.add_question(QUESTION)
            await transcript.begin_answer(again=False)
            self.used = time.process_time(), time.thread_time()
            self.start_reply(lambda session: watch(session.reply(QUESTION)))
            report(options, event="begin")

        @on(TextArrived)
        def text(self, event: TextArrived) -> None:
            transcript = self.query_one(Transcript)
            for piece in event.pieces:
                transcript.write(piece.text, piece.drafted)

        @on(StatsArrived)
        def stats(self, event: StatsArrived) -> None:
            line = self.query_one(StatusLine)
            line.status = replace(
                line.status, stats=event.stats, context_used=event.context_used, context_size=8192
            )

        @on(ReplyFinished)
        async def finished(self, event: ReplyFinished) -> None:
            self.cpu = time.thread_time() - self.used[1]
            await self.query_one(Transcript).finish_answer(event.done.text, event.done.reason)

        @on(AnswerTurn.Settled)
        def settled(self) -> None:
            behind = time.perf_counter() - watch.last
            share = self.cpu / (watch.last - watch.first)
            report(
                options,
                event="end",
                rate=watch.rate,
                tokens=watch.pieces,
                behind=behind,
                share=share,
            )
            self.set_timer(2.0, self.rest)

        def rest(self) -> None:
            self.rested = time.process_time(), time.thread_time()
            self.set_timer(IDLE_SECONDS, self.leave)

        def leave(self) -> None:
            whole, own = time.process_time() - self.rested[0], time.thread_time() - self.rested[1]
            report(options, event="idle", share=whole / IDLE_SECONDS, own=own / IDLE_SECONDS)
            self.leave_session()
            self.app.exit()

    class BenchApp(App[None]):
        def on_mount(self) -> None:
            self.push_screen(BenchScreen(Settings(), lambda _: open_session(options)))

    if options.profile:
        import cProfile  # noqa: PLC0415

        profile = cProfile.Profile(time.thread_time)
        profile.enable()
        BenchApp().run()
        profile.disable()
        profile.dump_stats(options.profile)
    else:
        BenchApp().run()


# The outer program


@dataclass
class Typist:
    """Types into the app and measures when each character is painted."""

    terminal: int
    reports: int
    seen: str = ""
    waiting: str = ""
    sent: float = 0.0
    rest: bytes = b""
    told: str = ""
    phase: str = ""
    latencies: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self, between: tuple[float, float]) -> None:
        """Until the app has ended."""
        glyphs = iter(GLYPHS)
        chance = random.Random(1)
        due = time.perf_counter() + 1
        while True:
            now = time.perf_counter()
            if self.waiting and now - self.sent > PATIENCE:
                self._painted(now)
            if not self.waiting and now >= due and self.phase in ("ready", "begin"):
                self.waiting = next(glyphs, "")
                if self.waiting:
                    self.sent = time.perf_counter()
                    os.write(self.terminal, self.waiting.encode())
                due = now + chance.uniform(*between)
            wait = 0.5 if self.waiting else max(min(due - now, 0.5), 0.001)
            readable, _, _ = select.select([self.terminal, self.reports], [], [], wait)
            if self.terminal in readable and not self._read_terminal():
                return
            if self.reports in readable:
                self._read_reports()

    def _read_terminal(self) -> bool:
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            return False
        now = time.perf_counter()
        if self.waiting and self.waiting.encode() in self.rest + data:
            self._painted(now)
        self.rest = data[-8:]
        return bool(data)

    def _painted(self, now: float) -> None:
        self.latencies.setdefault(self.phase, []).append(now - self.sent)
        self.waiting = ""

    def _read_reports(self) -> None:
        self.told += os.read(self.reports, 65536).decode()
        *lines, self.told = self.told.split("\n")
        for line in lines:
            values = json.loads(line)
            self.phase = values["event"]
            self.results[self.phase] = values


def inner(options: argparse.Namespace, kind: str, *, terminal: bool) -> Typist:
    """Run the inner program to its end."""
    read, write = os.pipe()
    arguments = [sys.executable, __file__, *sys.argv[1:]]
    arguments += [f"--inner={kind}", f"--passes={options.passes}", f"--reports={write}"]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", options.height, options.width, 0, 0))
    environment = {
        **os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": str(options.threads),
    }  # fmt: skip

    process = subprocess.Popen(
        arguments, stdin=slave, stdout=slave, stderr=slave if terminal else None,
        env=environment, pass_fds=(write,),
    )  # fmt: skip
    os.close(slave)
    os.close(write)
    typist = Typist(master, read)
    typist.run((options.pause * 0.7, options.pause * 1.3))
    typist._read_reports()
    process.wait()
    os.close(master)
    os.close(read)
    return typist


def percentiles(values: list[float]) -> str:
    """In milliseconds."""
    ordered = sorted(values)
    parts = [
        f"p{p} {ordered[min(len(ordered) * p // 100, len(ordered) - 1)] * 1000:.1f}"
        for p in (50, 95, 99)
    ]
    return f"{'  '.join(parts)}  max {ordered[-1] * 1000:.1f} ms  ({len(ordered)} keys)"


def main() -> None:
    """Alone, in the app, alone again: the machine may have become slower meanwhile."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="decode with this model instead of a made-up one")
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--rate", type=float, default=150.0, help="tokens a second, alone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--width", type=int, default=120)
    parser.add_argument("--height", type=int, default=40)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two keys")
    parser.add_argument(
        "--quiet", type=float, default=3.0, help="seconds of typing before the answer"
    )
    parser.add_argument("--once", action="store_true", help="run alone only once, before the app")
    parser.add_argument("--profile", help="write a profile of the app's thread to this file")
    parser.add_argument("--passes", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--reports", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--inner", choices=["alone", "app"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        {"alone": run_alone, "app": run_app}[options.inner](options)
        return
    os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    options.passes = options.passes or (0 if options.model else calibrated(options.rate))
    before = inner(options, "alone", terminal=False).results["end"]["rate"]
    app = inner(options, "app", terminal=True)
    after = (
        before if options.once else inner(options, "alone", terminal=False).results["end"]["rate"]
    )
    end, alone = app.results["end"], (before + after) / 2
    shown = app.results["shown"]
    print(f"first frame           {shown['first_frame']:.2f} s after the imports began")
    print(f"{options.messages} messages shown    in {shown['open'] * 1000:.0f} ms")
    print(f"keys, nothing streams {percentiles(app.latencies['ready'])}")
    print(f"keys, answer streams  {percentiles(app.latencies['begin'])}")
    print(f"tokens a second       {end['rate']:.1f} in the app, {before:.1f} and {after:.1f} alone")
    print(f"lost to the app       {1 - end['rate'] / alone:.1%} over {end['tokens']} tokens")
    print(
        f"app's own thread      {end['share']:.1%} of a core; behind at the end {end['behind'] * 1000:.0f} ms"
    )
    print(
        f"idle                  {app.results['idle']['share']:.2%} of a core, the app's own thread {app.results['idle']['own']:.2%}"
    )


if __name__ == "__main__":
    main()
