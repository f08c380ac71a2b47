"""Writing an EAGLE-3 head as the GGUF file that llama.cpp reads (src/models/eagle3.cpp).

It borrows the target's embeddings, has its own output for a part of the vocabulary, and carries the
target's tokenizer. Needs the extra `train`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from numpy.typing import NDArray

from edgespec.errors import EdgeSpecError

_NORMS = {"enc.output_norm", "output_norm"}
_WHOLE = {"fc", "output", *_NORMS}
"""Tensors that belong to no layer."""


@dataclass(frozen=True, slots=True)
class HeadFile:
    """What a file is made of."""

    weights: Mapping[str, NDArray[np.float32]]
    """As `edgespec.train.eagle3` names them; matrices have the shape [outputs, inputs]."""
    vocabulary: NDArray[np.integer]
    """The target's ids of the rows of `output`."""
    layers: Sequence[int]
    """The three of the target whose inputs are read."""
    heads: int
    """Of its attention."""
    epsilon: float
    base: float
    """Of the rotary positions."""
    context: int
    """Tokens of the target's."""
    name: str
    about: Mapping[str, str]
    """Keys of its own for the metadata, with texts."""


def write(path: Path, target: Path, head: HeadFile) -> None:
    """Write a head for the model in `target`, whole or not at all. Raises EdgeSpecError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        writer = GGUFWriter(partial, "eagle3")
        _add_facts(writer, head)
        for key, value in head.about.items():
            writer.add_string(key, value)
        vocab_size = _copy_tokenizer(writer, target)
        writer.add_uint32("eagle3.vocab_size", vocab_size)
        for name, one in head.weights.items():
            named = f"{name}.weight" if name in _WHOLE else f"blk.0.{name}.weight"
            kind = np.float32 if one.ndim == 1 else np.float16
            writer.add_tensor(named, np.ascontiguousarray(one, kind))
        writer.add_tensor("d2t", np.ascontiguousarray(head.vocabulary, np.int64))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        os.replace(partial, path)
    except OSError as error:
        raise EdgeSpecError(
            f"{path} cannot be written: {error.strerror or error}.", "Name a file elsewhere."
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _add_facts(writer: GGUFWriter, head: HeadFile) -> None:
    width = len(head.weights["output_norm"])
    writer.add_string("general.type", "model")
    writer.add_string("general.name", head.name)
    for key, number in {
        "block_count": 1,
        "context_length": head.context,
        "embedding_length": width,
        "feed_forward_length": len(head.weights["ffn_up"]),
        "attention.head_count": head.heads,
        "attention.head_count_kv": head.heads,
        "rope.dimension_count": width // head.heads,
        "target_hidden_size": width,
    }.items():
        writer.add_uint32(f"eagle3.{key}", number)
    writer.add_float32("eagle3.attention.layer_norm_rms_epsilon", head.epsilon)
    writer.add_float32("eagle3.rope.freq_base", head.base)
    writer.add_bool("eagle3.norm_before_residual", True)
    writer.add_bool("eagle3.norm_before_fc", True)
    layers = [int(layer) for layer in head.layers]
    writer.add_key_value("eagle3.target_layers", layers, GGUFValueType.ARRAY, GGUFValueType.INT32)


def _copy_tokenizer(writer: GGUFWriter, target: Path) -> int:
    """Returns how many tokens it has."""
    count = 0
    for key, field in GGUFReader(target).fields.items():
        if key.startswith("tokenizer."):
            inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            value = field.contents()
            writer.add_key_value(key, value, field.types[0], inner)
            if key == "tokenizer.ggml.tokens":
                count = len(value)
    return count
