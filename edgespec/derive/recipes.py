"""What a derived draft is made like: the bits, and the layers that are left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgespec.errors import UsageError
from edgespec.llama.quantise import FILE_TYPES, NEED_IMATRIX
from model_registry.gguf import Array, GGUFHeader
from model_registry.shape import Shape

COPY = "copy"
"""Stands for the target's own bits."""

TRIED = ("Q8_0", "Q4_0", "Q4_K_M", "Q3_K_M", "Q2_K")
"""Bits that are tried when none are named."""

_ALIASES = {"Q5_K": "Q5_K_M", "Q4_K": "Q4_K_M", "Q3_K": "Q3_K_M"}
_RANGE = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
_MOST_GROUPS = 32


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make a file of a target."""

    bits: str | None
    """llama.cpp's name of a file type; None for the tensors as they are."""
    drop: tuple[int, ...] = ()
    """Layers that are left out, ascending, from 0."""

    @property
    def file_type(self) -> int | None:
        """Of llama.cpp."""
        return FILE_TYPES[self.bits] if self.bits else None

    @property
    def kind(self) -> str:
        """`bits`, `layers`, `both`, or `copy`."""
        if self.drop:
            return "both" if self.bits else "layers"
        return "bits" if self.bits else "copy"

    @property
    def options(self) -> str:
        """What makes it again: `--recipe q4_0 --drop 9-15`."""
        drop = f" --drop {ranges(self.drop)}" if self.drop else ""
        return f"--recipe {(self.bits or COPY).lower()}{drop}"

    def words(self, layers: int) -> str:
        """For people; the target has so many layers."""
        bits = self.bits or "own bits"
        if not self.drop:
            return bits
        return f"{bits}, {layers - len(self.drop)} of {layers} layers"


def parse_bits(text: str) -> tuple[str | None, ...]:
    """Names between commas; None for `copy`. Raises UsageError."""
    found: list[str | None] = []
    for part in text.split(","):
        name = part.strip().upper().replace("-", "_")
        name = _ALIASES.get(name, name)
        if name in NEED_IMATRIX:
            raise UsageError(
                f"{name} needs an importance matrix, which is not made here.",
                "Q2_K, Q3_K_S and IQ3_S are the smallest that need none.",
            )
        if name not in FILE_TYPES and name != COPY.upper():
            known = ", ".join([*FILE_TYPES, COPY]).lower()
            raise UsageError(f"There are no bits called {part.strip()!r}.", f"There are {known}.")
        found.append(None if name == COPY.upper() else name)
    return tuple(dict.fromkeys(found))


def parse_layers(text: str) -> tuple[int, ...]:
    """Numbers and ranges between commas, `9-15,20`, as a sorted tuple. Raises UsageError."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first = int(match[1]) if match else 0
        last = int(match[2] or match[1]) if match else -1
        if last < first:
            raise UsageError(f"{part.strip()!r} names no layers.", "Write them like 9-15,20.")
        found |= set(range(first, last + 1))
    return tuple(sorted(found))


def ranges(layers: Iterable[int]) -> str:
    """Ascending numbers, neighbours joined: `9-15,20`."""
    parts: list[list[int]] = []
    for layer in layers:
        if parts and layer == parts[-1][-1] + 1:
            parts[-1].append(layer)
        else:
            parts.append([layer])
    return ",".join(str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in parts)


def why_whole(header: GGUFHeader) -> str:
    """Why no layer of a model can be left out, to follow a colon; empty if they can.

    llama.cpp moves the layers behind up, so nothing in the file may go by a layer's number
    (`remap_layer` in src/llama-quant.cpp renames tensors only).
    """
    name, count = header.architecture, layer_count(header)
    for key, value in header.metadata.items():
        own = key.startswith(f"{name}.")
        if own and isinstance(value, Array) and value.length == count > 1:
            return "its layers are described one by one"
    if header.metadata.get(f"{name}.attention.sliding_window"):
        return "its layers take turns in how far they look back"
    if header.metadata.get(f"{name}.full_attention_interval"):
        return "its layers take turns in how they look back"
    if header.metadata.get(f"{name}.nextn_predict_layers"):
        return "its last layers predict further tokens"
    if count < 3:
        return f"it has only {count}"
    return ""


def layer_count(header: GGUFHeader) -> int:
    """How many layers a model has by its header."""
    return header.number("block_count") or 0


def removable(header: GGUFHeader, *, one_by_one: bool = False) -> list[tuple[int, ...]]:
    """Layers that may be left out, in groups of neighbours: not the first ones and not the last.

    The first dense layers of a mixture of experts are of another kind. There are 32 groups at most,
    since each is measured, unless layers are to go `one_by_one`.
    """
    count = layer_count(header)
    first = max(1, header.number("leading_dense_block_count") or 0)
    inner = range(first, count - 1)
    unit = 1 if one_by_one else max(1, -(-len(inner) // _MOST_GROUPS))
    return [tuple(inner[i : i + unit]) for i in range(0, len(inner), unit)]


def check_drop(header: GGUFHeader, drop: Sequence[int]) -> None:
    """Raise UsageError where these layers cannot be left out."""
    count = layer_count(header)
    reason = why_whole(header)
    if drop and reason:
        raise UsageError(f"No layer of this model can be left out: {reason}.", "Leave --drop out.")
    if drop and max(drop) >= count:
        raise UsageError(f"There is no layer {max(drop)}.", f"They are 0 to {count - 1}.")
    if len(set(drop)) >= count > 0:
        raise UsageError("All layers would be left out.", "Name fewer with --drop.")


def check_keep(header: GGUFHeader, keep: int) -> None:
    """Raise UsageError where no draft with so many layers can be searched for."""
    count, reason = layer_count(header), why_whole(header)
    if reason:
        raise UsageError(
            f"No layer of this model can be left out: {reason}.", "Leave --layers out."
        )
    least = count - len(removable(header, one_by_one=True))
    if not least <= keep < count:
        raise UsageError(
            f"{keep} layers cannot be kept of {count}.", f"Keep {least} to {count - 1}, or all."
        )


def bytes_read(shape: Shape, drop: Iterable[int] = ()) -> int:
    """Bytes of weights that one token takes, without the layers in `drop`.

    Of a matrix of embeddings one row is read, unless it is the output matrix too.
    """
    left_out = sum(shape.layers[layer] for layer in set(drop))
    return sum(shape.layers) - left_out + shape.output + shape.copy
