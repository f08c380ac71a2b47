"""Downloads that go well, and what they take up: parts, caches, files in place."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from model_registry.hub import HubProblem, RemoteFile
from model_registry.problem import ModelFileProblem
from model_registry.transfer import Progress
from tests.registry.fake_hub import Fault
from tests.registry.transfer_bench import CONTENT, NAME, Bench


def test_a_file_comes(bench: Bench) -> None:
    bench.check(bench.fetch(bench.put()), {NAME: CONTENT})
    assert bench.ranges() == [None]
    assert not bench.delays
    first, last = bench.said[0], bench.said[-1]
    assert (first.name, first.done, first.total, first.state) == (NAME, 0, 600_000, "waiting")
    assert (last.done, last.total, last.state) == (600_000, 600_000, "done")


def test_several_files_come_at_once(bench: Bench) -> None:
    contents = {f"f{n}/part-{n}.gguf": CONTENT[n:] for n in range(6)} | {"empty.gguf": b""}
    bench.fake.always = Fault(rate=2e6)
    callers = set()

    def note(progress: Progress) -> None:
        bench.said.append(progress)
        callers.add(threading.current_thread())

    bench.check(bench.fetch(bench.put(contents), note), contents)
    assert callers == {threading.current_thread()}
    names = [said.name for said in bench.said if said.state == "downloading"]
    assert names != sorted(names), "one after the other"


def test_the_same_content_under_two_names(bench: Bench) -> None:
    contents = {"a.gguf": CONTENT, "b.gguf": CONTENT}
    bench.fake.always = Fault(rate=4e6)
    bench.queue(Fault(cut_after=300_000), Fault(cut_after=400_000))
    bench.check(bench.fetch(bench.put(contents)), contents)


def test_nothing_to_do(bench: Bench) -> None:
    assert bench.fetch([]) == {}


def test_a_part_is_gone_on_with(bench: Bench) -> None:
    (file,) = bench.put()
    bench.part(file).write_bytes(CONTENT[:123_456])
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert bench.ranges() == ["bytes=123456-"]
    assert "hashing" in {said.state for said in bench.said}
    assert all(said.done >= 123_456 for said in bench.said if said.state == "downloading")


def test_a_whole_part_needs_no_network(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = bench.put()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    bench.part(file).write_bytes(CONTENT)
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert not bench.ranges()


@pytest.mark.parametrize(
    "old",
    [b"x" * 300_000, b"x" * 600_000, CONTENT + b"x", CONTENT[1:], b"x" + CONTENT[1:5], b""],
)
def test_a_part_of_something_else_does_no_harm(bench: Bench, old: bytes) -> None:
    (file,) = bench.put()
    bench.part(file).write_bytes(old)
    bench.check(bench.fetch([file]), {NAME: CONTENT})


def test_a_file_that_is_there_is_left_alone(bench: Bench) -> None:
    (file,) = bench.put()
    bench.dest.mkdir()
    (bench.dest / NAME).write_bytes(CONTENT)
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert not bench.ranges()


@pytest.mark.parametrize("old", [CONTENT[:-1], b"x" * len(CONTENT)])
def test_a_wrong_file_in_its_place_is_replaced(bench: Bench, old: bytes) -> None:
    (file,) = bench.put()
    bench.dest.mkdir()
    (bench.dest / NAME).write_bytes(old)
    bench.check(bench.fetch([file]), {NAME: CONTENT})


@pytest.mark.parametrize("size", [1000, len(CONTENT)])
def test_a_file_without_a_known_digest(bench: Bench, size: int) -> None:
    (file,) = bench.put(plain=[NAME])
    assert file.sha256 is None
    bench.part(file).write_bytes(b"x" * size)
    bench.queue(Fault(cut_after=360_000))
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert bench.ranges() == [None, None]


def cache(bench: Bench, folder: Path, content: bytes) -> tuple[RemoteFile, Path]:
    (file,) = bench.put()
    blob = folder / "models--Owner--Model-GGUF/blobs" / str(file.sha256)
    link = folder / "models--Owner--Model-GGUF/snapshots" / file.commit / NAME
    for path in (blob, link):
        path.parent.mkdir(parents=True)
    blob.write_bytes(content)
    link.symlink_to(blob)
    return file, blob


def test_a_cached_file_is_shared(
    bench: Bench, hub_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, blob = cache(bench, hub_settings, CONTENT)
    bench.part(file).write_bytes(CONTENT[:5])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    bench.free = lambda folder: 0
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert not bench.ranges()
    assert (bench.dest / NAME).samefile(blob)
    assert not (bench.dest / NAME).is_symlink()


def test_a_cached_file_on_another_disk_is_copied(
    bench: Bench, hub_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuse)
    file, blob = cache(bench, hub_settings, CONTENT)
    bench.part(file).write_bytes(b"x" * 700_000)
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert not bench.ranges()
    assert not (bench.dest / NAME).samefile(blob)


@pytest.mark.parametrize("wrong", [CONTENT[:-1], b"x" * len(CONTENT)])
def test_a_damaged_file_in_a_cache_is_not_taken(
    bench: Bench, hub_settings: Path, wrong: bytes
) -> None:
    file, blob = cache(bench, hub_settings, wrong)
    bench.check(bench.fetch([file]), {NAME: CONTENT})
    assert bench.ranges() == [None]
    assert blob.read_bytes() == wrong


def test_offline_is_said_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    files = bench.put()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    problem = bench.fails(files)
    assert isinstance(problem, HubProblem)
    assert problem.kind == "offline"
    assert not bench.delays


@pytest.mark.parametrize("path", ["..", "a/..", ".hidden", "a\\b.gguf", "c:x.gguf", "a\n.gguf", ""])
def test_a_name_that_would_leave_the_folder(bench: Bench, path: str) -> None:
    (file,) = bench.put()
    bad = RemoteFile(file.repo, file.commit, path, file.size, file.sha256)
    with pytest.raises(ModelFileProblem, match="no good one"):
        bench.fetch([bad])
    assert not bench.ranges()


def test_two_files_of_one_name(bench: Bench) -> None:
    files = bench.put({"q8/model.gguf": b"1", "q4/Model.gguf": b"2"})
    with pytest.raises(ModelFileProblem, match="the same name"):
        bench.fetch(files)
    assert not bench.ranges()
