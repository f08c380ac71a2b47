"""What the app costs: keystrokes while an answer streams, and what drawing takes from the model.

The app runs in a terminal of its own (a pty). This program types into it and waits for each
character to come back painted, while a thread of the app decodes: 4,000 tokens of Markdown with code
into a conversation of 200 messages. The thread works as llama.cpp does, on two cores and without the
interpreter; alone it delivers the given number of tokens a second. With --model it is a real session.
Numbers are printed, nothing is judged. Linux and macOS, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import random
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

INSIDE = Path(__file__).with_name("bench_app_inside.py")
GLYPHS = [chr(code) for code in range(0x2801, 0x2900)]
"""Characters to type: braille, which no answer holds, each one once."""
ENOUGH = 1200
"""Tokens that tell how fast it decodes alone."""
PATIENCE = 5.0
"""Seconds after which a character counts as painted."""


@dataclass
class Typist:
    """Types into the app and measures when each character is painted."""

    terminal: int
    reports: int
    pause: float
    waiting: str = ""
    sent: float = 0.0
    rest: bytes = b""
    told: str = ""
    phase: str = ""
    latencies: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, dict[str, float]] = field(default_factory=dict)

    def run(self) -> None:
        """Until the app has ended."""
        glyphs, chance = iter(GLYPHS), random.Random(1)
        due = time.perf_counter()
        while True:
            now = time.perf_counter()
            if self.waiting and now - self.sent > PATIENCE:
                self._painted(now)
            if not self.waiting and now >= due and self.phase in ("ready", "begin"):
                self._type(next(glyphs, ""))
                due = now + self.pause * chance.uniform(0.5, 1.5)
            wait = 0.1 if self.waiting else min(max(due - now, 0.001), 0.1)
            readable, _, _ = select.select([self.terminal, self.reports], [], [], wait)
            if self.reports in readable:
                self._read_reports()
            if self.terminal in readable and not self._read_terminal():
                self._read_reports()
                return

    def _type(self, glyph: str) -> None:
        if glyph:
            self.waiting, self.sent = glyph, time.perf_counter()
            os.write(self.terminal, glyph.encode())

    def _read_terminal(self) -> bool:
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # so Linux tells the end
            return False
        now = time.perf_counter()
        if self.waiting and self.waiting.encode() in self.rest + data:
            self._painted(now)
        self.rest = data[-3:]
        return bool(data)

    def _painted(self, now: float) -> None:
        self.latencies.setdefault(self.phase, []).append(now - self.sent)
        self.waiting = ""

    def _read_reports(self) -> None:
        self.told += os.read(self.reports, 65536).decode()
        *lines, self.told = self.told.split("\n")
        for line in lines:
            values = json.loads(line)
            self.phase = values.pop("event")
            self.results[self.phase] = values


def inside(options: argparse.Namespace, kind: str) -> Typist:
    """Run the inner program to its end."""
    read, write = os.pipe()
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", options.height, options.width, 0, 0))
    asked = json.dumps({**vars(options), "kind": kind, "reports": write})
    process = subprocess.Popen(
        [sys.executable, str(INSIDE), asked], stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}, pass_fds=(write,),
    )  # fmt: skip
    os.close(slave)
    os.close(write)
    typist = Typist(master, read, options.pause)
    typist.run()
    if process.wait() or not typist.results:
        raise SystemExit(f"The inner program ({kind}) failed; its last words: {typist.rest!r}")
    os.close(master)
    os.close(read)
    return typist


def milliseconds(values: list[float]) -> str:
    """What most keys take, and the worst of them."""
    ordered = sorted(values)
    found = [
        ordered[min(len(ordered) * part // 100, len(ordered) - 1)] * 1000 for part in (50, 95, 99)
    ]
    return "p50 {:.1f}  p95 {:.1f}  p99 {:.1f}  ".format(*found) + (
        f"worst {ordered[-1] * 1000:.1f} ms  ({len(ordered)} keys)"
    )


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", help="decode with this model instead of a made-up one")
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--rate", type=float, default=150.0, help="tokens a second, alone")
    parser.add_argument("--size", type=int, default=0, help="work of a token, instead of the rate")
    parser.add_argument("--threads", type=int, default=2, help="of the model")
    parser.add_argument("--width", type=int, default=120)
    parser.add_argument("--height", type=int, default=40)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two keys")
    parser.add_argument("--quiet", type=float, default=3.0, help="seconds before the answer")
    parser.add_argument("--once", action="store_true", help="decode alone only before the app")
    return parser.parse_args()


def main() -> None:
    """Alone, in the app, alone again: the machine may have become slower meanwhile."""
    options = arguments()
    if not options.model and not options.size:
        options.size = round(inside(options, "calibrate").results["end"]["size"])
    short = argparse.Namespace(**{**vars(options), "tokens": min(options.tokens, ENOUGH)})
    before = inside(short, "alone").results["end"]["rate"]
    app = inside(options, "app")
    after = before if options.once else inside(short, "alone").results["end"]["rate"]
    shown, end, idle = (app.results[event] for event in ("shown", "end", "idle"))
    print(f"first picture         {shown['first_frame']:.2f} s after the imports")
    print(f"restored messages     {options.messages} shown in {shown['open'] * 1000:.0f} ms")
    print(f"keys, nothing streams {milliseconds(app.latencies['ready'])}")
    print(f"keys, answer streams  {milliseconds(app.latencies['begin'])}")
    print(f"tokens a second       {end['rate']:.1f} in the app, {before:.1f} and {after:.1f} alone")
    lost = 1 - 2 * end["rate"] / (before + after)
    print(
        f"lost to the app       {lost:.1%} over {end['tokens']:.0f} tokens (--size {options.size})"
    )
    print(f"the app's own thread  {end['share']:.1%} of a core")
    print(f"behind at the end     {end['behind'] * 1000:.0f} ms")
    print(f"doing nothing         {idle['share']:.2%} of a core")


if __name__ == "__main__":
    main()
