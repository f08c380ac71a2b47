"""The running conversation is written behind its caller's back, whatever happens to the file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest

from edgespec.history import recorder as module
from edgespec.history.problem import HistoryProblem
from edgespec.history.recorder import Recorder
from edgespec.history.records import Role
from edgespec.history.store import History
from tests.history.talking import ids, talk, texts

PATIENCE = 60.0
"""Seconds; for a test that fails."""


class Rig:
    """A recorder, what it told, and the history as others see it."""

    def __init__(self, place: Path, open_history: Callable[[], History] | None = None) -> None:
        self.place = place
        self.problems: list[str] = []
        self.notices: list[str] = []
        self.opened: list[History] = []
        self._open = open_history or (lambda: History.open(place))
        self.recorder = Recorder(self.open, self.problems.append, self.notices.append)

    def open(self) -> History:
        self.opened.append(self._open())
        return self.opened[-1]

    def write(self) -> None:
        assert self.recorder.flush(PATIENCE)

    def look(self, number: int | None = None) -> list[str]:
        """What is shown of a conversation, or of the newest one."""
        with closing(History.open(self.place)) as history:
            if number is None:
                number = history.list()[0].id
            return texts(history, number)

    def count(self) -> int:
        with closing(History.open(self.place)) as history:
            return len(history.list())

    def ask(self, question: str, answer: str) -> None:
        self.recorder.begin(question, model="m")
        self.recorder.grow(answer[:1])
        self.recorder.finish(answer, True, {"tokens": 1.0})


@pytest.fixture
def rig(place: Path) -> Iterator[Rig]:
    made = Rig(place)
    yield made
    made.recorder.close(PATIENCE)


def test_a_conversation(rig: Rig) -> None:
    recorder = rig.recorder
    recorder.new(model="m", persona="pirate", folder="f", system="be nice")
    assert recorder.conversation is None
    recorder.begin("q1", model="m1")
    recorder.grow("a")
    recorder.grow("nsw")
    rig.write()
    number = recorder.conversation
    assert number is not None
    with closing(History.open(rig.place)) as history:
        assert [entry.complete for entry in history.path(number)] == [True, True, False]
        assert texts(history, number) == ["be nice", "q1", "answ"]
        recorder.finish("answer", True, {"tokens": 7.0})
        rig.write()
        system, question, answer = history.path(number)
        assert (system.role, question.role, answer.role) == ("system", "user", "assistant")
        assert (answer.content, answer.complete) == ("answer", True)
        assert (answer.model, answer.stats) == ("m1", {"tokens": 7.0})
        rig.ask("q2", "a2")
        rig.write()
        assert texts(history, number) == ["be nice", "q1", "answer", "q2", "a2"]
        summary = history.summary(number)
        assert (summary.title, summary.persona, summary.folder) == ("q1", "pirate", "f")
        assert recorder.shown == tuple(ids(history, number))
        recorder.new()
        assert recorder.conversation is None
        rig.ask("other", "one")
        rig.write()
        assert recorder.conversation not in {None, number}
        assert len(history.list()) == 2
    assert rig.problems == []
    assert len(rig.opened) == 1


def test_nothing_is_written_of_nothing(rig: Rig) -> None:
    rig.recorder.new(system="be nice", title="t")
    rig.recorder.rename("x")
    rig.recorder.move("y")
    rig.write()
    rig.recorder.new()
    rig.write()
    assert rig.count() == 0


def test_names_before_and_after_the_first_message(rig: Rig) -> None:
    recorder = rig.recorder
    recorder.rename("mine")
    rig.ask("q", "a")
    recorder.move("f")
    rig.write()
    with closing(History.open(rig.place)) as history:
        (one,) = history.list()
        assert (one.title, one.folder) == ("mine", "f")
        recorder.rename("yours")
        recorder.move("")
        rig.write()
        assert (history.list()[0].title, history.list()[0].folder) == ("yours", "")


def test_another_answer_an_edit_and_more(rig: Rig) -> None:
    recorder = rig.recorder
    recorder.new(system="s")
    rig.ask("q1", "a1")
    rig.ask("q2", "a2")
    recorder.begin(None)
    recorder.finish("a2 again", True)
    rig.write()
    assert rig.look() == ["s", "q1", "a1", "q2", "a2 again"]
    recorder.begin("q2 edited", keep=2)
    recorder.finish("a3 c", False)
    rig.write()
    assert rig.look() == ["s", "q1", "a1", "q2 edited", "a3 c"]
    recorder.begin(None, more=True)
    rig.write()
    assert rig.look()[-1] == "a3 c", "what there is stays until it comes again"
    recorder.grow("a3 c")
    recorder.grow("ut no more")
    rig.write()
    assert rig.look()[-1] == "a3 cut no more"
    recorder.finish("a3 cut no more", True)
    rig.write()
    with closing(History.open(rig.place)) as history:
        (one,) = history.list()
        whole = history.whole(one.id)
        assert [entry.content for entry in whole.entries] == [
            "s",
            "q1",
            "a1",
            "q2",
            "a2",
            "a2 again",
            "q2 edited",
            "a3 cut no more",
        ]
        assert all(entry.complete for entry in whole.entries)
        places = {entry.id: entry.content for entry in whole.entries}
        parents = [entry.parent and places[entry.parent] for entry in whole.entries]
        assert parents == [None, "s", "q1", "a1", "q2", "q2", "a1", "q2 edited"]


def test_when_nothing_came(rig: Rig) -> None:
    """As the session has it: a question stays, what was to be replaced comes back."""
    recorder = rig.recorder
    rig.ask("q1", "a1")
    recorder.begin(None)
    recorder.finish("", False)
    rig.write()
    assert rig.look() == ["q1", "a1"]
    recorder.begin("q1 edited", keep=0)
    recorder.finish("", False)
    rig.write()
    assert rig.look() == ["q1", "a1"], "the answer is shown, the other question is a branch"
    recorder.begin("q2")
    recorder.finish("", False)
    rig.write()
    assert rig.look() == ["q1", "a1", "q2"]


def test_an_error_keeps_what_came_as_a_branch(rig: Rig) -> None:
    recorder = rig.recorder
    recorder.new(system="s")
    recorder.begin("q0")
    recorder.fail()
    rig.write()
    assert rig.look() == ["s", "q0"]
    rig.ask("q1", "a1")
    recorder.begin("q2")
    recorder.grow("half")
    recorder.fail()
    rig.write()
    assert rig.look() == ["s", "q1", "a1"]
    rig.ask("q2", "a2")
    rig.write()
    assert rig.look() == ["s", "q1", "a1", "q2", "a2"]
    assert rig.count() == 1
    with closing(History.open(rig.place)) as history:
        kept = {entry.content: entry.complete for entry in history.whole(1).entries}
        assert kept["half"] is False
        assert "q0" in kept


def test_going_on_with_a_stored_conversation(rig: Rig) -> None:
    with closing(History.open(rig.place)) as history:
        number = talk(history, "q1", "a1", "q2", "cut")
        q1, a1, _, cut = ids(history, number)
        history.update(cut, "cut", complete=False)
        other = history.add(number, q1, "assistant", "other")
        summary = history.summary(number)
        recorder = rig.recorder
        recorder.resume(summary, history.path(number, cut))
        rig.write()
        assert texts(history, number) == ["q1", "a1", "q2", "cut"], "that branch is shown now"
        assert history.summary(number) == summary, "nothing was said"
        recorder.begin(None, more=True, model="m9")
        recorder.finish("cut no more", True)
        rig.write()
        assert texts(history, number) == ["q1", "a1", "q2", "cut no more"]
        assert texts(history, number, cut)[-1] == "cut", "it may still grow in another program"
        recorder.resume(summary, history.path(number, other))
        rig.ask("q3", "a3")
        rig.write()
        assert texts(history, number) == ["q1", "other", "q3", "a3"]
        assert recorder.conversation == number
        assert recorder.shown == tuple(ids(history, number))
        assert a1 in history.siblings(other)


def test_its_caller_never_waits(place: Path) -> None:
    """The disk may be as slow as it likes."""
    gate = threading.Event()

    def slow() -> History:
        gate.wait(PATIENCE)
        return History.open(place)

    rig = Rig(place, slow)
    rig.recorder.begin("q")
    for _ in range(1000):
        rig.recorder.grow("x")
    assert not rig.recorder.flush(0.0)
    assert rig.opened == []
    gate.set()
    rig.write()
    assert rig.look() == ["q", "x" * 1000]
    assert rig.recorder.close(PATIENCE)


def test_what_comes_while_it_is_written_is_written_next(place: Path) -> None:
    def opened() -> History:
        history = History.open(place)
        add = history.add

        def slow(
            conversation: int,
            parent: int | None,
            role: Role,
            content: str,
            *,
            complete: bool,
            model: str,
            stats: Mapping[str, float] | None,
        ) -> int:
            if role == "assistant":
                rig.recorder.grow(" and more")
            return add(
                conversation, parent, role, content, complete=complete, model=model, stats=stats
            )

        monkeypatch.setattr(history, "add", slow)
        return history

    with pytest.MonkeyPatch.context() as monkeypatch:
        rig = Rig(place, opened)
        rig.recorder.begin("q")
        rig.recorder.grow("some")
        rig.write()
        rig.write()
        assert rig.look() == ["q", "some and more"]
        rig.recorder.close(PATIENCE)


def test_it_waits_between_writes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []
    wait_for = rig.recorder._wake.wait_for

    def noted(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        waited.append(timeout)
        return wait_for(predicate, timeout)

    rig.write()
    monkeypatch.setattr(rig.recorder._wake, "wait_for", noted)
    rig.recorder.grow("x")
    rig.write()
    assert module.SAVE_SECONDS in waited
    assert module.SAVE_SECONDS <= 0.5


def test_writes_are_few(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 3600.0)
    statements: list[str] = []

    def traced() -> History:
        history = History.open(place)
        history._db._sql.set_trace_callback(statements.append)
        return history

    rig = Rig(place, traced)
    rig.recorder.begin("q")
    rig.write()
    for _ in range(1000):
        rig.recorder.grow("x")
    rig.recorder.finish("x" * 1000, True)
    rig.write()
    assert statements.count("BEGIN IMMEDIATE") == 3, "the conversation, the question, the answer"
    assert rig.look() == ["q", "x" * 1000]
    rig.recorder.close(PATIENCE)


class Full:
    """A history whose disk is full while `full`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.full = True
        self.history: History | None = None

    def open(self) -> History:
        self.history = History.open(self.place)
        self.limit()
        return self.history

    def limit(self) -> None:
        assert self.history is not None
        (pages,) = self.history._db._sql.execute("PRAGMA page_count").fetchone()
        most = pages if self.full else 1_000_000
        self.history._db._sql.execute(f"PRAGMA max_page_count = {most}")


