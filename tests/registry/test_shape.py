"""What a header says of the memory that its model takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_registry.gguf import read_header
from model_registry.inspect import check_file, split_parts
from model_registry.shape import Shape, shape_of
from tests.gguf_files import Changes, byte_vocab, random_llama, smollm2_path, split_llama


def of(path: Path) -> Shape:
    header = read_header(path)
    headers = [header, *(read_header(part) for part in split_parts(path, header)[1:])]
    return shape_of(headers, [one.size for one in headers], path.stem)


def made(folder: Path, changes: Changes | None = None, architecture: str = "llama") -> Shape:
    path = folder / "model.gguf"
    random_llama(
        path, layers=2, width=64, vocab=byte_vocab(), changes=changes, architecture=architecture
    )
    return of(path)


def test_a_small_model(tmp_path: Path) -> None:
    shape = made(tmp_path)
    tokens = len(byte_vocab().tokens)
    layer = (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) * 4
    assert shape.layers == (layer, layer)
    assert (shape.input, shape.output) == (tokens * 64 * 4, 64 * 4)
    assert shape.copy == shape.input, "the output uses the embeddings"
    assert shape.weights == 2 * layer + tokens * 64 * 4 + 64 * 4
    assert shape.keys == shape.values == (64, 64)
    assert (shape.width, shape.inner, shape.vocabulary, shape.context) == (64, 128, tokens, 2048)
    assert not shape.quantisable, "heads of 16"
    assert not shape.windows
    assert shape.rolls_back


def test_the_real_model() -> None:
    shape = of(smollm2_path())
    assert len(shape.layers) == 30
    assert set(shape.keys) == set(shape.values) == {192}
    assert shape.quantisable
    assert shape.weights == pytest.approx(92.1 * 2**20, rel=0.001), "as llama.cpp logs it"


def test_a_model_in_parts_counts_all_of_them(tmp_path: Path) -> None:
    first, _ = split_llama(tmp_path, "parts", vocab=byte_vocab())
    whole = random_llama(tmp_path / "whole.gguf", vocab=byte_vocab())
    check_file(first)
    assert of(first).layers == of(whole).layers
    assert of(first).weights == of(whole).weights


def test_fewer_heads_for_keys(tmp_path: Path) -> None:
    shape = made(tmp_path, {"llama.attention.head_count_kv": 1, "llama.attention.key_length": 32})
    assert (shape.keys, shape.values) == ((32, 32), (16, 16))


def test_heads_by_layer(tmp_path: Path) -> None:
    shape = made(tmp_path, {"llama.attention.head_count_kv": [4, 0]})
    assert shape.keys == (64, 0)


def test_windows_count_in_full_with_the_longer_heads(tmp_path: Path) -> None:
    shape = made(
        tmp_path,
        {"llama.attention.sliding_window": 512, "llama.attention.key_length_swa": 48},
    )
    assert shape.windows
    assert shape.keys == (4 * 48, 4 * 48)


def test_latent_attention_keeps_no_values(tmp_path: Path) -> None:
    changes = {
        "llama.attention.head_count_kv": 1,
        "llama.attention.key_length": 576,
        "llama.attention.value_length": 512,
        "llama.attention.key_length_mla": 192,
    }
    shape = made(tmp_path, changes)
    assert (shape.keys, shape.values) == ((576, 576), (0, 0))


def test_experts_that_are_used_count(tmp_path: Path) -> None:
    changes = {"llama.expert_used_count": 8, "llama.expert_feed_forward_length": 96}
    assert made(tmp_path, changes).inner == 8 * (96 + 64 // 3)


def test_a_running_state(tmp_path: Path) -> None:
    changes = {
        "mamba.block_count": 2,
        "mamba.embedding_length": 64,
        "mamba.attention.head_count": 0,
        "mamba.ssm.inner_size": 128,
        "mamba.ssm.state_size": 16,
        "mamba.ssm.conv_kernel": 4,
    }
    shape = made(tmp_path, changes, architecture="mamba")
    assert shape.state == 4 * (3 * 128 + 128 * 16)
    assert shape.keys == (0, 0)
    assert not shape.rolls_back
    assert not shape.quantisable


def test_types_that_are_not_known_are_spread_over_the_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = made(tmp_path)
    monkeypatch.setattr("model_registry.gguf.BLOCKS", {})
    blind = of(tmp_path / "model.gguf")
    assert blind.input == blind.output == 0
    assert sum(blind.layers) >= known.weights
    assert sum(blind.layers) <= (tmp_path / "model.gguf").stat().st_size + 2


def test_snapshots_of_a_running_state_by_architecture(tmp_path: Path) -> None:
    numbers = {"block_count": 1, "embedding_length": 64, "attention.head_count": 4}
    for kind, expected in (("lfm2", True), ("qwen35", True), ("jamba", False)):
        shape = made(tmp_path, {f"{kind}.{key}": n for key, n in numbers.items()}, kind)
        assert (shape.rolls_back, shape.snapshots) == (False, expected)
