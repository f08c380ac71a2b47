"""`edgespec chat` in a terminal; what a test reads on its screen is named here and nowhere else."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.terminal.terminal import Terminal, without_sequences

ROOT = Path(__file__).parents[2]

TITLE = "EdgeSpec"
READY = "is ready"
EMPTY_PROMPT = "Write a message"
ANSWERING = "esc Stop"
"""In the footer, while there is something to stop."""
STOPPED = "stopped"
ESC_AGAIN = "Esc once more"
CUT = "cut: token budget"
AT_REST = "Again"
"""In the footer, once there is an answer and the next message can be sent."""
SPEED = re.compile(r"\d (?:tok|t)/s")
NOT_SAVED = "kept in memory meanwhile"
SAVED_AGAIN = "The history is written again"

NATIVE_LINES = (
    "llama_model_loader",
    "llama_context",
    "print_info",
    "load_tensors",
    "llama_kv_cache",
    "ggml_",
    "sched_reserve",
)
"""Names that lines of llama.cpp's log begin with."""


class App:
    """One run of the app."""

    def __init__(
        self,
        terminal: Terminal,
        *options: str,
        environment: Mapping[str, str] | None = None,
        by: str = "sh {}",
    ) -> None:
        """Start it from the shell by this command; returns at once."""
        self.terminal = terminal
        settings = "".join(
            f"{name}={shlex.quote(value)} " for name, value in (environment or {}).items()
        )
        starter = terminal.output.with_suffix(".sh")
        starter.write_text(
            f"cd {shlex.quote(str(ROOT))} || exit 1\n"
            f"exec env {settings}{shlex.quote(sys.executable)} -m edgespec chat"
            f" {shlex.join(options)}\n"
        )
        terminal.line("clear; " + by.format(shlex.quote(str(starter))))

    @property
    def process(self) -> psutil.Process:
        """The app itself."""
        return next(
            child
            for child in [self.terminal.shell, *self.terminal.shell.children(recursive=True)]
            if "edgespec" in child.cmdline()
        )

    def ready(self) -> str:
        """Wait until the model can be asked."""
        return self.terminal.wait(READY, EMPTY_PROMPT)

    def ask(self, text: str) -> None:
        """Send a message; it is sent when this returns."""
        self.terminal.type(text)
        self.terminal.wait(text[-20:], gone=(EMPTY_PROMPT,))
        self.terminal.press("Enter")
        self.terminal.wait(EMPTY_PROMPT)

    def answering(self) -> None:
        """Wait until an answer runs and some of it is there."""
        self.terminal.until(
            lambda: self._speed() and ANSWERING in self.terminal.screen(), "some of the answer"
        )

    def at_rest(self) -> str:
        """Wait until an answer has come to its end."""
        return self.terminal.wait(AT_REST, EMPTY_PROMPT, gone=(ANSWERING,))

    def _speed(self) -> bool:
        return SPEED.search(self.terminal.screen()) is not None

    def stop(self) -> None:
        """Stop the answer; a long one asks for a second press."""
        self.terminal.press("Escape")
        self.terminal.until(
            lambda: STOPPED in self.terminal.screen() or ESC_AGAIN in self.terminal.screen(),
            "the stop of the answer",
        )
        if ESC_AGAIN in self.terminal.screen():
            self.terminal.press("Escape")
        self.terminal.wait(STOPPED, gone=(ANSWERING,))

    def command(self, text: str, *, expect: str) -> str:
        """Give a `/command`, and wait until the screen has `expect`."""
        self.terminal.type(text)
        self.terminal.wait(text.split(maxsplit=1)[0])
        self.terminal.press("Enter")
        return self.terminal.wait(expect)

    def quit(self) -> int:
        """Leave by the key; the exit code."""
        self.terminal.press("C-q")
        return self.left()

    def left(self) -> int:
        """Wait until the app has gone and the shell is back; the exit code."""
        self.terminal.until(lambda: not self.terminal.shell.children(), "the end of the app")
        self.terminal.line('echo "left with $?."')
        said = re.compile(r"^left with (\d+)\.$", re.MULTILINE)
        self.terminal.until(lambda: bool(said.search(self.terminal.screen())), "the exit code")
        return int(said.findall(self.terminal.screen())[-1])


def assert_clean(terminal: Terminal) -> None:
    """Nothing that is not the app's has been printed, and the terminal is as it was found."""
    printed = without_sequences(terminal.printed())
    assert "Traceback" not in printed, terminal.all_rows()
    assert "Exception ignored" not in printed
    for line in NATIVE_LINES:
        assert line not in printed
    assert not terminal.flag("alternate_on")
    assert not terminal.flag("mouse_any_flag")
    assert terminal.flag("cursor_flag")
