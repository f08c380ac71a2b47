"""Personas: those that come along, one's own, and what becomes of settings."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from edgespec import personas
from edgespec.errors import UsageError
from edgespec.persona_file import KEYS, PersonaSampling, dump, read
from edgespec.personas import BUILTIN, Persona, apply, load_all, user_folder, with_pair
from edgespec.sampling import Sampling
from edgespec.settings import Load, Own, Settings
from model_registry import catalog
from model_registry.store import Store
from tests.registry.stored import model_file, put


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty."""
    path = tmp_path / "config" / "personas"
    path.mkdir(parents=True)
    monkeypatch.setattr(personas, "user_folder", lambda: path)
    return path


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def persona(system: str = "Be brief.", pair: str | None = None, **sampling: float) -> Persona:
    return Persona("own", "Own", "", system, sampling, pair)


def test_those_that_come_along() -> None:
    found = load_all()
    assert found.problems == ()
    assert list(found.found) == [
        "assistant",
        "coder",
        "writer",
        "translator",
        "tutor",
        "summariser",
    ]
    for name, one in found.found.items():
        assert (one.name, one.source) == (name, BUILTIN)
        assert one.title
        assert one.about
        assert len(one.system) < 400, "a small model has to read it each time"
        assert one.pair is None or one.pair in catalog.load().pairs
        Sampling(**dict(one.sampling))  # type: ignore[arg-type]
    neutral = found.found["assistant"]
    assert (neutral.system, dict(neutral.sampling), neutral.pair) == ("", {}, None)
    assert all(one.system for one in found.found.values() if one is not neutral)


def test_a_persona_may_set_all_of_sampling_but_the_window() -> None:
    mine = set(PersonaSampling.model_fields)
    assert mine == {field.name for field in fields(Sampling)} - {"penalty_window"}


def test_ones_own_are_added_and_win(folder: Path) -> None:
    where = write(
        folder,
        "Pirate.yaml",
        "title: Pirate\nabout: talks like one\nsystem: |\n  Talk like a pirate.\n  Arr.\n"
        "sampling: {temperature: 1, top_k: 5, frequency_penalty: -0.5}\npair: some-pair\n",
    )
    mine = write(folder, "tutor.yml", "system: Mine.\n")
    write(folder, ".coder.yaml", "nonsense")
    write(folder, "notes.txt", "nonsense")
    found = load_all()
    assert found.problems == ()
    assert list(found.found)[-2:] == ["summariser", "pirate"]
    assert found.found["pirate"] == Persona(
        "pirate",
        "Pirate",
        "talks like one",
        "Talk like a pirate.\nArr.",
        {"temperature": 1, "top_k": 5, "frequency_penalty": -0.5},
        "some-pair",
        where,
    )
    tutor = found.found["tutor"]
    assert (tutor.title, tutor.system, tutor.source) == ("tutor", "Mine.", mine)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("systm: x", ["systm", "Did you mean system?"]),
        ("sampling: {top_q: 1}", ["sampling.top_q", "Did you mean sampling.top_"]),
        ("temperature: 1", ["temperature", "Did you mean sampling.temperature?"]),
        ("sampling.top_k: 1", ["sampling.top_k", "`top_k` below `sampling:`"]),
        ("zzz: 1", ["zzz", "title, about, system, pair, sampling.temperature"]),
        ("system: 5", ["system", "string", "5"]),
        ("system: [a, b]", ["system", "string"]),
        ("sampling: {temperature: -1}", ["sampling.temperature", "-1"]),
        ("sampling: {temperature: .nan}", ["sampling.temperature", "finite"]),
        ("sampling: {temperature: '1'}", ["sampling.temperature", "'1'"]),
        ("sampling: {top_k: 1.5}", ["sampling.top_k"]),
        ("sampling: {top_p: 0}", ["sampling.top_p"]),
        ("sampling: {min_p: 2}", ["sampling.min_p"]),
        ("sampling: {repeat_penalty: 0}", ["sampling.repeat_penalty"]),
        ("sampling: hot", ["sampling", "hot"]),
        ("pair: ''", ["pair"]),
        ("title: " + "x" * 61, ["title", "60"]),
        ("system: : x", ["YAML"]),
        ("system: 2020-99-99", ["YAML"]),
        ("system: " + "[" * 3000 + "]" * 3000, ["YAML"]),
        ("system: !!python/object:os.system {}", ["YAML"]),
        ("- a", ["key: value"]),
        ("", ["key: value"]),
        ("1: 2", ["1"]),
        ('"a\\e[2J": 1', ["there is no key"]),
    ],
)
def test_a_broken_one_is_told_and_the_others_load(
    folder: Path, text: str, parts: list[str]
) -> None:
    where = write(folder, "bad.yaml", text)
    write(folder, "good.yaml", "system: Good.\n")
    found = load_all()
    assert set(found.found) == {*_builtin(), "good"}
    (message,) = found.problems
    assert message.startswith(where)
    assert message.isprintable()
    for part in parts:
        assert part in message, message
    with pytest.raises(UsageError) as caught:
        found.named("bad")
    assert caught.value.message == message


