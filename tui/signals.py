"""Ctrl+Z, `fg`, `kill`: what a shell asks of a program that has taken the terminal.

Textual answers to these too, but stops only its own process, so that `make chat` would wait for it and
the shell for `make`; stops where no shell could ever continue it; paints nothing when it is continued;
and starts to read the keyboard a second time when it is continued without having been asked to stop.
It does all that inside of a signal handler, which may interrupt the writing of the screen.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver

NO_SHELL = "There is no shell here that could bring the app back, so it stays."


class SignalAwareApp(App[None]):
    """An app that can be put aside and comes back as it was; `kill` lets it leave in order."""

    BINDINGS: ClassVar[list[BindingType]] = (
        # Where there is no job control, the key stays what it is in a text: undo.
        []
        if sys.platform == "win32"
        else [Binding("ctrl+z", "suspend_process", "Put aside", show=False, priority=True)]
    )

    def on_mount(self) -> None:
        """Take the signals over from the driver."""
        if sys.platform == "win32" or self.is_headless:
            return
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._leave)
        self._attend()

    def action_suspend_process(self) -> None:
        """Put the app aside as the terminal's own Ctrl+Z would, and with it what has started it."""
        if not _under_a_shell():
            self.notify(NO_SHELL, markup=False)
        else:
            self._put_aside()

    def _put_aside(self) -> None:
        """Give the terminal back and stop; returns when continued."""
        driver = self._driver
        if sys.platform == "win32" or driver is None or not driver.can_suspend:
            return
        if not _under_a_shell():
            return
        loop = asyncio.get_running_loop()
        self.app_suspend_signal.publish(self)
        # First: once its child has stopped, the shell takes the terminal, and it is no longer ours.
        driver.suspend_application_mode()
        for number in (signal.SIGTSTP, signal.SIGCONT):
            loop.remove_signal_handler(number)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        self._take_up(driver)
        self._attend()

    def _continued(self) -> None:
        """After a stop that did not ask: the terminal may be in any state, so begin anew."""
        if self._driver is not None:
            self._driver.suspend_application_mode()
            self._take_up(self._driver)

    def _attend(self) -> None:
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTSTP, self._put_aside)
            loop.add_signal_handler(signal.SIGCONT, self._continued)

    def _take_up(self, driver: Driver) -> None:
        for _ in range(100):
            driver.resume_application_mode()
            # After `bg` the terminal is the shell's, and the driver stops once more until `fg`.
            if _listens(driver):
                break
        self.app_resume_signal.publish(self)
        self.refresh(layout=True)

    def _leave(self) -> None:
        self.call_later(self.action_quit)


def _under_a_shell() -> bool:
    """Whether a shell with job control has started this: its jobs are groups of their own."""
    return sys.platform != "win32" and os.getpgrp() != os.getsid(0)


def _listens(driver: Driver) -> bool:
    """Whether the driver reads the keyboard."""
    thread = getattr(driver, "_key_thread", None)
    return thread is None or thread.is_alive()
