"""Files of other versions: older ones are brought on, newer ones stay as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from edgespec.history.database import Database
from edgespec.history.problem import HistoryProblem
from edgespec.history.schema import MIGRATIONS, Migration
from edgespec.history.store import History
from tests.history.talking import run_sql, talk, texts

SECOND: Migration = (
    "ALTER TABLE conversations ADD COLUMN stars INTEGER NOT NULL DEFAULT 0",
    "UPDATE conversations SET stars = length(title)",
)
BROKEN: Migration = (
    "ALTER TABLE conversations ADD COLUMN moons INTEGER",
    "INSERT INTO nowhere VALUES (1)",
)

FIRST_FILE = Path(__file__).with_name("version-1.sql")


def version(path: Path) -> object:
    return run_sql(path, "PRAGMA user_version")[0][0]


def old_file(path: Path) -> None:
    """A file as version 1 wrote it; never made by today's statements."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as sql:
        sql.executescript(FIRST_FILE.read_text(encoding="utf-8"))


def test_a_file_of_version_1(place: Path) -> None:
    old_file(place)
    with closing(History.open(place)) as history:
        assert texts(history, 1) == ["What is WAL?", "A log that is written first."]
        assert history.summary(1).title == "What is WAL?"
        assert [hit.summary.id for hit in history.search("log")] == [1]
        history.add(1, 2, "user", "Why?")
        assert [hit.summary.id for hit in history.search("why")] == [1]
        assert history.notices == ()
    assert version(place) == len(MIGRATIONS)


def test_a_new_file_is_what_version_1_was(tmp_path: Path, place: Path) -> None:
    """Who changes the first migration must know that files are there already."""
    old_file(place)
    new = tmp_path / "new.db"
    History.open(new).close()
    tables = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    if len(MIGRATIONS) == 1:
        assert run_sql(new, tables) == run_sql(place, tables)


def test_the_next_version(place: Path) -> None:
    old_file(place)
    steps = (MIGRATIONS[0], SECOND)
    with closing(Database.open(place, steps)) as database, database.reading() as sql:
        assert sql.execute("SELECT id, stars FROM conversations").fetchall() == [(1, 12)]
    assert version(place) == 2
    with closing(Database.open(place, steps)):
        assert version(place) == 2, "not once more"
    with closing(History(Database.open(place, steps))) as history:
        assert texts(history, talk(history, "still", "works")) == ["still", "works"]


def test_all_or_nothing(place: Path) -> None:
    old_file(place)
    with pytest.raises(HistoryProblem, match="nowhere"):
        Database.open(place, (MIGRATIONS[0], SECOND, BROKEN))
    assert version(place) == 1
    columns = run_sql(
        place, "SELECT * FROM pragma_table_info('conversations') WHERE name = 'stars'"
    )
    assert columns == []
    with closing(History.open(place)) as history:
        assert len(history.list()) == 1


def test_a_newer_file_is_refused_and_stays_as_it_is(place: Path) -> None:
    old_file(place)
    run_sql(place, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = place.read_bytes()
    with pytest.raises(HistoryProblem, match="newer EdgeSpec") as caught:
        History.open(place)
    assert str(place) in caught.value.message
    assert f"schema is {len(MIGRATIONS) + 1}" in caught.value.message
    assert "Update EdgeSpec" in caught.value.hint
    assert place.read_bytes() == before
    assert not list(place.parent.glob("*damaged*"))


def test_another_programs_file_is_refused(place: Path) -> None:
    place.parent.mkdir()
    run_sql(place, "CREATE TABLE visits (url TEXT)", "INSERT INTO visits VALUES ('x')")
    before = place.read_bytes()
    with pytest.raises(HistoryProblem, match="another program"):
        History.open(place)
    assert place.read_bytes() == before


def test_an_empty_file_is_a_new_history(place: Path) -> None:
    place.parent.mkdir()
    place.touch()
    with closing(History.open(place)) as history:
        assert history.list() == []
        assert history.notices == ()
