"""Vocabularies read off headers: what llama.cpp would see, and pairs judged without loading."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model_registry import vocabulary
from model_registry.gguf import GGUFError, parse_header
from model_registry.pairing import Vocabulary
from tests import gguf_files
from tests.gguf_files import Changes, Vocab, byte_vocab, random_llama, smollm2_path, smollm2_vocab


def read(path: Path) -> Vocabulary:
    return vocabulary.read(path)[1]


def written(
    tmp_path: Path, name: str = "m", *, vocab: Vocab | None = None, changes: Changes | None = None
) -> Path:
    return random_llama(tmp_path / f"{name}.gguf", vocab=vocab or byte_vocab(), changes=changes)


def test_the_real_model() -> None:
    found = read(smollm2_path())
    assert (found.type, found.size, found.bos, found.eos) == ("BPE", 49152, 1, 2)
    assert (found.add_bos, found.add_eos) == (False, False)
    expected = [text.encode() for text in smollm2_vocab().tokens]
    assert not callable(found.text)
    assert list(found.text) == expected
    assert found.text[5:8] == expected[5:8]
    with pytest.raises(IndexError):
        found.text[49152]
    with pytest.raises(IndexError):
        found.text[-1]


def test_what_llama_cpp_sees(tmp_path: Path) -> None:
    """Every field against the runtime's own answer, also where the file leaves it out."""
    pytest.importorskip("llama_cpp")
    from edgespec.llama.weights import Weights

    left_out = {
        "tokenizer.ggml.bos_token_id": None,
        "tokenizer.ggml.eos_token_id": None,
        "tokenizer.ggml.add_bos_token": None,
        "tokenizer.ggml.add_eos_token": None,
    }
    bpe = smollm2_vocab()
    llama3 = replace(bpe, metadata={**bpe.metadata, "tokenizer.ggml.pre": "llama-bpe"})
    wrong = {"tokenizer.ggml.bos_token_id": 999_999}
    files = [
        written(tmp_path, "spm"),
        written(tmp_path, "spm-out", changes=left_out),
        written(tmp_path, "bpe-out", vocab=bpe, changes=left_out),
        written(tmp_path, "llama3-out", vocab=llama3, changes=left_out),
        written(tmp_path, "wrong", changes=wrong),
        written(tmp_path, "empty", vocab=byte_vocab().renamed(270, "")),
    ]
    for path in files:
        ours = read(path)
        weights = Weights(path)
        theirs = weights.tokenizer.vocabulary()
        weights.close()
        for field in ("type", "size", "add_bos", "bos", "add_eos", "eos"):
            assert getattr(ours, field) == getattr(theirs, field), (path.name, field)
    assert not callable(ours.text)
    assert ours.text[270] == b"[EMPTY_270]"


def test_a_part_of_the_file_is_enough(tmp_path: Path) -> None:
    path = written(tmp_path)
    data = path.read_bytes()
    end = parse_header(data).data_end
    assert end is not None
    head = data[: 40_000 if len(data) > 40_000 else len(data) // 2]
    header = parse_header(head)
    whole, part = read(path), vocabulary.of(header, head)
    assert not callable(whole.text)
    assert not callable(part.text)
    assert list(part.text) == list(whole.text)


def test_no_vocabulary(tmp_path: Path) -> None:
    path = written(tmp_path, changes={"tokenizer.ggml.tokens": None})
    with pytest.raises(GGUFError, match="no vocabulary"):
        read(path)


def rule(tmp_path: Path, target: Vocab, draft: Vocab, changes: Changes | None = None) -> str:
    one = vocabulary.read(written(tmp_path, "target", vocab=target))
    two = vocabulary.read(written(tmp_path, "draft", vocab=draft, changes=changes))
    return vocabulary.check_pair(one, two).rule


@pytest.mark.parametrize(
    ("extra", "expected"), [(1, "compatible"), (128, "compatible"), (129, "size")]
)
def test_padding(tmp_path: Path, extra: int, expected: str) -> None:
    assert rule(tmp_path, byte_vocab(), byte_vocab().padded(extra)) == expected
    assert rule(tmp_path, byte_vocab().padded(extra), byte_vocab()) == expected


def test_what_does_not_fit(tmp_path: Path) -> None:
    plain = byte_vocab()
    assert rule(tmp_path, plain, plain.swapped(100, 101)) == "text"
    assert rule(tmp_path, plain, plain.renamed(4, "x")) == "compatible"
    assert rule(tmp_path, plain, plain.renamed(5, "x")) == "text"
    other = {"tokenizer.ggml.add_bos_token": False}
    assert rule(tmp_path, plain, plain, changes=other) == "bos"
    assert rule(tmp_path, plain, gguf_files.smollm2_vocab()) == "type"


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_running_state_is_no_hindrance(role: str) -> None:
    header, vocab = vocabulary.read(smollm2_path())
    stateful = replace(header, metadata={**header.metadata, "general.architecture": "qwen35"})
    assert vocabulary.rolls_back(header)
    assert not vocabulary.rolls_back(stateful)
    heads = [(header, vocab), (header, vocab)]
    heads[0 if role == "target" else 1] = (stateful, vocab)
    assert vocabulary.check_pair(*heads).ok
