"""Downloads that are stopped, by a person or by the disk, leave what is needed to go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from model_registry import body, download
from model_registry.files import StoreProblem
from model_registry.hub import Hub, HubProblem
from model_registry.sink import Sink
from model_registry.transfer import Progress, TransferStopped, fetch
from tests.registry.fake_hub import Fault
from tests.registry.transfer_bench import CONTENT, NAME, REPO, Bench


def test_one_failure_stops_all(bench: Bench) -> None:
    contents = {"a.gguf": CONTENT, "b.gguf": CONTENT[1:]}
    files = bench.put(contents)
    (bench.fake.root / REPO / "a.gguf").unlink()
    bench.fake.always = Fault(rate=100_000)
    problem = bench.fails(files)
    assert isinstance(problem, HubProblem)
    assert (problem.kind, "a.gguf" in problem.message) == ("missing", True)
    assert bench.part(files[1]).stat().st_size < 599_999


def test_a_full_disk_is_seen_before_the_first_byte(bench: Bench) -> None:
    files = bench.put({"a.gguf": CONTENT, "b.gguf": CONTENT[1:]})
    bench.part(files[0]).write_bytes(CONTENT[:100_000])
    need = 600_000 + 599_999 - 100_000 + download.MARGIN
    bench.free = lambda folder: need - 1
    problem = bench.fails(files)
    assert isinstance(problem, StoreProblem)
    assert problem.message.startswith("1.1 MB are to come")
    assert not bench.ranges()
    bench.free = lambda folder: need
    bench.check(bench.fetch(files), {"a.gguf": CONTENT, "b.gguf": CONTENT[1:]})


def test_a_disk_that_fills_up_on_the_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_CHECK_EVERY", 100_000)
    monkeypatch.setattr(body, "BLOCK", 50_000)
    (file,) = bench.put()
    free = iter([10**12, 10**12, 10**6])
    bench.free = lambda folder: next(free)
    problem = bench.fails([file])
    assert isinstance(problem, StoreProblem)
    assert "full but for 1.0 MB" in problem.message
    kept = bench.part(file).read_bytes()
    assert len(kept) >= 200_000
    assert CONTENT.startswith(kept)
    bench.free = lambda folder: 10**12
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert bench.ranges()[-1] == f"bytes={len(kept)}-"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
def test_a_write_that_fails() -> None:
    sink = Sink(Path("/dev/full"))
    with sink, pytest.raises(StoreProblem, match="is full"):  # noqa: PT012 - either may raise
        for _ in range(20):
            sink.put(memoryview(b"x"))
        sink.sync()


def test_a_folder_that_may_not_be_written(bench: Bench) -> None:
    files = bench.put()
    bench.parts.write_bytes(b"a file")
    with pytest.raises(StoreProblem):
        bench.fetch(files)


def until(bench: Bench, count: int, act: Callable[[], None]) -> Callable[[Progress], None]:
    """Act once so many bytes are there."""

    def on_progress(progress: Progress) -> None:
        bench.said.append(progress)
        if progress.state == "downloading" and progress.done >= count:
            act()

    return on_progress


@pytest.mark.parametrize("fault", [Fault(rate=500_000), Fault(stall_after=200_000)])
def test_cancelling_leaves_a_part_to_go_on_with(bench: Bench, fault: Fault) -> None:
    (file,) = bench.put()
    bench.queue(fault)
    bench.hub = Hub(bench.fake.url, timeout=60)
    with pytest.raises(TransferStopped):
        bench.fetch([file], until(bench, 100_000, bench.cancelled.set))
    kept = bench.part(file).read_bytes()
    assert 100_000 <= len(kept) < 600_000
    assert CONTENT.startswith(kept)
    assert not list(bench.dest.iterdir())
    bench.cancelled.clear()
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert bench.ranges() == [None, f"bytes={len(kept)}-"]


def test_an_interrupt_passes_through(bench: Bench) -> None:
    (file,) = bench.put()
    bench.queue(Fault(rate=500_000))

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.fetch([file], until(bench, 100_000, interrupt))
    kept = bench.part(file).read_bytes()
    assert len(kept) >= 100_000
    assert CONTENT.startswith(kept)
    bench.check(bench.fetch([file]), {NAME: CONTENT})


def test_a_pause_can_be_cancelled(bench: Bench) -> None:
    (file,) = bench.put()
    bench.queue(Fault(status=429, headers={"Retry-After": "500"}))

    def on_progress(progress: Progress) -> None:
        if progress.state == "retrying":
            bench.cancelled.set()

    with pytest.raises(TransferStopped):
        fetch(
            bench.hub,
            [file],
            bench.parts,
            bench.dest,
            on_progress=on_progress,
            cancelled=bench.cancelled,
        )
