"""Asking llama.cpp about devices and build in a process of its own.

A GPU driver in trouble may crash, hang or write to the screen, and CUDA keeps memory on the GPU for as
long as the process lives. Light: only the other process loads llama.cpp.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from edgespec.errors import EdgeSpecError
from edgespec.llama.backends import Build
from edgespec.memory import Device

_MARK = "edgespec-probe:"
"""Begins the line of the answer: libraries may print others."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What `edgespec.llama.devices` said there."""

    build: Build
    devices: tuple[Device, ...]


class RuntimeUnusableError(EdgeSpecError):
    """llama.cpp cannot even be asked."""


def look(limit: float = 60.0) -> Probe:
    """Build and devices; waits `limit` seconds at most. Raises RuntimeUnusableError."""
    folders = [str(Path(__file__).parents[2]), *(entry for entry in sys.path if entry)]
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "edgespec.llama.probe"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=limit,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONIOENCODING": "utf-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeUnusableError(
            f"llama.cpp did not list its devices within {limit:.0f} seconds.",
            "A GPU driver may hang: restart it, or the machine.",
        ) from error
    except OSError as error:
        raise RuntimeUnusableError(f"Python cannot be started: {error.strerror}.") from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode != 0 or not lines:
        raise RuntimeUnusableError(f"llama.cpp cannot be used: {_reason(done)}.")
    return _parsed(lines[-1].removeprefix(_MARK))


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"it crashed with signal {-done.returncode} while it listed its devices"
    lines = done.stderr.strip().splitlines()
    return lines[-1].strip().rstrip(".") if lines else f"exit code {done.returncode}"


def _parsed(text: str) -> Probe:
    data = json.loads(text)
    build = Build(**{**data["build"], "backends": tuple(data["build"]["backends"])})
    return Probe(build, tuple(Device(**one) for one in data["devices"]))


def _main() -> None:
    from edgespec.llama.devices import build, devices  # noqa: PLC0415 - in the other process only

    print(_MARK + json.dumps(asdict(Probe(build(), devices()))), flush=True)


if __name__ == "__main__":
    _main()
