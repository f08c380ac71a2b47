"""llama.cpp's quantiser (src/llama-quant.cpp): the same model in other bits, or with fewer layers.

`llama_model_quantize` cannot be interrupted and may take minutes, so it runs in a process of its own,
which can be ended. Nothing of a result is seen before all of it is written.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import llama_cpp

from edgespec.errors import Cancelled, EdgeSpecError
from edgespec.llama.log import native_log
from model_registry.sizes import human_size

# enum llama_ftype (include/llama.h)
# fmt: off
FILE_TYPES = {
    "F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q6_K": 18, "Q5_K_M": 17, "Q5_K_S": 16, "Q5_1": 9,
    "Q5_0": 8, "Q4_K_M": 15, "Q4_K_S": 14, "Q4_1": 3, "Q4_0": 2, "IQ4_NL": 25, "IQ4_XS": 30,
    "Q3_K_L": 13, "Q3_K_M": 12, "Q3_K_S": 11, "IQ3_M": 27, "IQ3_S": 26, "Q2_K": 10,
}
NEED_IMATRIX = frozenset({
    "IQ3_XS", "IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "Q2_K_S",
})
"""What llama.cpp refuses to make without an importance matrix (`tensor_requires_imatrix`)."""
# fmt: on

_MARK = "edgespec-quantise:"
"""Begins the lines of the other process that are meant for this one."""
_PROGRESS = re.compile(r"\[ *(\d+)/ *(\d+)\]")
_SIZE = re.compile(r"quant size += +([\d.]+) MiB")
_HEADER = 16 << 20
"""Bytes of a vocabulary and what else stands before the tensors, at most."""
_SPARE = 64 << 20
"""Bytes of the disk that stay free."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to make of which file."""

    source: Path
    """The only file of a model, or the first of its parts."""
    result: Path
    """What is written; it must not exist."""
    file_type: int | None
    """Of `FILE_TYPES`; None copies the tensors as they are."""
    drop: tuple[int, ...] = ()
    """Layers to leave out, ascending; the others move up."""
    threads: int = 0
    """0 for one a logical core."""


def planned_bytes(job: Job) -> int:
    """Bytes of the tensors that the job would write, told by its headers. Raises EdgeSpecError."""
    log = native_log()
    log.mark()
    status = _quantise(job, dry_run=True)
    found = [float(match[1]) for line in log.recent if (match := _SIZE.search(line))]
    if status != 0 or not found:
        raise _failure(job, log.reason())
    return round(found[-1] * 2**20)


class Quantiser:
    """One job in a process of its own."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._process: subprocess.Popen[str] | None = None
        self._stopped = threading.Event()

    def steps(self) -> Iterator[tuple[int, int]]:
        """Write the file; gives tensors that are done, and how many there are.

        When this ends in any other way than by itself, nothing is left. Raises EdgeSpecError, and
        `Cancelled` after `stop`.
        """
        job = self._job
        header = max(job.source.stat().st_size // 100, _HEADER)
        check_room(job.result.parent, planned_bytes(job) + header)
        partial = job.result.with_name(f".{job.result.name}.part")
        try:
            yield from self._watched(partial)
            os.replace(partial, job.result)
        finally:
            partial.unlink(missing_ok=True)

    def stop(self) -> None:
        """End it, from any thread."""
        self._stopped.set()
        if self._process:
            self._process.kill()

    def _watched(self, partial: Path) -> Iterator[tuple[int, int]]:
        last: deque[str] = deque(maxlen=5)
        with _started(self._job, partial) as process:
            self._process = process
            try:
                if self._stopped.is_set():
                    raise Cancelled
                for line in process.stdout or ():
                    if line.startswith(f"{_MARK}at "):
                        done, total = line.split()[-2:]
                        yield int(done), int(total)
                    else:
                        last.append(line.strip())
            finally:
                process.kill()
        if self._stopped.is_set():
            raise Cancelled
        if f"{_MARK}done" not in last:
            raise _failure(self._job, _reason(process, last))


def _started(job: Job, partial: Path) -> subprocess.Popen[str]:
    order = {
        "source": str(job.source),
        "result": str(partial),
        "file_type": job.file_type,
        "drop": job.drop,
        "threads": job.threads,
    }
    folders = [str(Path(__file__).parents[2]), *(entry for entry in sys.path if entry)]
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "edgespec.llama.quantise", json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONIOENCODING": "utf-8"},
        )
    except OSError as error:
        raise EdgeSpecError(f"Python cannot be started: {error.strerror}.") from error


def check_room(folder: Path, wanted: int) -> None:
    """Raise EdgeSpecError where the disk of a folder has no room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if free < wanted + _SPARE:
        raise EdgeSpecError(
            f"{human_size(wanted)} do not fit the disk of {folder}, which has "
            f"{human_size(free)} free.",
            "Make room there first.",
        )


def _failure(job: Job, reason: str) -> EdgeSpecError:
    reason = reason.strip().rstrip(".")
    return EdgeSpecError(
        f"llama.cpp's quantiser could not use {job.source.name}{': ' + reason if reason else ''}.",
        f"Details are in {native_log().path}.",
    )


def _reason(process: subprocess.Popen[str], last: deque[str]) -> str:
    told = [line.removeprefix(f"{_MARK}failed ") for line in last if line.startswith(_MARK)]
    if told:
        return told[-1]
    if process.returncode < 0:
        return f"it crashed with signal {-process.returncode}"
    return last[-1] if last else f"exit code {process.returncode}"


def _quantise(job: Job, *, dry_run: bool = False) -> int:
    params = llama_cpp.llama_model_quantize_default_params()
    params.nthread = job.threads
    # What is small already may be made smaller: how much that costs is measured, not assumed.
    params.allow_requantize = True
    params.dry_run = dry_run
    params.only_copy = job.file_type is None
    if job.file_type is not None:
        params.ftype = job.file_type
    listed = (ctypes.c_int32 * (len(job.drop) + 1))(*job.drop, -1)
    if job.drop:
        params.prune_layers = ctypes.cast(listed, ctypes.POINTER(ctypes.c_int32))
    return int(
        llama_cpp.llama_model_quantize(
            str(job.source).encode(), str(job.result).encode(), ctypes.byref(params)
        )
    )


def _main() -> None:
    """The other process: one job, its progress on stdout, and no longer than somebody waits for it."""
    order = json.loads(sys.argv[1])
    job = Job(
        Path(order["source"]),
        Path(order["result"]),
        order["file_type"],
        tuple(order["drop"]),
        order["threads"],
    )
    threading.Thread(target=_end_with_parent, daemon=True).start()
    log = native_log()
    log.mark()
    threading.Thread(target=_tell, daemon=True).start()
    failed = _quantise(job)
    print(f"{_MARK}failed {log.reason()}" if failed else f"{_MARK}done", flush=True)
    os._exit(1 if failed else 0)


def _end_with_parent() -> None:
    # Its end of the pipe is closed when it ends, however it does.
    with suppress(OSError, KeyboardInterrupt):
        sys.stdin.buffer.read()
    os._exit(1)


def _tell() -> None:
    recent, shown = native_log().recent, ""
    while True:
        time.sleep(0.2)
        lines = list(recent)[-3:]
        found = [match for line in lines if (match := _PROGRESS.search(line))]
        if found and found[-1][0] != shown:
            shown = found[-1][0]
            print(f"{_MARK}at {found[-1][1]} {found[-1][2]}", flush=True)


if __name__ == "__main__":
    _main()
