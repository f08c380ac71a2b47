"""A real terminal: a tmux server of the test's own, driven by keys, read as cells and as bytes.

A pane of tmux answers to a program as a terminal of people does: it has a line discipline, job control,
an alternate screen, bracketed paste and a size that changes. A shell runs in it, so that a test sees
what a person sees before, after and beneath the program.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

GENEROUS_SECONDS = 60.0
"""How long a test that is going to fail waits; a busy machine is slow."""
POLL_SECONDS = 0.05
SHELL = ["/bin/sh", "-i"]

_CONFIGURATION = """\
set -g status off
set -g history-limit 20000
set -g default-terminal screen
"""


class Terminal:
    """One pane. Text is found however it is broken into lines."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *, width: int = 80, height: int = 24
    ) -> None:
        """Open it with a shell that waits for a line. `folder` takes what the pane prints."""
        self.output = folder / f"output-{len(list(folder.glob('output-*')))}"
        self.output.touch()
        self._environment = {**environment, "PS1": "$ ", "ENV": ""}
        # The path of a socket is short by law, a test's folder is not.
        self._sockets = Path(tempfile.mkdtemp(prefix="tmux-"))
        self._environment["TMUX_TMPDIR"] = str(self._sockets)
        configuration = self._sockets / "configuration"
        configuration.write_text(_CONFIGURATION)
        self._command = ["tmux", "-u", "-L", "test", "-f", str(configuration)]
        self._tmux("new-session", "-d", "-s", "t", "-x", str(width), "-y", str(height), *SHELL)
        self._tmux("pipe-pane", "-t", "t", f"exec cat >> '{self.output}'")
        self.shell = psutil.Process(
            int(self._tmux("display-message", "-p", "-t", "t", "#{pane_pid}"))
        )
        """What runs first in the pane."""
        self.wait("$")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all that runs in it."""
        inside = []
        if self.shell.is_running():
            inside = [self.shell, *self.shell.children(recursive=True)]
        subprocess.run(
            [*self._command, "kill-server"], env=self._environment, check=False, capture_output=True
        )
        for process in inside:
            # One that is stopped never gets to see that its terminal has gone.
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(inside, timeout=GENEROUS_SECONDS)
        shutil.rmtree(self._sockets, ignore_errors=True)

    # What a person does

    def type(self, text: str) -> None:
        """Type characters."""
        self._tmux("send-keys", "-t", "t", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: `Enter`, `Escape`, `C-q`, `M-Enter`, `PPage`."""
        self._tmux("send-keys", "-t", "t", *keys)

    def line(self, text: str) -> None:
        """Type a line."""
        self.type(text)
        self.press("Enter")

    def paste(self, text: str) -> None:
        """Paste as terminals do: between brackets where the program wants them, a CR for each LF."""
        given = subprocess.run(
            [*self._command, "load-buffer", "-"],
            env=self._environment,
            input=text.encode(),
            check=True,
            capture_output=True,
        )
        assert not given.stderr
        self._tmux("paste-buffer", "-p", "-d", "-t", "t")

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self._tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    # What a person sees

    def screen(self) -> str:
        """The cells, a line for each row, without the blanks at their ends."""
        return self._tmux("capture-pane", "-p", "-t", "t")

    def rows(self) -> list[str]:
        """The same as a list."""
        return self.screen().split("\n")[:-1]

    def all_rows(self) -> str:
        """The screen and what has scrolled out of it."""
        return self._tmux("capture-pane", "-p", "-S", "-", "-t", "t")

    def printed(self) -> str:
        """All bytes that programs have sent here, escape sequences too."""
        return self.output.read_bytes().decode("utf-8", "replace")

    def flag(self, name: str) -> bool:
        """A state of the pane by tmux's name, as `alternate_on`, `cursor_flag`, `mouse_any_flag`."""
        return self._tmux("display-message", "-p", "-t", "t", f"#{{{name}}}").strip() == "1"

    def wait(self, *texts: str, gone: tuple[str, ...] = ()) -> str:
        """The screen, once all `texts` are on it and none of `gone` is."""

        def there() -> bool:
            joined = flat(self.screen())
            return all(flat(text) in joined for text in texts) and not any(
                flat(text) in joined for text in gone
            )

        self.until(there, f"{texts} without {gone}" if gone else f"{texts}")
        return self.screen()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition` holds; fail with a picture of the screen."""
        end = time.monotonic() + GENEROUS_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"never came: {what}. The screen:\n{self.screen()}")
            time.sleep(POLL_SECONDS)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            env=self._environment,
            capture_output=True,
            check=False,
            encoding="utf-8",
        )
        assert done.returncode == 0, f"tmux {arguments}: {done.stderr}"
        return done.stdout


def flat(text: str) -> str:
    """`text` on one line, without what draws boxes and bars, so that wrapping does not matter."""
    return " ".join(re.sub(r"[\u2500-\u259f▌]", " ", text).split())


def without_sequences(printed: str) -> str:
    """What was printed, without escape sequences."""
    return re.sub(
        r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78])",
        "",
        printed,
    )
