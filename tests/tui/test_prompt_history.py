from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from tests.tui.driving import eventually
from tests.tui.prompt_host import Host, paste, send, threads_done
from tui.folding import Folds, Written
from tui.prompt_history import MOST_BYTES, MOST_ENTRIES, PromptHistory, default_path

LONG = "\n".join(f"line {number}" for number in range(20))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "prompts.jsonl"


def texts(path: Path) -> list[str]:
    return [written.text for written in PromptHistory(path).read()]


async def test_what_was_sent_is_known_in_the_next_session(path: Path) -> None:
    host = Host(history=PromptHistory(path))
    async with host.run_test() as pilot:
        await send(pilot, host, "first")
        await pilot.press(*"see ")
        await paste(pilot, LONG)
        await pilot.press("enter")
        await eventually(lambda: len(host.sent) == 2)
        await pilot.press(*"/help", "enter")
        await threads_done(pilot)
    assert host.commands == [("help", "")]
    assert texts(path) == ["first", f"see {LONG}"]
    host = Host(history=PromptHistory(path))
    async with host.run_test() as pilot:
        await threads_done(pilot)
        await pilot.press("up")
        assert host.prompt.shown == "see [pasted 20 lines #1]"
        assert host.prompt.text == f"see {LONG}"
        await pilot.press("up")
        assert host.prompt.text == "first"
        await pilot.press("enter")
        await eventually(lambda: len(host.sent) == 1)
        await pilot.press("up", "up", "up")
        assert host.prompt.text == "first"
        await pilot.press("down", "down", "down")
        assert host.prompt.text == ""
        await threads_done(pilot)
    assert texts(path) == ["first", f"see {LONG}", "first"]


async def test_what_is_sent_before_the_file_is_read_comes_after_it(path: Path) -> None:
    PromptHistory(path).append(Written("old"))
    opened = threading.Event()

    class Slow(PromptHistory):
        def read(self) -> list[Written]:
            opened.wait(30)
            return super().read()

    host = Host(history=Slow(path))
    async with host.run_test() as pilot:
        await send(pilot, host, "new")
        await pilot.press("up")
        assert host.prompt.text == "new"
        opened.set()
        await threads_done(pilot)
        await pilot.press("up")
        assert host.prompt.text == "old"
        await pilot.press("down", "down")
        assert host.prompt.text == ""


@pytest.mark.parametrize("damage", ["a folder", "no right to read", "a file in the way"])
async def test_a_file_that_cannot_be_used_leaves_the_history_of_the_session(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    if damage == "a folder":
        path.mkdir()
    elif damage == "a file in the way":
        path.parent.rmdir()
        path.parent.write_text("")
    else:
        path.write_text('{"text": "old", "folds": []}\n')
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("rights do not bind this user")
    host = Host(history=PromptHistory(path))
    async with host.run_test() as pilot:
        await threads_done(pilot)
        await send(pilot, host, "new")
        await threads_done(pilot)
        await pilot.press("up")
        assert host.prompt.text == "new"
        await pilot.press("up")
        assert host.prompt.text == "new"
    assert "history of prompts" in caplog.text


def test_damaged_lines_are_left_out_and_a_half_line_does_not_spoil_the_next(path: Path) -> None:
    history = PromptHistory(path)
    history.append(Written("good"))
    good = path.read_bytes()
    forged = Folds().fold("x")
    lines = [
        b"not json", b"[]", b"{}", b'"text"', b"\xff\xfe", b"[" * 100_000,
        *(
            json.dumps({"text": text, "folds": folds}).encode()
            for text, folds in (
                (1, []), ("", []), ("abc", 1), ("abc", [[0]]), ("abc", [["a", "b"]]),
                ("abc", [[0, 4]]), ("abc", [[2, 1]]), ("abc", [[-1, 1]]), ("abc", [[0, 2], [1, 3]]),
                ("abc", [[0, float("inf")]]), ("a\x1b[0m", []), (forged, []),
            )
        ),
    ]  # fmt: skip
    path.write_bytes(good + b"\n".join(lines) + b'\n{"text": "half')
    history.append(Written("next", ((1, 3),)))
    assert history.read() == [Written("good"), Written("next", ((1, 3),))]


def test_the_file_keeps_the_newest_and_nothing_twice_in_a_row(path: Path) -> None:
    history = PromptHistory(path)
    history.append(Written("first"))
    for number in range(MOST_ENTRIES + 150):
        with path.open("a") as file:
            file.write(json.dumps({"text": str(number // 2 * 2), "folds": []}) + "\n")
    assert len(history.read()) == (MOST_ENTRIES + 150) // 2 + 1
    with path.open("a") as file:
        for number in range(1000):
            file.write(json.dumps({"text": f"n{number}", "folds": []}) + "\n")
    assert texts(path) == [f"n{number}" for number in range(500, 1000)]
    assert len(path.read_bytes().splitlines()) == MOST_ENTRIES
    assert sorted(p.name for p in path.parent.iterdir()) in (
        ["prompts.jsonl"],
        ["prompts.jsonl", "prompts.lock"],
    )


def test_a_very_long_message_is_kept_in_this_session_only(path: Path) -> None:
    history = PromptHistory(path)
    history.append(Written("a" * MOST_BYTES))
    history.append(Written("b" * (MOST_BYTES + 1)))
    history.append(Written("ä" * (MOST_BYTES // 2 + 1)))
    assert texts(path) == ["a" * MOST_BYTES]


def test_a_full_disk_while_the_file_is_shortened_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    lines = [json.dumps({"text": f"n{number}", "folds": []}) for number in range(900)]
    path.write_text("\n".join(lines) + "\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert texts(path) == [f"n{number}" for number in range(400, 900)]
    assert len(path.read_bytes().splitlines()) == 900
    assert "No space left" in caplog.text


def test_several_instances_write_without_losing_a_line(path: Path) -> None:
    def use(name: str) -> None:
        history = PromptHistory(path)
        for number in range(40):
            history.append(Written(f"{name} {number}\n" * 50))
            if number % 10 == 0:
                history.read()

    threads = [threading.Thread(target=use, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts(path)) == sorted(
        f"{name} {number}\n" * 50 for name in "abc" for number in range(40)
    )


def test_nothing_is_read_or_written_while_another_instance_does(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = PromptHistory(path)
    history.append(Written("first"))
    monkeypatch.setattr("tui.prompt_history.LOCK_SECONDS", 0.0)
    with FileLock(path.with_suffix(".lock")):
        history.append(Written("lost"))
        assert history.read() == []
    assert len(caplog.records) == 2
    assert texts(path) == ["first"]


@pytest.mark.skipif(os.name == "nt", reason="rights are another matter there")
def test_nobody_else_can_read_it(path: Path) -> None:
    history = PromptHistory(path)
    for number in range(MOST_ENTRIES + 150):
        history.append(Written(str(number)))
    assert path.stat().st_mode & 0o077 == 0
    history.read()
    assert len(path.read_bytes().splitlines()) == MOST_ENTRIES
    assert path.stat().st_mode & 0o077 == 0


def test_the_file_is_where_the_platform_keeps_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path))
    assert default_path() == tmp_path / "prompts.jsonl"
    monkeypatch.setenv("EDGESPEC_HOME", " ")
    assert default_path().name == "prompts.jsonl"
    assert "edgespec" in default_path().parts
