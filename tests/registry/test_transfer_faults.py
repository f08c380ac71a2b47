"""Downloads end in the right file or in a clear error, whatever the hub does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from model_registry import body
from model_registry.hub import HubProblem
from model_registry.problem import ModelFileProblem
from tests.registry.fake_hub import FakeHub, Fault
from tests.registry.transfer_bench import CONTENT, NAME, Bench

FAULTS = {
    "cut": Fault(cut_after=360_000),
    "cut at once": Fault(cut_after=0),
    "cut at the last byte": Fault(cut_after=599_999),
    "reset": Fault(reset_after=360_000),
    "stall": Fault(stall_after=360_000),
    "stall at once": Fault(stall_after=0),
    "cut in chunks": Fault(cut_after=360_000, unsized=True),
    "another size": Fault(content=CONTENT[:-1]),
    "another file": Fault(content=CONTENT[::-1]),
    "one byte wrong": Fault(corrupt=1234),
    "too long": Fault(content=CONTENT + b"x", unsized=True),
    "busy": Fault(status=429, headers={"Retry-After": "7"}),
    "broken": Fault(status=500),
    "bad gateway": Fault(status=502),
    "no such range": Fault(status=416),
    "no sense": Fault(status=206),
}


@pytest.mark.parametrize("cdn", [False, True])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_each_fault_is_survived(bench: Bench, fault: Fault, cdn: bool) -> None:
    bench.fake.cdn = cdn
    files = bench.put()
    bench.queue(fault)
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert len(bench.ranges()) == 2


@pytest.mark.parametrize("name", ["cut", "reset", "stall"])
def test_a_broken_connection_is_gone_on_with(bench: Bench, name: str) -> None:
    files = bench.put()
    bench.queue(FAULTS[name])
    bench.fetch(files)
    assert bench.ranges() == [None, "bytes=360000-"]
    states = [said.state for said in bench.said]
    assert states.index("retrying") < states.index("done")
    note = next(said.note for said in bench.said if said.state == "retrying")
    assert note.endswith("Trying again in 1 s.")


def test_it_starts_over_where_ranges_are_ignored(bench: Bench) -> None:
    files = bench.put()
    bench.queue(FAULTS["cut"], Fault(ignore_range=True))
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert bench.ranges() == [None, "bytes=360000-"]


def test_a_file_that_changes_between_two_tries(bench: Bench) -> None:
    files = bench.put()
    other = CONTENT[::-1]
    bench.queue(Fault(content=other, cut_after=360_000), Fault())
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert bench.ranges() == [None, "bytes=360000-", None]


def test_waiting_grows_and_starts_again_after_progress(bench: Bench) -> None:
    files = bench.put()
    busy = Fault(status=503)
    bench.queue(busy, busy, busy, FAULTS["cut"], busy, Fault(status=500))
    bench.fetch(files)
    assert bench.delays == [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]


def test_waiting_has_an_end(bench: Bench) -> None:
    files = bench.put()
    bench.fake.always = Fault(status=503)
    problem = bench.fails(files)
    assert isinstance(problem, HubProblem)
    assert problem.kind == "server"
    assert bench.delays == [1.0, 2.0, 4.0, 8.0, 16.0, 16.0]


def test_the_hub_says_how_long_to_wait(bench: Bench) -> None:
    files = bench.put()
    bench.queue(Fault(status=429, headers={"Retry-After": "77"}))
    bench.fetch(files)
    assert bench.delays == [77.0]
    assert any("in 77 s" in said.note for said in bench.said)


def test_but_not_for_ever(bench: Bench) -> None:
    files = bench.put()
    bench.queue(Fault(status=429, headers={"Retry-After": "7200"}))
    problem = bench.fails(files)
    assert problem.hint.startswith("Wait 7200 seconds")
    assert not bench.delays


def test_a_hub_that_is_slow_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "TICK", 0.005)
    files = bench.put()
    bench.queue(Fault(rate=2e6))  # in pieces, with four ticks between them
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert not bench.delays


def test_a_hub_that_gives_a_little_each_time(bench: Bench) -> None:
    files = bench.put()
    bench.queue(*[Fault(cut_after=n * 40_000) for n in range(1, 15)])
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert set(bench.delays) == {1.0}


@pytest.mark.parametrize("unsized", [False, True])
def test_a_hub_that_starts_over_and_never_ends(bench: Bench, unsized: bool) -> None:
    files = bench.put()
    bench.fake.always = Fault(cut_after=360_000, ignore_range=True, unsized=unsized)
    problem = bench.fails(files)
    assert isinstance(problem, HubProblem)
    assert problem.kind == "network"
    assert len(bench.delays) == 6


def test_a_hub_that_never_ends_fills_no_disk(bench: Bench) -> None:
    files = bench.put()
    bench.fake.always = Fault(content=CONTENT * 20, unsized=True, ignore_range=True)
    assert "more than it lists" in bench.fails(files).message
    assert bench.part(files[0]).stat().st_size <= len(CONTENT)


def test_wrong_bytes_are_never_kept(bench: Bench) -> None:
    files = bench.put()
    bench.fake.always = Fault(corrupt=599_999)
    problem = bench.fails(files)
    assert "digest is wrong" in problem.message
    assert bench.part(files[0]).stat().st_size == 0
    assert len(bench.ranges()) == 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(html=True), "not-a-hub"),
        (Fault(status=403), "gated"),
        (Fault(status=404), "missing"),
        (Fault(status=410), "server"),
    ],
)
def test_what_no_second_try_can_mend(bench: Bench, fault: Fault, kind: str) -> None:
    files = bench.put()
    bench.queue(FAULTS["cut"], fault)
    problem = bench.fails(files)
    assert isinstance(problem, HubProblem)
    assert problem.kind == kind
    assert bench.part(files[0]).read_bytes() == CONTENT[:360_000]
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert bench.ranges()[-1] == "bytes=360000-"


def test_a_gated_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.fake.cdn, bench.fake.token = True, "hf_the_right_token"
    files = bench.put(gated="manual")
    assert "accepted its terms" in bench.fails(files).message
    monkeypatch.setenv("HF_TOKEN", "hf_the_right_token")
    bench.check(bench.fetch(files), {NAME: CONTENT})
    assert all("authorization" not in call.headers for call in bench.fake.deliveries())
    assert not any("hf_" in repr(said) for said in bench.said)


def test_an_expired_address_is_had_anew(bench: Bench) -> None:
    bench.fake.cdn = True
    files = bench.put()
    bench.queue(FAULTS["cut"], Fault(status=403))
    bench.fake.on_link.extend([Fault(), Fault(status=502)])
    bench.check(bench.fetch(files), {NAME: CONTENT})


def random_fault(dice: random.Random) -> Fault:
    at = dice.choice([0, 1, dice.randrange(600_000), 599_999])
    kinds: tuple[dict[str, Any], ...] = (
        {"cut_after": at},
        {"reset_after": at},
        {"cut_after": at, "unsized": True},
        {"corrupt": at},
        {"status": dice.choice([408, 416, 429, 500, 503, 504])},
        {"status": dice.choice([403, 404]), "ignore_range": True},
        {"content": CONTENT[: dice.randrange(600_000)]},
        {"content": CONTENT[::-1], "cut_after": at},
        {"content": CONTENT + b"x", "unsized": True},
        {"html": True},
        {"status": 206},
        {},
    )
    fault = Fault(**dice.choice(kinds))
    if fault.status is None and dice.random() < 0.3:
        fault = Fault(**(vars(fault) | {"ignore_range": True}))
    return fault


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_file_is_right_or_absent(
    fake: FakeHub, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    bench = Bench(fake, tmp_path)
    fake.cdn = dice.random() < 0.5
    (file,) = bench.put()
    fake.on_file.extend(random_fault(dice) for _ in range(dice.randrange(12)))
    if dice.random() < 0.3:
        bench.part(file).write_bytes(dice.choice([CONTENT, CONTENT[::-1]])[: dice.randrange(10**6)])
    for _ in range(20):
        try:
            bench.check(bench.fetch([file]), {NAME: CONTENT})
            return
        except ModelFileProblem as problem:
            texts = (problem.message, problem.hint)
        assert all(text.endswith(".") for text in texts)
        assert not list(bench.dest.iterdir())
    pytest.fail("a hub that has recovered gives the file")
