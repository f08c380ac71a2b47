"""Read what a GGUF file says about itself, without loading it and without trusting it.

Every count and length is checked against the bytes that are there before anything is allocated, so
a hostile header costs milliseconds. Layout and limits follow llama.cpp's ggml/src/gguf.cpp.
"""

from __future__ import annotations

import mmap
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from model_registry.ggml_types import BLOCKS
from model_registry.layout import Layout, LayoutSum

Scalar = bool | int | float | str

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")
_NUMBERS = {
    0: ("uint8", struct.Struct("<B")),
    1: ("int8", struct.Struct("<b")),
    2: ("uint16", struct.Struct("<H")),
    3: ("int16", struct.Struct("<h")),
    4: ("uint32", _U32),
    5: ("int32", struct.Struct("<i")),
    6: ("float32", struct.Struct("<f")),
    7: ("bool", struct.Struct("<?")),
    10: ("uint64", _U64),
    11: ("int64", _I64),
    12: ("float64", struct.Struct("<d")),
}
_STRING = 8
_ARRAY = 9

# Far above any real model, and low enough that walking to the limit takes well under a second.
_MOST_KEYS = 4096
_MOST_TENSORS = 65_536
_MOST_STRINGS = 1 << 21
_LONGEST_NAME = 65_535
_LONGEST_TEXT = 1 << 20
_MOST_TEXT = 1 << 24
_LONGEST_KEPT_ARRAY = 64
_MOST_DIMENSIONS = 4


class GGUFError(ValueError):
    """A file that is no readable GGUF; the message is a sentence without the file's name."""


