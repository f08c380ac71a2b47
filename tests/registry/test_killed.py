"""Downloads in a process of their own: ended by force, and measured."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model_registry.hub import Hub, RemoteFile
from model_registry.transfer import part_name
from tests.registry.fake_hub import FakeHub, Fault

CONTENT = random.Random(1).randbytes(8_000_000)

SCRIPT = """
import sys, threading
from pathlib import Path
from model_registry.hub import Hub
from model_registry.transfer import fetch

def show(progress):
    print(progress.state, progress.done, flush=True)

hub, home = Hub(), Path(sys.argv[1])
files = hub.listing("o/m").files
got = fetch(
    hub, files, home / "partial", home / "files", on_progress=show, cancelled=threading.Event()
)
print("digest", got[files[0]].sha256)
if sys.platform == "linux":
    print(Path("/proc/self/status").read_text())
"""


def start(fake: FakeHub, tmp_path: Path) -> subprocess.Popen[str]:
    environment = {
        "HF_ENDPOINT": fake.url,
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": "hf_a_secret",
        "NO_PROXY": "127.0.0.1",
        "PATH": os.environ["PATH"],
    }
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env=environment,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def the_file(fake: FakeHub) -> RemoteFile:
    fake.add("o/m", {"m.gguf": CONTENT})
    return Hub(fake.url).listing("o/m").files[0]


@pytest.mark.parametrize(
    ("how", "ends"), [(signal.SIGKILL, 3), (signal.SIGTERM, 1), (signal.SIGINT, 1)]
)
def test_it_goes_on_after_any_end(
    delivered: FakeHub, tmp_path: Path, how: signal.Signals, ends: int
) -> None:
    file = the_file(delivered)
    part = tmp_path / "partial" / part_name(file)
    kept = [0]
    for _ in range(ends):
        delivered.on_file.append(Fault(rate=2_000_000))
        process = start(delivered, tmp_path)
        deadline = time.monotonic() + 60
        while not part.exists() or part.stat().st_size < kept[-1] + 300_000:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(how)
        text, _ = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "hf_a_secret" not in text
        kept.append(part.stat().st_size)
        assert kept[-1] < len(CONTENT)
        assert CONTENT.startswith(part.read_bytes())
        assert not list((tmp_path / "files").iterdir())
    process = start(delivered, tmp_path)
    text, _ = process.communicate(timeout=60)
    assert f"digest {file.sha256}" in text
    assert (tmp_path / "files/m.gguf").read_bytes() == CONTENT
    assert not list((tmp_path / "partial").iterdir())
    ranges = [call.headers.get("range") for call in delivered.deliveries()]
    assert ranges == [None, *(f"bytes={size}-" for size in kept[1:])]
    assert all("authorization" not in call.headers for call in delivered.deliveries())


@pytest.mark.skipif(sys.platform != "linux", reason="a process can be asked for its peak there")
def test_four_files_at_once_need_little_memory(delivered: FakeHub, tmp_path: Path) -> None:
    block = random.Random(2).randbytes(1_000_000)
    delivered.add("o/m", {f"{n}.gguf": bytes([n]) + block * 40 for n in range(4)})
    text, _ = start(delivered, tmp_path).communicate(timeout=100)
    peak = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert peak
    assert int(peak[1]) < 150 * 1024
