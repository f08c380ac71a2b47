"""Downloads that run beside a chat: real HTTP on loopback, real parts, a real store."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from edgespec.shelf.row import Row
from edgespec.shelf.stock import hub_rows, rows
from model_registry import catalog, unfinished
from model_registry.hub import Hub
from model_registry.locate import find
from model_registry.store import Store
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub, Fault
from tests.shelf_stand import BIG_FILE, DRAFT, PAIR, TARGET, catalogue, put_on_hub
from tests.tui.driving import eventually
from tui import downloads as module
from tui.download import Download, farewell, foot, in_words, percent, reason
from tui.downloads import Downloads

fake, hub_settings = registry.fake, registry.hub_settings

SLOW = Fault(rate=100_000)
BIG = Row("big", "hub", "hub", f"hf:{TARGET}")
SMALL = Row("small", "hub", "hub", f"hf:{DRAFT}")
ROW = Row("toys-pair", "pair", "catalogue", "toys-pair", sizes=(4_000_000, 1_000_000))


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_settings: Path) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setattr(catalog, "user_file", lambda: tmp_path / "catalog.yaml")
    return Store(tmp_path / "store")


@pytest.fixture
def hub(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    put_on_hub(fake)
    (tmp_path / "catalog.yaml").write_text(catalogue(fake))
    monkeypatch.setenv("HF_ENDPOINT", fake.url)
    return fake


class Ended:
    """Downloads whose ends are kept."""

    def __init__(self, hub: FakeHub) -> None:
        self.said: list[Download] = []
        self.threads: list[threading.Thread] = []
        self.downloads = Downloads(
            on_end=self._note, hub=lambda: Hub(hub.url, delay=lambda _: None)
        )

    def _note(self, download: Download) -> None:
        self.said.append(download)
        self.threads.append(threading.current_thread())

    def view(self, row: Row) -> Download:
        view = self.downloads.get(row.key)
        assert view
        return view

    async def until(self, row: Row, *states: str) -> Download:
        await eventually(lambda: self.view(row).state in states)
        return self.view(row)

    async def arriving(self, row: Row) -> None:
        """Until some of it has come, and not all."""
        await eventually(lambda: 0 < self.view(row).done < self.view(row).total)


@pytest.fixture
def ended(hub: FakeHub) -> Ended:
    return Ended(hub)


async def test_a_download_runs_beside_and_ends_in_the_store(ended: Ended, store: Store) -> None:
    ended.downloads.start(ROW)
    view = await ended.until(ROW, "done")
    assert view.stored == PAIR
    assert find(view.stored).draft
    assert [one.name for one in store.read().models] == ["toy-big", "toy-small"]
    await eventually(lambda: len(ended.said) == 1)
    assert ended.said[0].state == "done"
    assert ended.threads[0] is not threading.main_thread()
    assert in_words(view) == "here now"
    assert ended.downloads.close() == ""


async def test_a_pause_keeps_the_parts_and_going_on_takes_only_the_rest(
    ended: Ended, hub: FakeHub, store: Store
) -> None:
    hub.always = SLOW
    ended.downloads.start(BIG)
    await ended.arriving(BIG)
    ended.downloads.pause(BIG.key)
    view = await ended.until(BIG, "paused")
    (part,) = store.partial.glob("*.part")
    assert view.done == part.stat().st_size
    assert 0 < view.done < view.total == (hub.root / TARGET / BIG_FILE).stat().st_size
    assert in_words(view) == f"paused {percent(view.done / view.total)}"
    assert not ended.said
    hub.always = None
    ended.downloads.resume(BIG.key)
    done = await ended.until(BIG, "done")
    assert hub.deliveries(BIG_FILE)[-1].headers["range"] == f"bytes={view.done}-"
    assert find(done.stored).target.name == BIG_FILE


async def test_what_is_given_up_is_kept_or_thrown_away_as_it_was_asked(
    ended: Ended, hub: FakeHub, store: Store
) -> None:
    hub.always = SLOW
    for keep in (True, False):
        ended.downloads.start(BIG)
        await ended.arriving(BIG)
        ended.downloads.cancel(BIG.key, keep=keep)
        await eventually(lambda: ended.downloads.get(BIG.key) is None)
        left = unfinished.listed(store)
        assert [unfinished.fetched(store, pull) > 0 for pull in left] == [True] * keep
        assert bool(list(store.partial.glob("*"))) is keep
    assert not ended.said


async def test_what_was_paused_can_still_be_thrown_away(
    ended: Ended, hub: FakeHub, store: Store
) -> None:
    hub.always = SLOW
    ended.downloads.start(BIG)
    await ended.arriving(BIG)
    ended.downloads.pause(BIG.key)
    await ended.until(BIG, "paused")
    ended.downloads.cancel(BIG.key, keep=False)
    await eventually(lambda: ended.downloads.get(BIG.key) is None)
    assert not unfinished.listed(store)


async def test_a_failure_stays_readable_and_can_be_tried_again(ended: Ended, hub: FakeHub) -> None:
    hub.always = Fault(status=404)
    ended.downloads.start(BIG)
    view = await ended.until(BIG, "failed")
    await eventually(lambda: len(ended.said) == 1)
    assert ended.said[0] == view
    assert "is not on the hub" in view.note or "no file" in view.note
    assert in_words(view) == "failed"
    hub.always = None
    ended.downloads.resume(BIG.key)
    await ended.until(BIG, "done")
    ended.downloads.dismiss(BIG.key)
    assert ended.downloads.all() == ()


async def test_an_unexpected_error_is_a_failure_too(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(row: Row) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr("edgespec.shelf.orders.request_of", break_down)
    ended.downloads.start(BIG)
    assert "Unexpected error: odd" in (await ended.until(BIG, "failed")).note


async def test_starting_twice_fetches_once(ended: Ended, hub: FakeHub) -> None:
    hub.always = SLOW
    ended.downloads.start(BIG)
    await ended.arriving(BIG)
    ended.downloads.start(replace(BIG, name="again"))
    assert [view.row.name for view in ended.downloads.all()] == ["big"]
    assert len(hub.deliveries(BIG_FILE)) == 1
    ended.downloads.close()


async def test_two_at_once_and_one_that_shares_a_file_waits(
    ended: Ended, hub: FakeHub, store: Store
) -> None:
    hub.always = SLOW
    ended.downloads.start(BIG)
    ended.downloads.start(SMALL)
    await ended.arriving(BIG)
    await ended.until(SMALL, "done")
    hub.always = None  # what is on its way stays slow
    ended.downloads.start(ROW)
    view = await ended.until(ROW, "waiting")
    assert "waits" in view.note
    ended.downloads.pause(BIG.key)
    await ended.until(ROW, "done")
    assert store.read().pair(PAIR)
    assert ended.view(BIG).state == "paused"


async def test_the_end_of_the_app_stops_all_and_says_what_is_kept(
    ended: Ended, hub: FakeHub, store: Store
) -> None:
    hub.always = SLOW
    ended.downloads.start(BIG)
    await ended.arriving(BIG)
    said = ended.downloads.close()
    (pull,) = unfinished.listed(store)
    assert said.startswith("The download of big was stopped; ")
    assert said.endswith(f"Go on with: {pull.command}")
    assert unfinished.fetched(store, pull) == ended.view(BIG).done > 0
    assert not any(view.at_work for view in ended.downloads.all())
    ended.downloads.start(SMALL)
    assert ended.downloads.get(SMALL.key) is None


async def test_the_end_does_not_wait_for_a_hub_that_hangs(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def hang() -> Hub:
        asked.set()
        let_go.wait(60)
        return Hub(hub.url)

    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    downloads = Downloads(hub=hang)
    downloads.start(BIG)
    await eventually(asked.is_set)
    assert downloads.close() == ""
    let_go.set()
    await eventually(lambda: not any(view.at_work for view in downloads.all()))


def test_an_unfinished_row_goes_on_as_it_was_begun(hub: FakeHub, store: Store) -> None:
    command = Download(replace(BIG, draft="auto", called="mine")).command
    assert command == f"edgespec pull hf:{TARGET} --draft auto --as mine"
    unfinished.begin(store, "mine", command, [("x.part", "x.gguf", 100)])
    (store.partial / "x.part").write_bytes(b"x")
    (row,) = (row for row in rows() if row.where == "unfinished")
    assert (row.reference, row.draft, row.called) == (BIG.reference, "auto", "mine")
    assert Download(row).command == command
    assert hub_rows("big")[0].key == row.key


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (Download(ROW), "starting"),
        (Download(ROW, "running"), "↓ …"),
        (Download(ROW, "running", 430, 1000, 12_300_000.0), "↓ 43 %  12.3 MB/s"),
        (Download(ROW, "running", 999, 1000), "↓ 99 %"),
        (Download(ROW, "checking", 50, 100), "checking 50 %"),
        (Download(ROW, "stopping", 50, 100), "stopping"),
    ],
)
def test_one_download_in_words(download: Download, words: str) -> None:
    assert in_words(download) == words


def test_all_downloads_in_a_line() -> None:
    one = Download(ROW, "running", 1_000_000, 4_000_000, 500_000.0)
    assert foot([]) == ""
    assert foot([one]) == "1 download  25 %  1.0 MB of 4.0 MB  500 kB/s  0:06 left"
    both = [one, one, Download(ROW, "paused"), Download(ROW, "failed")]
    assert foot(both) == (
        "2 downloads  25 %  2.0 MB of 8.0 MB  1.0 MB/s  0:06 left  1 paused  1 failed"
    )
    assert foot([Download(ROW)]) == "1 download  starting"
    assert foot([Download(ROW, "done", 1, 1)]) == ""


def test_the_farewell() -> None:
    one = Download(ROW, "paused", 1_000_000, 4_000_000)
    assert farewell([]) == farewell([Download(ROW, "failed")]) == ""
    assert farewell([one]) == (
        "The download of toys-pair was stopped; 1.0 MB of 4.0 MB are kept. "
        "Go on with: edgespec pull toys-pair"
    )
    assert farewell([one, one]).startswith("2 downloads were stopped; 2.0 MB are kept.")


def test_a_hint_for_the_shell_becomes_one_for_the_app() -> None:
    assert reason("It broke.", "Run the same command again: it goes on from here.") == (
        "It broke. Press p: it goes on from here."
    )
