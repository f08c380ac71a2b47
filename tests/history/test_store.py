"""Conversations are trees; nothing of them is ever replaced."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edgespec.history import database
from edgespec.history.problem import HistoryGone, HistoryProblem
from edgespec.history.records import title_of
from edgespec.history.store import KEPT, History
from tests.history.talking import ids, run_sql, talk, texts


def test_it_is_there_again(place: Path) -> None:
    before = datetime.now(UTC)
    with closing(History.open(place)) as history:
        number = history.create(title=" A\ntitle ", model="m", persona="pirate", folder="work")
        question = history.add(number, None, "user", "why?")
        answer = history.add(
            number, question, "assistant", "so", complete=False, model="m2", stats={"tokens": 3.0}
        )
        assert history.notices == ()
    with closing(History.open(place)) as history:
        (found,) = history.list()
        assert found == history.summary(number)
        assert (found.title, found.folder, found.model, found.persona, found.messages) == (
            "A title",
            "work",
            "m2",
            "pirate",
            2,
        )
        assert before <= found.created_at <= found.updated_at <= datetime.now(UTC)
        first, second = history.path(number)
        assert (first.id, first.parent, first.role, first.content, first.complete) == (
            question,
            None,
            "user",
            "why?",
            True,
        )
        assert (second.id, second.parent, second.role, second.content, second.complete) == (
            answer,
            question,
            "assistant",
            "so",
            False,
        )
        assert (second.model, second.stats, first.stats) == ("m2", {"tokens": 3.0}, {})
        assert before <= first.created_at <= second.created_at


def test_the_folder_is_the_stores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "mine"))
    with closing(History.open()) as history:
        assert history.location == tmp_path / "mine" / "history.db"
    monkeypatch.setenv("EDGESPEC_HOME", "~/there")
    assert database.default_path() == Path.home() / "there" / "history.db"
    monkeypatch.setenv("EDGESPEC_HOME", " ")
    assert database.default_path().is_relative_to(os.environ["XDG_DATA_HOME"])


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_nobody_else_may_read_it(place: Path) -> None:
    with closing(History.open(place)) as history:
        talk(history, "secret")
        for path in (place, place.with_name("history.db-wal")):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_is_stored_of_an_empty_conversation(history: History, place: Path) -> None:
    number = history.create(title="later", folder="f")
    history.rename(number, "renamed")
    history.move(number, "g")
    assert (history.summary(number).title, history.summary(number).folder) == ("renamed", "g")
    assert history.path(number) == []
    assert history.list() == []
    assert history.folders() == []
    other = history.create()
    assert other != number
    assert run_sql(place, "SELECT count(*) FROM conversations") == [(0,)]
    history.add(number, None, "user", "now")
    (found,) = history.list()
    assert (found.id, found.title, found.folder, found.messages) == (number, "renamed", "g", 1)


def test_a_title_is_the_first_line_of_the_first_question(history: History) -> None:
    number = history.create()
    system = history.add(number, None, "system", "You are nice.")
    assert history.summary(number).title == ""
    question = history.add(number, system, "user", "\n  What   is it?\nmore")
    assert history.summary(number).title == "What is it?"
    assert history.summary(number).messages == 1, "a system text is none of the user's"
    history.add(number, question, "assistant", "it")
    history.add(number, system, "user", "edited")
    assert history.summary(number).title == "What is it?"
    history.rename(number, " Mine\n")
    assert history.summary(number).title == "Mine"
    history.add(number, system, "user", "third")
    assert history.summary(number).title == "Mine"
    history.rename(number, "  ")
    assert history.summary(number).title == "What is it?"


def test_how_a_title_is_made() -> None:
    assert title_of("x" * 60) == "x" * 60
    assert title_of("x" * 61) == "x" * 59 + "…"
    assert title_of("```python\nprint(1)\n```") == "print(1)"
    assert title_of("---\n\n???") == "---"
    assert title_of(" \n\t") == ""
    assert title_of("长" * 100) == "长" * 59 + "…"


def test_branches(history: History) -> None:
    number = talk(history, "q1", "a1", "q2", "a2")
    q1, a1, q2, a2 = ids(history, number)
    again = history.add(number, q1, "assistant", "a1 again")
    assert texts(history, number) == ["q1", "a1 again"], "the newest is shown"
    assert history.siblings(a1) == history.siblings(again) == [a1, again]
    assert history.siblings(q1) == [q1]
    edited = history.add(number, None, "user", "q1 edited")
    assert history.siblings(q1) == [q1, edited]
    assert history.leaf_below(q1) == again
    assert history.leaf_below(a1) == a2
    assert history.leaf_below(edited) == edited
    history.set_head(number, history.leaf_below(a1))
    assert texts(history, number) == ["q1", "a1", "q2", "a2"]
    assert texts(history, number, again) == ["q1", "a1 again"]
    assert texts(history, number, q2) == ["q1", "a1", "q2"]
    whole = history.whole(number)
    assert [entry.id for entry in whole.entries] == [q1, a1, q2, a2, again, edited]
    assert whole.head == a2
    assert whole.summary.messages == 6


def test_siblings_are_of_one_conversation(history: History) -> None:
    first, second = talk(history, "q"), talk(history, "q")
    assert history.siblings(ids(history, first)[0]) == ids(history, first)
    assert history.siblings(ids(history, second)[0]) == ids(history, second)


def test_a_growing_message(history: History) -> None:
    number = talk(history, "q", "a")
    answer = ids(history, number)[1]
    history.update(answer, "a b", complete=False)
    before = history.summary(number).updated_at
    history.update(answer, "a b c", complete=True, stats={"tokens": 3, "speed": float("inf")})
    entry = history.path(number)[1]
    assert (entry.content, entry.complete, entry.stats) == ("a b c", True, {"tokens": 3})
    history.update(answer, "a b c d", complete=True)
    assert history.path(number)[1].stats == {"tokens": 3}
    assert history.summary(number).updated_at > before


def test_newest_first_and_folders(history: History) -> None:
    first = talk(history, "one", folder="b")
    second = talk(history, "two", folder="A")
    third = talk(history, "three")
    assert [one.id for one in history.list()] == [third, second, first]
    history.add(first, None, "user", "again")
    assert [one.id for one in history.list()] == [first, third, second]
    assert [one.id for one in history.list(limit=2)] == [first, third]
    assert [one.id for one in history.list(folder="A")] == [second]
    assert [one.id for one in history.list(folder="")] == [third]
    assert history.folders() == ["A", "b"]
    history.move(first, " A ")
    assert history.folders() == ["A"]
    history.move(first, "")
    history.delete(second)
    assert history.folders() == []


def test_delete_and_restore(history: History) -> None:
    first, second = talk(history, "one", "1"), talk(history, "two", "2")
    history.delete(first)
    assert [one.id for one in history.list()] == [second]
    assert [one.id for one in history.list(deleted=True)] == [first]
    assert history.search("one") == []
    assert texts(history, first) == ["one", "1"]
    history.restore(first)
    assert {one.id for one in history.list()} == {first, second}
    assert [hit.summary.id for hit in history.search("one")] == [first]


def test_who_goes_on_talking_has_not_deleted_it(history: History) -> None:
    number = talk(history, "one", "1")
    history.delete(number)
    history.update(ids(history, number)[1], "2", complete=True)
    assert history.list() == [], "an answer that still grows brings nothing back"
    history.add(number, ids(history, number)[1], "user", "and?")
    assert [one.id for one in history.list()] == [number]


def test_deleted_long_ago(place: Path) -> None:
    with closing(History.open(place)) as history:
        old, recent, kept = (talk(history, word, "answer") for word in ("old", "recent", "kept"))
        history.delete(old)
        history.delete(recent)
    limit = (datetime.now(UTC) - KEPT).timestamp()
    for number, moment in ((old, limit - 60), (recent, limit + 3600)):
        run_sql(place, f"UPDATE conversations SET deleted_at = {moment} WHERE id = {number}")
    with closing(History.open(place)) as history:
        assert [one.id for one in history.list()] == [kept]
        assert [one.id for one in history.list(deleted=True)] == [recent]
        with pytest.raises(HistoryGone):
            history.path(old)
        fresh = talk(history, "fresh")
        assert fresh > kept
    assert run_sql(place, "SELECT count(*) FROM messages WHERE content = 'old'") == [(0,)]
    assert timedelta(days=30) == KEPT


def test_removed_for_good_with_a_thousand_messages(history: History, place: Path) -> None:
    number = talk(history, *map(str, range(1200)))
    assert texts(history, number) == list(map(str, range(1200)))
    assert history.leaf_below(ids(history, number)[0]) == ids(history, number)[-1]
    history.remove(number)
    assert run_sql(place, "SELECT count(*) FROM messages") == [(0,)]
    assert history.search("119") == []
    with pytest.raises(HistoryGone):
        history.remove(number)


def test_an_id_is_not_given_twice(history: History) -> None:
    number = talk(history, "q")
    message = ids(history, number)[0]
    history.remove(number)
    again = talk(history, "q")
    assert again != number
    assert ids(history, again) != [message]


def test_what_is_not_there(history: History) -> None:
    first, second = talk(history, "q", "a"), talk(history, "q", "a")
    message, foreign = ids(history, first)[0], ids(history, second)[0]
    refused: list[Callable[[], object]] = [
        lambda: history.summary(99),
        lambda: history.path(99),
        lambda: history.path(first, 99),
        lambda: history.path(first, foreign),
        lambda: history.whole(99),
        lambda: history.siblings(99),
        lambda: history.leaf_below(99),
        lambda: history.set_head(first, foreign),
        lambda: history.set_head(99, message),
        lambda: history.rename(99, "x"),
        lambda: history.move(99, "x"),
        lambda: history.delete(99),
        lambda: history.restore(99),
        lambda: history.remove(99),
        lambda: history.update(99, "x", complete=True),
        lambda: history.add(99, None, "user", "x"),
        lambda: history.add(first, foreign, "user", "x"),
    ]
    for attempt in refused:
        with pytest.raises(HistoryGone, match="There is no"):
            attempt()
    assert texts(history, first) == texts(history, second) == ["q", "a"]
    assert len(history.list()) == 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b\x1b[31m\r\n\u2028", "a\0b\x1b[31m\r\n\u2028"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("", ""),
        ("x" * 300_000, "x" * 300_000),
    ],
)
def test_any_text_is_kept(history: History, text: str, kept: str) -> None:
    number = talk(history, text, text)
    assert texts(history, number) == [kept, kept]
    history.rename(number, text[:10])
    history.update(ids(history, number)[1], text, complete=True)
    assert texts(history, number)[1] == kept


def test_several_threads(history: History) -> None:
    number = talk(history, "q")
    (question,) = ids(history, number)

    def answer(name: int) -> None:
        for turn in range(20):
            history.add(number, question, "assistant", f"{name}.{turn}")
            history.search("q")
            history.path(number)

    threads = [threading.Thread(target=answer, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {entry.content for entry in history.whole(number).entries[1:]}
    assert found == {f"{name}.{turn}" for name in range(4) for turn in range(20)}


def test_after_closing(history: History) -> None:
    history.close()
    history.close()
    with pytest.raises(HistoryProblem):
        history.list()
