"""What acting on a row would do, and doing it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from edgespec.shelf.details import details
from edgespec.shelf.here import files, fit_of
from edgespec.shelf.orders import can_draft, quote, removal, remove, request_of, verify
from edgespec.shelf.stock import BUILTIN, hub_rows, rows
from model_registry.files import StoreProblem
from model_registry.pairing import PairVerdict
from model_registry.problem import ModelFileProblem
from model_registry.pull import Pull
from model_registry.store import Store
from tests import shelf_fixtures
from tests.gguf_files import byte_vocab
from tests.machines import machine
from tests.registry import conftest as registry
from tests.registry.fake_hub import FakeHub
from tests.shelf_fixtures import add_pair, row_of
from tests.shelf_stand import DRAFT, PAIR, SMALL_FILE, TARGET, put_model

fake, hub_settings = registry.fake, registry.hub_settings
store, hub = shelf_fixtures.store, shelf_fixtures.hub


def test_what_a_pull_would_bring(hub: FakeHub, store: Store, tmp_path: Path) -> None:
    told = quote(row_of(PAIR))
    assert [(role, name) for role, name, _ in told.comes] == [
        ("model", "toy-big"),
        ("draft", "toy-small"),
    ]
    assert told.size == row_of(PAIR).size
    assert "Licence: mit." in told.lines()
    assert not any("not enough" in line for line in told.lines())
    assert any("not enough" in line for line in replace(told, free=told.size).lines())
    Pull(store).run(request_of(row_of("toy-small")))
    told = quote(row_of(PAIR))
    assert [name for _, name, _ in told.comes] == ["toy-big"]
    assert told.there == ("toy-small",)
    assert "here already: toy-small" in told.lines()


def test_what_a_repository_would_bring(hub: FakeHub) -> None:
    (row,) = hub_rows("small")
    told = quote(row)
    size = (hub.root / DRAFT / SMALL_FILE).stat().st_size
    assert told.row.sizes == (size,)
    assert told.row.licence == "mit"
    assert told.comes == (("model", SMALL_FILE, size),)
    assert str(fit_of(told.row, machine=machine())) == "~RAM"
    with pytest.raises(ModelFileProblem, match="is not on the hub"):
        quote(replace(row, reference="hf:maker/nothing"))


def test_removing_says_before_what_goes_and_what_stays(store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path)
    other = put_model(store, tmp_path, "other", seed=5)
    contents = store.read()
    small = contents.model("small")
    assert small
    store.add_pair("trio", other, small, verdict="")
    with pytest.raises(StoreProblem, match="small stays: it belongs to the pair duo, trio"):
        removal(row_of("small"))
    goes, stays = removal(row_of("duo"))
    assert goes.startswith("big goes: ")
    assert stays == "small stays: the pair trio uses it."
    assert remove(row_of("duo")).removed == ["pair duo", "model big"]
    assert removal(row_of("trio"))[0] == "other stays: it was fetched by itself."
    assert remove(row_of("trio")).removed == ["pair trio", "model small"]
    assert [row.name for row in rows() if row.where == "here"] == ["other", BUILTIN]


class EnoughError(Exception):
    pass


def test_every_byte_can_be_read_again(store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path)
    shares: list[float] = []
    assert verify(row_of("duo"), shares.append) == []
    assert shares == sorted(shares)
    assert shares[-1] == 1
    path = files(row_of("duo"))[0]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (problem,) = verify(row_of("duo"), shares.append)
    assert "does not have the content" in problem

    def stop(share: float) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        verify(row_of("duo"), stop)


def test_a_draft_is_checked_by_the_pairing_rule(store: Store, tmp_path: Path) -> None:
    put_model(store, tmp_path, "big", width=64)
    put_model(store, tmp_path, "small", seed=1)
    put_model(store, tmp_path, "foreign", vocab=byte_vocab().padded(200))
    assert can_draft("big", row_of("small")).ok
    verdict: PairVerdict = can_draft("big", row_of("foreign"))
    assert (verdict.ok, verdict.rule) == (False, "size")
    assert can_draft(None, row_of("small")).rule == "type"
    with pytest.raises(ModelFileProblem, match="is the model that answers"):
        can_draft("big", row_of("big"))
    with pytest.raises(ModelFileProblem, match="Nothing here is called nothing"):
        can_draft("nothing", row_of("big"))


def test_details_name_files_and_digests(hub: FakeHub, store: Store, tmp_path: Path) -> None:
    add_pair(store, tmp_path)
    record = store.read().model("big")
    assert record
    lines = details(row_of("duo"))
    assert "They agree." in lines
    assert any(record.files[0].sha256[:12] in line for line in lines)
    assert any("pairs: duo" in line for line in lines)
    known = "\n".join(details(row_of(PAIR)))
    assert f"hf:{TARGET}" in known
    assert "Confirmed: here." in known
    assert "SHA-256" in known
    assert any(str(files(row_of(BUILTIN))[0]) in line for line in details(row_of(BUILTIN)))
    assert hub.calls == []