def _builtin() -> set[str]:
    return {"assistant", "coder", "writer", "translator", "tutor", "summariser"}


def test_a_broken_one_does_not_leave_its_name_to_another(folder: Path) -> None:
    write(folder, "coder.yaml", "systm: x")
    found = load_all()
    assert "coder" not in found.found
    with pytest.raises(UsageError, match="systm"):
        found.named("coder")


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "raw.yaml").write_bytes(b"system: \xff")
    (folder / "inside.yaml").mkdir()
    inside, raw = load_all().problems
    assert "inside.yaml cannot be read" in inside
    assert "raw.yaml cannot be read: it is not UTF-8 text." in raw


def test_two_files_of_one_name(folder: Path) -> None:
    write(folder, "a.yaml", "system: one")
    write(folder, "a.yml", "system: two")
    found = load_all()
    assert found.found["a"].system == "one"
    (message,) = found.problems
    assert "a.yml is left out: a.yaml has the same name" in message


def test_no_folder_is_no_problem_and_a_file_in_its_place_is_one(folder: Path) -> None:
    folder.rmdir()
    assert set(load_all().found) == _builtin()
    assert load_all().problems == ()
    folder.touch()
    (message,) = load_all().problems
    assert str(folder) in message


def test_the_usual_folder() -> None:
    assert user_folder().parts[-2:] == ("edgespec", "personas")


def test_a_name_that_means_nobody() -> None:
    found = load_all()
    assert found.named(" Coder ") is found.found["coder"]
    with pytest.raises(UsageError) as caught:
        found.named("codr")
    assert "'codr'" in caught.value.message
    assert "coder?" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        found.named("xyz")
    assert "assistant, coder" in caught.value.hint


def test_a_persona_is_shown_as_the_file_that_it_could_be(folder: Path) -> None:
    odd = Persona("odd", "Odd: one", "#", "- a\n\n  b: 'c'\n\té", {"temperature": 0}, "p", "x")
    for one in [*load_all().found.values(), odd, persona(system="one line: only")]:
        path = folder / f"{one.name}.yaml"
        path.write_text(dump(one), encoding="utf-8")
        assert replace(read(path, one.name), source=one.source) == one
    assert "system: |" in dump(load_all().found["coder"])


def test_a_persona_sets_what_it_says_and_leaves_the_rest() -> None:
    before = Settings(sampling=Sampling(temperature=0.8, top_k=40), seed=7)
    after = apply(before, persona(temperature=0.2))
    assert after.sampling == Sampling(temperature=0.2, top_k=40)
    assert (after.system, after.persona, after.seed) == ("Be brief.", "own", 7)
    assert after.load == before.load


def test_another_persona_takes_the_place_of_the_one_before() -> None:
    before = Settings(sampling=Sampling(temperature=0.8, top_k=40))
    first = apply(before, persona(temperature=0.2, top_k=3))
    second = apply(first, persona("Be long.", top_k=9))
    assert second.sampling == Sampling(temperature=0.8, top_k=9)
    assert second.system == "Be long."
    neutral = apply(second, persona(""))
    assert (neutral.sampling, neutral.system) == (before.sampling, None)


def test_what_the_command_line_gave_stays() -> None:
    own = Own(Sampling(temperature=0), "Mine.", frozenset({"temperature", "system"}))
    before = Settings(sampling=own.sampling, system=own.system, own=own)
    after = apply(before, persona(temperature=0.9, top_p=0.5))
    assert after.sampling == Sampling(temperature=0, top_p=0.5)
    assert after.system == "Mine."
    assert after.own == own


def test_the_pair_that_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    named = Settings(load=Load(model="x.gguf"))
    unnamed = Settings(load=Load(context=7))
    likes = persona(pair="mine")
    missing = with_pair(unnamed, likes)
    assert missing.load == unnamed.load
    (notice,) = missing.notices
    assert "edgespec pull mine" in notice
    assert with_pair(named, likes) == named
    assert with_pair(unnamed, persona()) == unnamed
    store = Store.default()
    target = put(store, model_file(tmp_path / "t.gguf", seed=1), name="target")
    draft = put(store, model_file(tmp_path / "d.gguf", seed=2), name="draft")
    store.add_pair("mine", target, draft, verdict="fits")
    found = with_pair(unnamed, likes)
    assert (found.load, found.notices) == (Load(model="mine", context=7), ())
    assert with_pair(named, likes) == named


def test_the_keys_that_an_error_lists() -> None:
    assert "sampling.min_p" in KEYS
    assert "sampling" not in KEYS
