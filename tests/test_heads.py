"""Medusa heads: what they compute, their file, and a sentence for whatever can be wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from edgespec.errors import EdgeSpecError, ModelFileError, PairError
from edgespec.heads import file
from edgespec.heads.medusa import Calibration, MedusaHeads, calibrated
from model_registry.heads import KEY
from tests.head_fakes import about, arrays, head_file

Tensors = dict[str, NDArray[Any]]


def as_defined(blocks: NDArray[Any], output: NDArray[Any], state: NDArray[Any]) -> NDArray[Any]:
    """The formula, in float64."""
    inner = blocks.astype(np.float64) @ state.astype(np.float64)
    hidden: NDArray[Any] = inner / (1 + np.exp(-inner)) + state
    return hidden @ output.astype(np.float64).T


@pytest.mark.parametrize(
    ("heads", "width", "tokens"), [(1, 1, 1), (3, 7, 5), (4, 576, 300), (2, 96, 4097)]
)
def test_logits_are_those_of_the_formula(heads: int, width: int, tokens: int) -> None:
    made = arrays(heads, width, tokens)
    state = np.random.default_rng(1).normal(size=width).astype(np.float32)
    found = MedusaHeads(**made, vocabulary=range(tokens)).logits(state, heads)
    assert found.shape == (heads, tokens)
    assert found.dtype == np.float32
    wanted = as_defined(made["blocks"], made["output"], state)
    assert np.abs(found - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max())


def test_fewer_heads_say_the_same() -> None:
    heads = MedusaHeads(**arrays(4, 16, 9), vocabulary=range(9))
    state = np.ones(16, np.float32)
    assert np.allclose(heads.logits(state, 2), heads.logits(state, 4)[:2], rtol=1e-5)


def test_without_blocks_each_says_what_the_target_says() -> None:
    output = arrays()["output"]
    heads = MedusaHeads(np.zeros((2, 8, 8)), output, range(6))
    state = np.arange(8, dtype=np.float32)
    assert np.allclose(heads.logits(state, 2), [output @ state] * 2, rtol=1e-5)


def test_very_negative_numbers_are_no_trouble() -> None:
    heads = MedusaHeads(np.full((1, 2, 2), -1e4), np.eye(2), [0, 1])
    assert np.allclose(heads.logits(np.array([1, 2], np.float32), 1), [[1, 2]])


def test_a_temperature_flattens() -> None:
    state = np.ones(8, np.float32)
    plain = MedusaHeads(**arrays(2), vocabulary=range(6))
    flat = MedusaHeads(
        **arrays(2), vocabulary=range(6), calibration=[Calibration(), Calibration(2.0, 0.5)]
    )
    found, wanted = flat.logits(state, 2), plain.logits(state, 2)
    assert np.allclose(found[0], wanted[0])
    assert np.allclose(found[1], wanted[1] / 2)
    assert list(flat.coverage) == [1.0, 0.5]
    assert list(plain.coverage) == [1.0, 1.0]


def test_places_of_tokens_that_are_known() -> None:
    heads = MedusaHeads(**arrays(1, 8, 3), vocabulary=[2, 5, 9])
    assert heads.places([9, 0, 2, 10, 5, 5, 3]).tolist() == [2, 0, 1, 1]
    assert heads.places([]).tolist() == []


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_calibration_finds_the_temperature_and_the_coverage(temperature: float) -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(scale=3, size=(20_000, 6)).astype(np.float32)
    noise = rng.gumbel(size=logits.shape)
    truth = (logits / temperature + noise).argmax(axis=1)
    truth[: len(truth) // 4] = -1
    found = calibrated(logits, truth)
    assert abs(found.temperature / temperature - 1) < 0.05
    assert found.coverage == 0.75


def test_calibration_of_a_head_that_is_never_right() -> None:
    assert calibrated(np.zeros((2, 3), np.float32), np.array([-1, -1])) == Calibration(1.0, 0.0)


def test_a_file_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "h.safetensors"
    made = arrays()
    calibration = [Calibration(1.5, 0.75), Calibration(0.5, 1.0), Calibration(2.0, 0.25)]
    saved = file.save(
        path,
        about("a", "b"),
        **made,
        vocabulary=np.array([1, 2, 3, 5, 8, 13]),
        calibration=calibration,
    )
    found = file.read(path)
    assert found == saved
    assert found.about == about("a", "b")
    assert (found.heads, found.tokens) == (3, 6)
    assert [one.name for one in tmp_path.iterdir()] == ["h.safetensors"]
    heads = found.load()
    assert heads.count == 3
    assert heads.vocabulary.tolist() == [1, 2, 3, 5, 8, 13]
    assert heads.calibration == tuple(calibration)
    blocks, output = made["blocks"].astype(np.float16), made["output"].astype(np.float16)
    state = np.ones(8, np.float32)
    wanted = MedusaHeads(blocks, output, range(6), calibration)
    assert np.array_equal(heads.logits(state, 3), wanted.logits(state, 3))


def test_the_size_in_memory_is_told_before_it_is_read(tmp_path: Path) -> None:
    found = head_file(tmp_path / "h.safetensors", heads=2, width=64, tokens=20)
    assert found.nbytes == 4 * (2 * 64 * 64 + 20 * 64)
    # Pieces are filled up with zeros.
    assert found.nbytes <= found.load().nbytes < 3 * found.nbytes


def test_numbers_that_float16_cannot_hold_are_not_saved(tmp_path: Path) -> None:
    made = arrays()
    made["output"][0, 0] = 1e6
    with np.errstate(over="ignore"), pytest.raises(ModelFileError, match="not finite"):
        file.save(tmp_path / "h.safetensors", about(), **made, vocabulary=np.arange(6))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(EdgeSpecError, match="cannot be written") as caught:
        file.save(tmp_path / "no" / "h.safetensors", about(), **arrays(), vocabulary=np.arange(6))
    assert caught.value.hint


def test_what_looks_like_a_head(tmp_path: Path) -> None:
    path = tmp_path / "h.bin"
    head_file(path)
    assert file.is_head(path)
    path.write_bytes(b"GGUF\3\0\0\0{")
    assert not file.is_head(path)
    path.write_bytes(b"")
    assert not file.is_head(path)
    assert not file.is_head(tmp_path)
    assert not file.is_head(tmp_path / "gone")


def card(**changes: object) -> dict[str, str]:
    data = json.loads(about().as_metadata()[KEY])
    data |= changes
    return {KEY: json.dumps({key: value for key, value in data.items() if value is not None})}


def tensors(**changes: NDArray[Any] | None) -> Tensors:
    made: dict[str, NDArray[Any] | None] = {
        "blocks": arrays()["blocks"].astype(np.float16),
        "output": arrays()["output"].astype(np.float16),
        "vocabulary": np.arange(6, dtype=np.int32),
        "calibration": np.ones((3, 2), np.float32),
        **changes,
    }
    return {name: array for name, array in made.items() if array is not None}


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({}, "no drafting head"),
        ({"format": "pt"}, "no drafting head"),
        ({KEY: "{"}, "damaged"),
        ({KEY: "[]"}, "no object"),
        (card(version=None), "version is no number"),
        (card(version="1"), "version is no number"),
        (card(version=0), "version is no number"),
        (card(version=2), "newer EdgeSpec"),
        (card(kind="other"), "kind 'other'"),
        (card(kind=None), "kind is no str"),
        (card(targets=None), "targets is no list"),
        (card(targets=[]), "names no target"),
        (card(targets=["x"]), "a target is no object"),
        (card(targets=[{"digest": 1, "name": "x"}]), "digest is no str"),
        (card(hidden_size=None), "hidden_size is no int"),
        (card(hidden_size=True), "hidden_size is no int"),
        (card(hidden_size=0), "hidden_size is 0"),
        (card(hidden_size=9), r"blocks has the shape \[3, 8, 8\], not \[3, 9, 9\]"),
        (card(vocab_size=-1), "vocab_size is -1"),
        (card(vocab_size=5), "6 tokens of 5"),
        (card(training=[]), "training is no dict"),
    ],
)
def test_a_card_that_says_something_else(
    tmp_path: Path, metadata: dict[str, str], says: str
) -> None:
    path = tmp_path / "h.safetensors"
    save_file(tensors(), path, metadata)
    with pytest.raises(ModelFileError, match=says) as caught:
        file.read(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"blocks": None, "output": None}, "lacks blocks and output"),
        ({"calibration": None}, "lacks calibration"),
        ({"output": np.zeros((6, 8), np.float64)}, "output is of the type F64, not F16 or F32"),
        ({"vocabulary": np.zeros(6, np.float32)}, "vocabulary is of the type F32, not I32 or I64"),
        ({"blocks": np.zeros((3, 8, 7), np.float16)}, r"not \[3, 8, 8\]"),
        ({"output": np.zeros((5, 8), np.float16)}, r"vocabulary has the shape \[6\], not \[5\]"),
        (
            {"blocks": np.zeros((2, 8, 8), np.float16)},
            r"calibration has the shape \[3, 2\], not \[2, 2\]",
        ),
        (
            {
                "blocks": np.zeros((17, 8, 8), np.float16),
                "calibration": np.ones((17, 2), np.float32),
            },
            "17 heads",
        ),
    ],
)
def test_tensors_that_are_others(tmp_path: Path, changes: Tensors, says: str) -> None:
    path = tmp_path / "h.safetensors"
    save_file(tensors(**changes), path, card())
    with pytest.raises(ModelFileError, match=says) as caught:
        file.read(path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"output": np.full((6, 8), np.nan, np.float16)},
            "output holds numbers that are not finite",
        ),
        ({"vocabulary": np.array([0, 1, 1, 2, 3, 4], np.int32)}, "do not ascend"),
        ({"vocabulary": np.array([0, 1, 2, 3, 4, 20], np.int64)}, "that the target lacks"),
        ({"vocabulary": np.array([-1, 1, 2, 3, 4, 5], np.int64)}, "that the target lacks"),
        ({"calibration": np.zeros((3, 2), np.float32)}, "calibration is out of range"),
        ({"calibration": np.full((3, 2), 1.5, np.float32)}, "calibration is out of range"),
        ({"calibration": np.full((3, 2), np.inf, np.float32)}, "not finite"),
    ],
)
def test_numbers_that_make_no_sense(tmp_path: Path, changes: Tensors, says: str) -> None:
    path = tmp_path / "h.safetensors"
    save_file(tensors(**changes), path, card())
    found = file.read(path)
    with pytest.raises(ModelFileError, match=says) as caught:
        found.load()
    assert caught.value.hint


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def start_only(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [cut, start_only, emptied, gone, folder])
def test_files_that_are_none(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "h.safetensors"
    head_file(path)
    damage(path)
    with pytest.raises(ModelFileError) as caught:
        file.read(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_head_serves_the_models_that_it_names_and_no_other(tmp_path: Path) -> None:
    found = head_file(tmp_path / "h.safetensors", "one", "two")
    found.check_target("one", "x", 8, 20)
    found.check_target("two", "x", 8, 20)
    words = r"h\.safetensors cannot draft for Other: .* model one and model two"
    with pytest.raises(PairError, match=words) as caught:
        found.check_target("three", "Other", 8, 20)
    assert "edgespec train medusa" in caught.value.hint


@pytest.mark.parametrize(("width", "vocabulary"), [(9, 20), (8, 21)])
def test_a_head_whose_numbers_do_not_fit_is_refused(
    tmp_path: Path, width: int, vocabulary: int
) -> None:
    found = head_file(tmp_path / "h.safetensors", "one")
    with pytest.raises(PairError, match=f"8 numbers and knows 20 .* {width} and {vocabulary}"):
        found.check_target("one", "x", width, vocabulary)


def test_heads_can_be_asked_one_by_one() -> None:
    heads = MedusaHeads(
        **arrays(3, 16, 9), vocabulary=range(9), calibration=[Calibration(t) for t in (1, 2, 3)]
    )
    state = np.ones(16, np.float32)
    all_of_them = heads.logits(state, 3)
    for head in range(3):
        assert np.allclose(heads.logits(state, 1, head)[0], all_of_them[head], atol=1e-4)
    assert heads.seconds() > 0