def test_a_full_disk_loses_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    disk = Full(place)
    rig = Rig(place, disk.open)
    big = "long " * 20_000
    rig.ask("first", big)
    assert not rig.recorder.flush(PATIENCE)
    rig.ask("second", big)
    assert not rig.recorder.flush(PATIENCE)
    assert not rig.recorder.flush(PATIENCE)
    rig.recorder.new()
    rig.ask("another conversation", big)
    assert not rig.recorder.flush(PATIENCE)
    (told,) = rig.problems
    assert "is full" in told
    assert "kept in memory" in told
    disk.full = False
    disk.limit()
    with suppress(AssertionError):  # a try that began before may still fail
        rig.write()
    rig.write()
    assert rig.problems == [told, ""]
    assert rig.look() == ["another conversation", big]
    with closing(History.open(place)) as history:
        _, first = history.list()
        assert texts(history, first.id) == ["first", big, "second", big]
    assert rig.count() == 2
    assert rig.recorder.close(PATIENCE)


def test_a_disk_that_stays_full_is_told_at_the_end(place: Path) -> None:
    disk = Full(place)
    rig = Rig(place, disk.open)
    rig.ask("q", "long " * 20_000)
    assert not rig.recorder.close(PATIENCE)
    assert len(rig.problems) == 1
    assert not rig.recorder._thread.is_alive()


