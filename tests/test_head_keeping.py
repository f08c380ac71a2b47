"""A trained head in the store: the draft of its target, found, shown, verified and removed with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgespec.cli.main import main
from edgespec.shelf.stock import rows
from model_registry import locate
from model_registry.files import StoreProblem
from model_registry.heads import read_card
from model_registry.identity import content_digest, identify
from model_registry.problem import ModelFileProblem
from model_registry.store import Store
from model_registry.trained import keep_head
from model_registry.upkeep import prune, remove, verify
from tests.head_fakes import head_file
from tests.registry.stored import model_file, put

WORDS = "medusa big --data self --minutes 20"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    return Store.default()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return model_file(tmp_path / "big.gguf")


def head(target: Path, folder: Path, seed: int = 0) -> Path:
    return head_file(folder / f"head{seed}.safetensors", content_digest(target), seed=seed).path


def test_the_digest_is_that_of_the_file_wherever_it_is(store: Store, target: Path) -> None:
    outside = content_digest(target)
    assert outside == identify(target, store)
    record = put(store, target)
    inside = store.path(record)
    assert identify(inside, store) == f"store:{record.id}"
    assert content_digest(inside) == outside


def test_a_pair_is_used_by_its_targets_name(store: Store, target: Path, tmp_path: Path) -> None:
    file = head(target, tmp_path)
    record = put(store, target)
    pair = keep_head(store, "big", file, reference=WORDS)
    assert not file.exists()
    assert (pair.name, pair.target) == ("big", record.id)
    found = locate.find("big", store=store)
    assert found.target == store.path(record)
    assert found.draft is None
    assert found.head is not None
    assert read_card(found.head).about.serves(content_digest(found.target))
    kept = store.read().with_id(pair.draft)
    assert kept.name == "head0"
    assert kept.source.command == f"edgespec train {WORDS}"
    assert kept.source.revision == record.id
    assert (kept.traits.architecture, kept.traits.quant, kept.traits.tokens) == ("medusa", "F16", 6)
    assert kept.licence == "mit"
    assert verify(store, kept, full=True).problems == ()
    assert locate.find("big", with_draft=False, store=store).head is None


def test_as_a_draft_it_is_found_by_name_and_by_path(
    store: Store, target: Path, tmp_path: Path
) -> None:
    file = head(target, tmp_path)
    assert locate.find(str(file), role="draft", store=store).head == file
    assert locate.find(str(target), role="draft", store=store).head is None
    put(store, target)
    keep_head(store, "big", file, reference=WORDS)
    found = locate.find("head0", role="draft", store=store)
    assert found.head == found.target
    assert [one.name for one in found.used] == ["head0"]


def test_a_target_that_is_only_a_file_is_linked_to(
    store: Store, target: Path, tmp_path: Path
) -> None:
    pair = keep_head(store, str(target), head(target, tmp_path), reference=WORDS)
    record = store.read().with_id(pair.target)
    assert record.folder == str(tmp_path)
    assert target.exists()
    assert locate.find(pair.name, store=store).head


def test_another_head_gets_another_name_and_the_same_one_its_pair(
    store: Store, target: Path, tmp_path: Path
) -> None:
    files = [head(target, tmp_path, seed) for seed in range(3)]
    (tmp_path / "again").mkdir()
    same = head(target, tmp_path / "again", 0)
    put(store, target)
    names = [keep_head(store, "big", file, reference=WORDS).name for file in files]
    assert names == ["big", "big-medusa", "big-medusa2"]
    assert keep_head(store, "big", same, reference=WORDS).name == "big"
    assert len(store.read().pairs) == 3


def test_a_name_that_is_taken_or_none_is_refused_and_nothing_stays(
    store: Store, target: Path, tmp_path: Path
) -> None:
    first, second, third = (head(target, tmp_path, seed) for seed in range(3))
    put(store, target)
    keep_head(store, "big", first, reference=WORDS, name="mine")
    with pytest.raises(StoreProblem, match="another pair called mine"):
        keep_head(store, "big", second, reference=WORDS, name="mine")
    with pytest.raises(ModelFileProblem):
        keep_head(store, "big", third, reference=WORDS, name="a/b")
    assert second.exists()
    assert third.exists()
    assert [one.name for one in store.read().models] == ["big", "head0"]


def test_a_head_of_another_target_is_refused(store: Store, target: Path, tmp_path: Path) -> None:
    file = head_file(tmp_path / "other.safetensors", "sample:other").path
    put(store, target)
    with pytest.raises(StoreProblem, match="trained for model sample:other, not for big"):
        keep_head(store, "big", file, reference=WORDS)
    assert file.exists()
    assert [one.name for one in store.read().models] == ["big"]


def test_what_is_no_head_is_refused(store: Store, target: Path) -> None:
    with pytest.raises(ModelFileProblem, match="no head file"):
        keep_head(store, "big", target, reference=WORDS)


def test_all_commands_know_it(
    store: Store, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = head(target, tmp_path)
    record = put(store, target)
    keep_head(store, "big", file, reference=WORDS, name="mine")
    for command in (["list"], ["show", "mine"], ["show", "head0"], ["verify", "--full"]):
        assert main(command) == 0
        assert "head0" in capsys.readouterr().out
    main(["list"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("head0"))
    assert line.split()[1] == "head"
    assert "in mine" in line
    main(["show", "head0", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "head"
    assert told["trained_for"] == record.id
    assert told["targets"] == [f"model {content_digest(store.path(record))}"]
    assert told["training"] == {"minutes": 3, "data": "self"}
    assert told["source"] == WORDS
    main(["show", "mine"])
    assert "minutes: 3" in capsys.readouterr().out
    assert main(["rm", "mine"]) == 0
    assert [one.name for one in store.read().models] == ["big"]
    assert not store.read().pairs


def test_it_is_no_model_to_talk_to(store: Store, target: Path, tmp_path: Path) -> None:
    file = head(target, tmp_path)
    put(store, target)
    keep_head(store, "big", file, reference=WORDS, name="mine")
    names = [row.name for row in rows(store=store) if row.where == "here"]
    assert "mine" in names
    assert "big" in names
    assert "head0" not in names


def test_damage_is_found_and_a_head_that_is_gone_can_be_shown(
    store: Store, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = head(target, tmp_path)
    put(store, target)
    pair = keep_head(store, "big", file, reference=WORDS, name="mine")
    kept = store.read().with_id(pair.draft)
    path = store.path(kept)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert verify(store, kept, full=True).problems
    path.unlink()
    assert main(["show", "mine"]) == 0
    assert "complete: no" in capsys.readouterr().out
    with pytest.raises(ModelFileProblem) as caught:
        locate.find("mine", store=store)
    assert f"edgespec train {WORDS}" in caught.value.hint


def test_a_head_whose_pair_is_gone_is_pruned(store: Store, target: Path, tmp_path: Path) -> None:
    file = head(target, tmp_path)
    put(store, target)
    pair = keep_head(store, "big", file, reference=WORDS, name="mine")
    with store.locked():
        store.forget_pair(pair)
    assert [one.what for one in prune(store)] == ["head0, pulled for a pair that is gone"]
    assert [one.name for one in store.read().models] == ["big"]


def test_removing_the_pair_removes_the_head(store: Store, target: Path, tmp_path: Path) -> None:
    file = head(target, tmp_path)
    put(store, target)
    keep_head(store, "big", file, reference=WORDS)
    assert remove(store, "big").removed == ["pair big", "model head0"]


def test_a_head_in_place_of_a_model_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    file = head_file(tmp_path / "h.safetensors").path
    assert main(["run", "--model", str(file), "hello"]) != 0
    told = capsys.readouterr().err
    assert "it is a drafting head" in told
    assert "--draft" in told


def test_pair_says_what_to_do_with_a_head(
    store: Store, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, target)
    file = head_file(tmp_path / "h.safetensors").path
    assert main(["pair", "big", str(file)]) == 2
    told = capsys.readouterr().err
    assert "is a drafting head" in told
    assert "--draft" in told
    assert store.read().pairs == ()
