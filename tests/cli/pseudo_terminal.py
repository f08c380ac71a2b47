"""A command on a terminal of its own, for what is written in lines: its bytes are all that there is."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import LIMIT, ROOT

# The terminal must be the process's own, so that Ctrl-C on it becomes a signal.
_OWN = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, '-m', 'edgespec', *sys.argv[1:]])"
)


class PseudoTerminal:
    """What a person would see and type."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self._bytes = b""
        self._read = 0
        self.shown = ""
        """All that was written so far, lines ended by a newline."""

    def until(self, text: str) -> str:
        """What comes, up to `text` and with it; fails when it does not come."""
        begun = self._read
        while (place := self.shown.find(text, begun)) < 0:
            assert self._more(), f"{text!r} never came after {self.shown[begun:]!r}"
        self._read = place + len(text)
        return self.shown[begun : self._read]

    def end(self) -> int:
        """The exit code, once everything is read."""
        while self._more():
            pass
        return self._process.wait(LIMIT)

    def type(self, text: str) -> None:
        """As if written on the keyboard."""
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C by a person who has read what stands there: the process already waits.

        Between a prompt and the wait for a key, CPython's readline takes a signal and sleeps all the same.
        """
        state = Path(f"/proc/{self._process.pid}/stat")
        deadline = time.monotonic() + LIMIT
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < deadline, "the process never waits for a key"
            time.sleep(0.01)
        self.type("\x03")

    def _more(self) -> bool:
        """Wait for more; False at the end."""
        ready, _, _ = select.select([self._master], [], [], LIMIT)
        assert ready, f"nothing more came after {self.shown!r}"
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that nobody holds the other side
            return False
        self._bytes += data
        self.shown = self._bytes.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def terminal(*arguments: str, **environment: str) -> Iterator[PseudoTerminal]:
    """A running command; it does not outlive the block."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _OWN, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "INPUTRC": os.devnull, **environment},
        )
        os.close(slave)
        with process:
            try:
                yield PseudoTerminal(process, master)
            finally:
                process.kill()
    finally:
        os.close(master)