def test_a_place_that_cannot_be_used_at_first(place: Path) -> None:
    place.parent.write_text("in the way")
    rig = Rig(place)
    rig.ask("q", "a")
    assert not rig.recorder.flush(PATIENCE)
    assert len(rig.problems) == 1
    place.parent.unlink()
    with suppress(AssertionError):
        rig.write()
    rig.write()
    assert rig.problems[1:] == [""]
    assert rig.look() == ["q", "a"]
    rig.recorder.close(PATIENCE)


def test_a_damaged_file_is_told(place: Path) -> None:
    place.parent.mkdir()
    place.write_bytes(b"damaged")
    rig = Rig(place)
    rig.ask("q", "a")
    rig.write()
    (notice,) = rig.notices
    assert "set aside" in notice
    assert rig.problems == []
    assert rig.look() == ["q", "a"]
    rig.recorder.close(PATIENCE)


def test_damage_in_the_midst_of_a_conversation(rig: Rig) -> None:
    """All of it goes into the new file."""
    with closing(History.open(rig.place)) as history:
        number = talk(history, "old question", "old answer", folder="f")
        history.rename(number, "mine")
        entries, summary = history.path(number), history.summary(number)
    rig.recorder.resume(summary, entries)
    rig.ask("q", "a")
    rig.write()
    history = rig.opened[0]
    history._db._sql.execute("PRAGMA shrink_memory")  # or else it would not look at the file
    for path in (rig.place, rig.place.with_name("history.db-wal")):
        with path.open("r+b") as file:  # in place: the log is in use
            file.write(b"\xa5" * path.stat().st_size)
    rig.ask("q2", "a2")
    rig.write()
    assert rig.look() == ["old question", "old answer", "q", "a", "q2", "a2"]
    (notice,) = rig.notices
    assert "set aside" in notice
    with closing(History.open(rig.place)) as history:
        (one,) = history.list()
        assert (one.title, one.folder) == ("mine", "f")


