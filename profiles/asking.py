"""Asking the operating system: every question may stay unanswered, none raises and none takes long."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

_PATIENCE = 3.0
"""Seconds; a driver in trouble can keep its tool from ever answering."""


def read(path: Path) -> str | None:
    """The text of a file, stripped; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\n \0")
    except (OSError, ValueError):
        return None


def answer(*command: str, patience: float = _PATIENCE) -> str | None:
    """What a program prints; None if it is missing, fails, or takes more than `patience` seconds."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, ValueError):
        return None
    try:
        text, _ = process.communicate(timeout=patience)
    except (OSError, subprocess.TimeoutExpired):
        # Not waited for to the end: what hangs in a driver cannot even be killed.
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        if process.stdout is not None:
            process.stdout.close()
        return None
    return text.strip() if process.returncode == 0 else None
