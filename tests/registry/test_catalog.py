"""The catalogue that comes along, the user's own, and what is said about mistakes in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from model_registry import catalog
from model_registry.catalog import CatalogProblem, load, parse
from model_registry.quants import companion_of
from model_registry.reference import NameRef
from model_registry.reference import parse as parse_reference

KV_AND_WORK = 1.6e9
"""Bytes beside the weights: two caches of 4096 tokens and compute buffers of the largest pair."""

OWN = """
schema: 1
models:
  mine: {repo: me/mine-GGUF, licence: mit, quant: Q4_K_M}
pairs:
  my-pair: {target: mine, draft: qwen3-0.6b, use: all, confirmed: I ran it}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    path = tmp_path / "catalog.yaml"
    monkeypatch.setattr(catalog, "user_file", lambda: path)

    def write(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_one_that_comes_along(own: Callable[[str], Path]) -> None:
    known = load()
    assert {4, 8, 12, 16, 24} == set(known.gpus)
    assert not set(known.pairs) & set(known.models), "a name means one thing"
    for name in [*known.pairs, *known.models]:
        assert parse_reference(name) == NameRef(name)
    for model in known.models.values():
        assert not any(companion_of(file.path) for file in model.files)
        digests = [file.sha256 for file in model.files if file.sha256]
        assert len(digests) in (0, len(model.files))


def test_a_recommended_pair_fits_its_gpu(own: Callable[[str], Path]) -> None:
    known = load()
    for memory, name in known.gpus.items():
        pair = known.pairs[name]
        sizes = [known.models[one].size for one in (pair.target, pair.draft)]
        assert sum(size for size in sizes if size) + KV_AND_WORK < memory * 1e9


def test_members_of_a_pair_are_of_one_family(own: Callable[[str], Path]) -> None:
    known = load()
    for pair in known.pairs.values():
        target, draft = known.models[pair.target], known.models[pair.draft]
        assert target.family == draft.family
        assert pair.confirmed


def test_the_draft_of_a_model(own: Callable[[str], Path]) -> None:
    known = load()
    assert known.draft_of("qwen2.5-coder-32b-q4") == "qwen2.5-coder-1.5b-q4", "of its pair"
    assert known.draft_of("qwen3-4b") == "qwen3-0.6b", "of its family"
    assert known.draft_of("qwen3-0.6b") is None
    assert known.draft_of("gpt-oss-20b") is None


def test_known_by_digest(own: Callable[[str], Path]) -> None:
    known = load()
    shards = known.models["qwen2.5-7b-q4"].digests
    assert shards
    assert known.with_digests(shards[::-1]) == "qwen2.5-7b-q4"
    assert known.with_digests(shards[:1]) is None
    assert known.only_one_of("qwen/qwen3-8b-gguf") == "qwen3-8b-q4"


def test_additions_of_the_user(own: Callable[[str], Path]) -> None:
    own(OWN)
    known = load()
    assert known.pairs["my-pair"].target == "mine"
    assert known.models["mine"].size is None
    assert "qwen3-8b" in known.pairs


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("schema: 2", "schema: "),
        ("schema: 1\nmodel: {}", "model: "),
        ("schema: 1\nmodels: {a: {}}", "models.a"),
        ("- 1", "the whole file: "),
        ("schema: 1\nmodels: {mm: {repo: x, licence: mit, quant: Q4_0}}", "models.mm.repo: "),
        ("schema: 1\nmodels: {mm: {repo: a/b, licence: mit}}", "give either files or quant"),
        (
            "schema: 1\nmodels: {mm: {repo: a/b, licence: mit, files: "
            "[{path: m.gguf, size: 1, sha256: abc}]}}",
            "models.mm.files.0.sha256: ",
        ),
        (OWN.replace("target: mine", "target: other"), "pairs.my-pair.target: "),
        (OWN + "gpus: {6: other}\n", "gpus.6: "),
        (OWN.replace("licence: mit", "licence: mit, family: none"), "models.mine.family: "),
    ],
)
def test_a_mistake_is_named(own: Callable[[str], Path], text: str, key: str) -> None:
    path = own(text)
    with pytest.raises(CatalogProblem) as caught:
        load()
    assert str(path) in caught.value.message
    assert key in caught.value.message


def test_no_yaml() -> None:
    with pytest.raises(CatalogProblem, match=r"c\.yaml is not YAML"):
        parse("a: [", "c.yaml")
