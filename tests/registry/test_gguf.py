"""The header reader: right about good files, quick and plain about hostile ones."""

from __future__ import annotations

import ctypes
import random
import struct
import tracemalloc
from pathlib import Path

import pytest
from llama_cpp._ggml import libggml

from model_registry.ggml_types import BLOCKS
from model_registry.gguf import (
    Array,
    GGUFError,
    GGUFTruncatedError,
    parse_header,
    read_header,
)
from tests import gguf_files

HEADER_BYTES = 1_766_560
"""A little less than SmolLM2's header, tensor table included."""


def u32(number: int) -> bytes:
    return struct.pack("<I", number)


def u64(number: int) -> bytes:
    return struct.pack("<Q", number)


def text(value: str) -> bytes:
    return u64(len(value.encode())) + value.encode()


def start(keys: int, tensors: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + u32(version) + u64(tensors) + u64(keys)


def tensor(name: str, shape: list[int], kind: int, offset: int) -> bytes:
    dimensions = b"".join(struct.pack("<q", length) for length in shape)
    return text(name) + u32(len(shape)) + dimensions + u32(kind) + u64(offset)


@pytest.fixture(scope="module")
def smollm2_start() -> bytes:
    """The first 2 MiB of the real file: its whole header and some weights."""
    with gguf_files.smollm2_path().open("rb") as file:
        return file.read(1 << 21)


def test_the_real_file() -> None:
    path = gguf_files.smollm2_path()
    header = read_header(path)
    assert (header.version, header.architecture, header.kind) == (3, "llama", "model")
    assert header.name == "Smollm2 135M 8k Lc100K Mix1 Ep2"
    assert (header.context_length, header.token_count, header.tensor_count) == (8192, 49152, 272)
    assert (header.split_count, header.split_no) == (1, 0)
    assert header.size == header.data_end == path.stat().st_size
    assert header.metadata["general.languages"] == Array("string", 1, ("en",))
    assert header.metadata["tokenizer.ggml.merges"] == Array("string", 48900, None)
    assert header.metadata["tokenizer.ggml.token_type"] == Array("int32", 49152, None)
    assert header.metadata["tokenizer.ggml.add_bos_token"] is False


def test_what_a_writer_wrote_is_read_back(tmp_path: Path) -> None:
    changes: dict[str, gguf_files.Value | None] = {
        "general.name": "Ünï 🎉",
        "x.list": [3, 1, 2],
        "x.kept": [7] * 64,
        "x.long": [7] * 65,
        "x.real": 0.5,
        "x.text": "a" * (1 << 20) + "b",
    }
    path = gguf_files.foreign_vocab(tmp_path / "m.gguf", changes=changes)
    header = read_header(path)
    assert header.name == "Ünï 🎉"
    assert header.metadata["x.list"] == Array("int32", 3, (3, 1, 2))
    assert header.metadata["x.kept"] == Array("int32", 64, (7,) * 64)
    assert header.metadata["x.long"] == Array("int32", 65, None)
    assert header.metadata["x.real"] == 0.5
    assert header.metadata["x.text"] == Array("byte", (1 << 20) + 1, None)
    assert header.token_count == len(gguf_files.byte_vocab().tokens)


def test_a_split_model_says_so(tmp_path: Path) -> None:
    headers = [
        read_header(path)
        for path in gguf_files.split_llama(tmp_path, "m", vocab=gguf_files.byte_vocab())
    ]
    assert [(header.split_no, header.split_count) for header in headers] == [(0, 2), (1, 2)]


def test_all_block_sizes_are_ggmls_own() -> None:
    libggml.ggml_type_size.restype = ctypes.c_size_t
    libggml.ggml_blck_size.restype = ctypes.c_int64
    assert {
        kind: (libggml.ggml_blck_size(kind), libggml.ggml_type_size(kind))
        for kind in range(max(BLOCKS) + 1)
        if libggml.ggml_blck_size(kind)
    } == BLOCKS


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [(0, [3, 5], 60), (2, [64, 3], 108), (14, [512], 420), (30, [7, 1, 2, 1], 28), (0, [], 4)],
)
def test_data_end_is_the_last_tensors_end(kind: int, shape: list[int], size: int) -> None:
    table = start(0, 2) + tensor("a", [1], 0, 0) + tensor("b", shape, kind, 32)
    data_start = -(-len(table) // 32) * 32
    header = parse_header(table)
    assert header.data_end == data_start + 32 + size
    assert header.size == len(table)


def test_the_alignment_of_the_file_counts() -> None:
    keys = text("general.alignment") + u32(4) + u32(4096)
    header = parse_header(start(1, 2) + keys + tensor("a", [1], 0, 0) + tensor("b", [1], 0, 4096))
    assert header.data_end == 4096 + 4096 + 4


def test_an_unknown_tensor_type_only_hides_the_size() -> None:
    table = start(0, 3)
    table += tensor("a", [1], 0, 0) + tensor("b", [1], 999, 32) + tensor("c", [1], 0, 77)
    assert parse_header(table).data_end is None


def test_values_of_the_wrong_type_are_as_good_as_missing() -> None:
    keys = text("general.architecture") + u32(4) + u32(7)
    keys += text("tokenizer.ggml.tokens") + u32(8) + text("none")
    keys += text("split.count") + u32(5) + struct.pack("<i", -3)
    keys += text("None.context_length") + u32(7) + b"\1"
    header = parse_header(start(4) + keys)
    assert header.architecture is None
    assert header.token_count is None
    assert header.split_count == 1
    assert header.context_length is None


ARRAY_KEY = text("k") + u32(9)
HOSTILE: dict[str, tuple[bytes, str]] = {
    "other letters": (b"GGML" + bytes(60), "letters GGUF"),
    "version 0": (start(0, version=0), "version 0, which"),
    "version 1": (start(0, version=1), "version 1, which"),
    "version 4": (start(0, version=4), "version 4; this"),
    "big endian": (start(0, version=0x03000000), "big-endian"),
    "keys": (start(1 << 63), "claims 9223372036854775808 keys"),
    "tensors": (start(0, 1 << 63), "9223372036854775808 tensors"),
    "long name": (start(1) + u64(1 << 40) + bytes(64), "a name of 1099511627776 bytes"),
    "empty key": (start(1) + text("") + u32(4) + u32(1), "'' is empty or there twice"),
    "twice": (start(2) + 2 * (text("k") + u32(4) + u32(1)), "'k' is empty or there twice"),
    "unknown type": (start(1) + text("k") + u32(13) + bytes(64), "unknown type 13"),
    "nested": (start(1) + ARRAY_KEY + u32(9) + u64(1) + bytes(64), "unknown type 9"),
    "numbers": (start(1) + ARRAY_KEY + u32(4) + u64(1 << 62), "the middle of its header"),
    "overflow": (start(1) + ARRAY_KEY + u32(12) + u64((1 << 64) - 1), "the middle of its header"),
    "texts": (start(1) + ARRAY_KEY + u32(8) + u64(1 << 62), "list of 4611686018427387904 texts"),
    "text": (start(1) + text("k") + u32(8) + u64((1 << 64) - 1), "the middle of its header"),
    "text in a list": (
        start(1) + ARRAY_KEY + u32(8) + u64(65) + u64((1 << 64) - 9) + bytes(600),
        "the middle of its header",
    ),
    "last text of a list": (
        start(1) + ARRAY_KEY + u32(8) + u64(65) + bytes(64 * 8) + u64(1),
        "the middle of its header",
    ),
    "alignment 0": (start(1) + text("general.alignment") + u32(4) + u32(0), "power of two"),
    "alignment 48": (start(1) + text("general.alignment") + u32(4) + u32(48), "power of two"),
    "alignment text": (start(1) + text("general.alignment") + u32(8) + text("32"), "power of two"),
    "dimensions": (start(0, 1) + text("t") + u32(1 << 31) + bytes(64), "2147483648 dimensions"),
    "negative": (start(0, 1) + tensor("t", [-1, -1], 0, 0), "shape [-1, -1]"),
    "huge tensor": (start(0, 1) + tensor("t", [1 << 40, 1 << 40], 0, 0), "shape [1099511627776"),
    "half a block": (start(0, 1) + tensor("t", [33], 2, 0), "no whole blocks"),
    "offset": (start(0, 1) + tensor("t", [1], 0, 32), "not where it should be"),
    "overlap": (
        start(0, 2) + tensor("t", [64], 0, 0) + tensor("u", [64], 0, 32),
        "'u' is not where it should be",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_get_a_sentence(name: str) -> None:
    content, sentence = HOSTILE[name]
    with pytest.raises(GGUFError) as caught:
        parse_header(content)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert len(str(caught.value)) < 300


def test_claims_are_checked_before_memory_is_taken() -> None:
    tracemalloc.start()
    for content, _ in HOSTILE.values():
        with pytest.raises(GGUFError):
            parse_header(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_header_that_is_all_text_is_refused() -> None:
    one = u32(8) + text("x" * (1 << 20))
    keys = b"".join(text(f"k{number}") + one for number in range(17))
    with pytest.raises(GGUFError, match="more text than any model needs"):
        parse_header(start(17) + keys)


def test_a_header_of_endless_lists_is_refused() -> None:
    empty_texts = u32(9) + u32(8) + u64(1 << 21) + bytes(8 << 21)
    keys = b"".join(text(f"k{number}") + empty_texts for number in range(2))
    with pytest.raises(GGUFError, match="a list of 2097152 texts"):
        parse_header(start(2) + keys)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    empty = tmp_path / "empty.gguf"
    empty.touch()
    with pytest.raises(GGUFTruncatedError):
        read_header(empty)
    with pytest.raises(GGUFError, match="regular file"):
        read_header(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "none.gguf")


def outcome(content: bytes) -> str:
    """Anything but a header or a GGUFError escapes and fails the test."""
    try:
        parse_header(content)
    except GGUFTruncatedError:
        return "cut"
    except GGUFError:
        return "damaged"
    return "read"


def test_a_header_cut_anywhere_is_called_cut(smollm2_start: bytes) -> None:
    assert parse_header(smollm2_start).data_end == gguf_files.smollm2_path().stat().st_size
    rng = random.Random(1)
    places = [*range(4, 400), *(rng.randrange(HEADER_BYTES) for _ in range(100))]
    places += range(HEADER_BYTES - 3000, HEADER_BYTES, 29)
    assert {outcome(smollm2_start[:place]) for place in places} == {"cut"}


def damaged_at_random(content: bytes, rng: random.Random, flips: int) -> bytes:
    changed = bytearray(content)
    for _ in range(flips):
        changed[rng.randrange(4, len(content))] ^= 1 << rng.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("flips", [1, 20])
def test_flipped_bits_never_break_the_reader(tmp_path: Path, flips: int) -> None:
    """On a small header with every kind of entry, so that most flips hit something that matters."""
    path = gguf_files.foreign_vocab(tmp_path / "m.gguf")
    with path.open("rb") as file:
        content = file.read(9000)
    assert outcome(content) == "read"
    rng = random.Random(flips)
    seen = {outcome(damaged_at_random(content, rng, flips)) for _ in range(1500)}
    assert seen <= {"cut", "damaged", "read"}
    assert {"cut", "damaged"} <= seen


def test_flipped_bits_in_the_real_header(smollm2_start: bytes) -> None:
    rng = random.Random(7)
    table = smollm2_start[:2000], smollm2_start[2000:HEADER_BYTES], smollm2_start[HEADER_BYTES:]
    for _ in range(40):
        first = damaged_at_random(table[0], rng, 3)
        assert outcome(first + table[1] + table[2]) in ("cut", "damaged", "read")
        middle = damaged_at_random(table[1], rng, 3)
        assert outcome(table[0] + middle + table[2]) in ("cut", "damaged", "read")


@pytest.mark.parametrize("filler", [b"\0", b"\1", b"\x08", b"\xff"])
def test_a_header_followed_by_one_byte_for_ever(filler: bytes) -> None:
    assert outcome(start(4096, 65_536) + filler * (1 << 22)) in ("cut", "damaged")