def test_a_file_that_was_removed(rig: Rig) -> None:
    rig.ask("q", "a")
    rig.write()
    for path in rig.place.parent.glob("history.db*"):
        path.unlink()
    rig.recorder.begin("q2")
    rig.recorder.grow("a")
    rig.write()
    rig.recorder.grow("2")
    rig.write()
    assert rig.look() == ["q", "a", "q2", "a2"]
    assert rig.problems == []


def test_a_new_file_may_hold_another_conversation_with_the_same_id(rig: Rig) -> None:
    rig.ask("q", "a")
    rig.write()
    for path in rig.place.parent.glob("history.db*"):
        path.unlink()
    with closing(History.open(rig.place)) as history:
        stranger = talk(history, "of somebody else", "theirs")
        assert stranger == rig.recorder.conversation
        rig.ask("q2", "a2")
        rig.write()
        assert texts(history, stranger) == ["of somebody else", "theirs"]
        assert rig.look() == ["q", "a", "q2", "a2"]


def test_a_conversation_that_was_removed_for_good(rig: Rig) -> None:
    rig.ask("q", "a")
    rig.write()
    number = rig.recorder.conversation
    assert number is not None
    with closing(History.open(rig.place)) as history:
        history.remove(number)
    rig.ask("q2", "a2")
    rig.write()
    assert rig.look() == ["q", "a", "q2", "a2"]
    assert rig.recorder.conversation != number


def test_two_recorders_in_one_conversation_make_branches(rig: Rig) -> None:
    rig.ask("q", "a")
    rig.write()
    number = rig.recorder.conversation
    assert number is not None
    with closing(History.open(rig.place)) as history:
        entries, summary = history.path(number), history.summary(number)
        other = Rig(rig.place)
        other.recorder.resume(summary, entries)
        rig.recorder.begin("from here")
        other.recorder.begin("from there")
        rig.recorder.grow("1")
        other.recorder.grow("2")
        rig.write()
        other.write()
        rig.recorder.finish("11", True)
        other.recorder.finish("22", True)
        rig.write()
        other.write()
        kept = [entry.content for entry in history.whole(number).entries]
        assert sorted(kept) == ["11", "22", "a", "from here", "from there", "q"]
        shown = {leaf.content for leaf in history.path(number)}
        assert shown in ({"q", "a", "from here", "11"}, {"q", "a", "from there", "22"})
        assert len(history.siblings(rig.recorder.shown[2] or 0)) == 2
    other.recorder.close(PATIENCE)


def test_the_end_writes_the_rest(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 3600.0)
    rig = Rig(place)
    rig.recorder.begin("q")
    rig.write()
    rig.recorder.grow("half an answer")
    assert rig.recorder.close(PATIENCE)
    assert rig.look() == ["q", "half an answer"]
    with pytest.raises(HistoryProblem):
        rig.opened[0].list()
    assert rig.recorder.close(PATIENCE), "closed already"


def test_a_mistake_of_ours_is_told(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> History:
        raise ZeroDivisionError("oops")

    rig = Rig(place, broken)
    rig.ask("q", "a")
    assert not rig.recorder.flush(PATIENCE)
    assert not rig.recorder.close(PATIENCE)
    (told,) = rig.problems
    assert "Unexpected error" in told
    assert "oops" in told
    assert "oops" in caplog.text