class GGUFTruncatedError(GGUFError):
    """The file ends before its header does, or a length in the header is damaged."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array in the metadata; a text of more than 1 MiB counts as an array of bytes."""

    kind: str
    """Type of the elements: `string`, `int32`, `bool`, ..., or `byte` for a long text."""
    length: int
    values: tuple[Scalar, ...] | None
    """The elements, or None where they are more than 64 and stay in the file."""
    start: int = field(default=0, compare=False, repr=False)
    """Where the first element begins in the file."""


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """What stands before the weights. The properties are None where the file does not say."""

    version: int
    metadata: Mapping[str, Scalar | Array]
    tensor_count: int
    """Tensors in this file; 0 for a vocabulary alone."""
    size: int
    """Bytes of the file."""
    data_end: int | None
    """Bytes the file must have for all its tensors; None if a tensor's type is not known."""
    layout: Layout = field(default_factory=Layout)
    """Bytes by layer; tensors of an unknown type count as nothing."""

    @property
    def architecture(self) -> str | None:
        """llama.cpp's name of the kind of network, e.g. `llama`."""
        return self._text("general.architecture")

    @property
    def name(self) -> str | None:
        """What the publisher calls the model."""
        return self._text("general.name")

    @property
    def kind(self) -> str | None:
        """`model`, `adapter`, `mmproj`, ..."""
        return self._text("general.type")

    @property
    def context_length(self) -> int | None:
        """Tokens of context the model was trained for."""
        return self.number("context_length")

    def number(self, key: str) -> int | None:
        """A whole number among the architecture's own keys, e.g. `block_count`."""
        return self._number(f"{self.architecture}.{key}")

    @property
    def token_count(self) -> int | None:
        """Size of the vocabulary."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, Array) else None

    @property
    def split_count(self) -> int:
        """Files the model is split over; 1 for a whole one."""
        return max(self._number("split.count") or 1, 1)

    @property
    def split_no(self) -> int:
        """Which of them this is, from 0."""
        return self._number("split.no") or 0

    def _text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def _number(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_header(path: Path) -> GGUFHeader:
    """The header of a GGUF file. Raises GGUFError, and OSError as `open` does."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise GGUFError("It is not a regular file.")
    with path.open("rb") as file:
        if not file.read(1):
            raise GGUFTruncatedError("It is empty.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return parse_header(data)


def parse_header(data: bytes | mmap.mmap, sums: LayoutSum | None = None) -> GGUFHeader:
    """The header at the start of `data`, the whole content of a file; `sums` is told each tensor.

    Raises GGUFError.
    """
    reader = _Reader(data)
    if data[:4] != b"GGUF":
        raise GGUFError("It does not start with the letters GGUF.")
    reader.at = 4
    version = _check_version(reader.number(_U32))
    tensor_count = reader.number(_U64)
    key_count = reader.number(_U64)
    if tensor_count > _MOST_TENSORS or key_count > _MOST_KEYS:
        raise GGUFError(
            f"Its header is damaged: it claims {key_count} keys and {tensor_count} tensors."
        )
    metadata: dict[str, Scalar | Array] = {}
    for _ in range(key_count):
        key = reader.name()
        if not key or key in metadata:
            raise GGUFError(f"Its header is damaged: the key {key[:80]!r} is empty or there twice.")
        metadata[key] = reader.value(key, reader.number(_U32))
    sums = sums or LayoutSum()
    data_end = _data_end(reader, tensor_count, _alignment(metadata), sums)
    kept = MappingProxyType(metadata)
    return GGUFHeader(version, kept, tensor_count, len(data), data_end, sums.layout)


def _check_version(version: int) -> int:
    if version in (2, 3):
        return version
    if version & 0xFFFF == 0 and version:
        raise GGUFError("It was written for big-endian machines, and this program cannot read it.")
    if version > 3:
        raise GGUFError(f"It is GGUF version {version}; this program reads versions 2 and 3.")
    raise GGUFError(f"It is GGUF version {version}, which llama.cpp no longer reads.")


def _alignment(metadata: Mapping[str, Scalar | Array]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise GGUFError("Its header is damaged: the alignment is not a power of two.")
    return alignment


def _data_end(reader: _Reader, tensor_count: int, alignment: int, sums: LayoutSum) -> int | None:
    """Walk the tensor table; where the last tensor ends, without the padding behind it."""
    total: int | None = 0
    ends = 0
    for _ in range(tensor_count):
        name, size, offset = reader.tensor()
        sums.add(name, size or 0)
        if total is None or size is None:
            total = None
            continue
        if offset != total:
            raise GGUFError(
                f"Its tensor table is damaged: {name[:80]!r} is not where it should be."
            )
        ends = offset + size
        total = _padded(ends, alignment)
    if total is None:
        return None
    return _padded(reader.at, alignment) + ends if tensor_count else reader.at


def _padded(length: int, alignment: int) -> int:
    return (length + alignment - 1) // alignment * alignment


class _Reader:
    """A position in the file that never moves past its end."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.at = 0
        self._data = data
        self._size = len(data)
        self._strings_left = _MOST_STRINGS
        self._text_left = _MOST_TEXT

    def number(self, form: struct.Struct) -> int:
        start = self._skip(form.size)
        number: int = form.unpack_from(self._data, start)[0]
        return number

    def name(self) -> str:
        """A key or the name of a tensor."""
        length = self.number(_U64)
        if length > _LONGEST_NAME:
            raise GGUFError(f"Its header is damaged: a name of {length} bytes.")
        return self._text(length)

    def value(self, key: str, kind: int) -> Scalar | Array:
        """The value of a key, whose type stands before it."""
        if kind == _ARRAY:
            return self._array(key)
        if kind == _STRING:
            return self._string()
        _, form = _number_type(key, kind)
        scalar: Scalar = form.unpack_from(self._data, self._skip(form.size))[0]
        return scalar

    def tensor(self) -> tuple[str, int | None, int]:
        """Name, bytes (None for an unknown type) and offset of one row of the tensor table."""
        name = self.name()
        dimensions = self.number(_U32)
        if dimensions > _MOST_DIMENSIONS:
            raise GGUFError(
                f"Its tensor table is damaged: {name[:80]!r} in {dimensions} dimensions."
            )
        shape = [self.number(_I64) for _ in range(dimensions)]
        block, block_bytes = BLOCKS.get(self.number(_U32), (0, 0))
        offset = self.number(_U64)
        elements = 1
        for length in shape:
            elements *= length
        if any(length < 0 for length in shape) or elements >= 1 << 63:
            raise GGUFError(f"Its tensor table is damaged: {name[:80]!r} has the shape {shape}.")
        if not block:
            return name, None, offset
        if (shape[0] if shape else 1) % block:
            raise GGUFError(f"Its tensor table is damaged: {name[:80]!r} has no whole blocks.")
        return name, elements // block * block_bytes, offset

    def _array(self, key: str) -> Array:
        kind = self.number(_U32)
        length = self.number(_U64)
        keep, first = length <= _LONGEST_KEPT_ARRAY, self.at
        if kind == _STRING:
            if not keep:
                self._skip_strings(length)
                return Array("string", length, None, first)
            texts = tuple(self._text(self.number(_U64)) for _ in range(length))
            return Array("string", length, texts, first)
        name, form = _number_type(key, kind)
        start = self._skip(form.size * length)
        if not keep:
            return Array(name, length, None, start)
        content = self._data[start : self.at]
        return Array(name, length, tuple(row[0] for row in form.iter_unpack(content)), start)

    def _string(self) -> str | Array:
        length = self.number(_U64)
        if length > _LONGEST_TEXT:
            self._skip(length)
            return Array("byte", length, None)
        return self._text(length)

    def _text(self, length: int) -> str:
        start = self._skip(length)
        self._text_left -= length
        if self._text_left < 0:
            raise GGUFError("Its header is damaged: it holds more text than any model needs.")
        return bytes(self._data[start : self.at]).decode("utf-8", "backslashreplace")

    def _skip_strings(self, count: int) -> None:
        self._strings_left -= count
        if self._strings_left < 0:
            raise GGUFError(f"Its header is damaged: a list of {count} texts.")
        at, last, data, unpack = self.at, self._size - 8, self._data, _U64.unpack_from
        for _ in range(count):
            if at > last:
                raise _truncated()
            at += 8 + unpack(data, at)[0]
        if at > self._size:
            raise _truncated()
        self.at = at

    def _skip(self, length: int) -> int:
        """Move on by `length` bytes; returns where they start."""
        start = self.at
        if length > self._size - start:
            raise _truncated()
        self.at = start + length
        return start


def _number_type(key: str, kind: int) -> tuple[str, struct.Struct]:
    if kind not in _NUMBERS:
        raise GGUFError(f"Its header is damaged: the key {key[:80]!r} has the unknown type {kind}.")
    return _NUMBERS[kind]


def _truncated() -> GGUFTruncatedError:
    return GGUFTruncatedError("It ends in the middle of its header.")
