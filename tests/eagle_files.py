"""EAGLE-3 heads of random weights, and what they compute, written down in numpy.

Keys, tensors and arithmetic are those of llama.cpp's src/models/eagle3.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from gguf import GGUFValueType, GGUFWriter
from numpy.typing import NDArray

from tests.gguf_files import Changes, Vocab, _add

Floats = NDArray[np.float32]
_EPSILON, _BASE = 1e-5, 10_000.0


@dataclass(frozen=True)
class Head:
    """The weights of a head, matrices as [rows, columns]."""

    tensors: Mapping[str, Floats]
    heads: int
    kv_heads: int
    layers: tuple[int, ...]
    """Of the target, whose inputs it reads."""
    hidden: int
    """Width of the target's states."""
    d2t: NDArray[np.int64] | None = None
    """By id of the draft's vocabulary that of the target's; None where they are the same."""
    norm_before_residual: bool = True
    norm_before_fc: bool = True
    changes: Changes = field(default_factory=dict)

    @property
    def width(self) -> int:
        return len(self.tensors["output_norm.weight"])

    def write(self, path: Path, vocab: Vocab) -> Path:
        """A GGUF file of the head, with the target's vocabulary."""
        writer = GGUFWriter(path, "eagle3")
        metadata = {
            "general.type": "model",
            "general.name": "Random EAGLE-3",
            "eagle3.block_count": 1,
            "eagle3.context_length": 2048,
            "eagle3.embedding_length": self.width,
            "eagle3.feed_forward_length": len(self.tensors["blk.0.ffn_up.weight"]),
            "eagle3.attention.head_count": self.heads,
            "eagle3.attention.head_count_kv": self.kv_heads,
            "eagle3.attention.layer_norm_rms_epsilon": _EPSILON,
            "eagle3.rope.freq_base": _BASE,
            "eagle3.rope.dimension_count": self.width // self.heads,
            "eagle3.vocab_size": len(vocab.tokens),
            "eagle3.target_hidden_size": self.hidden,
            "eagle3.norm_before_residual": self.norm_before_residual,
            "eagle3.norm_before_fc": self.norm_before_fc,
            **vocab.metadata,
            "tokenizer.ggml.tokens": vocab.tokens,
            "tokenizer.ggml.token_type": vocab.types,
            **self.changes,
        }
        _add(writer, metadata)
        if "eagle3.target_layers" not in self.changes:
            layers = [int(layer) for layer in self.layers]
            writer.add_key_value(
                "eagle3.target_layers", layers, GGUFValueType.ARRAY, GGUFValueType.INT32
            )
        for name, tensor in self.tensors.items():
            writer.add_tensor(name, tensor)
        if self.d2t is not None:
            writer.add_tensor("d2t", self.d2t)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def encode(self, states: Floats) -> Floats:
        """float32[n, width] features of float32[n, 3 * hidden] states."""
        if self.norm_before_fc:
            states = _norm(states, self.tensors["enc.output_norm.weight"])
        return states @ self.tensors["fc.weight"].T

    def decode(self, embedded: Floats, features: Floats) -> tuple[Floats, Floats]:
        """Logits [n, draft's vocabulary] and own states [n, width] of a text of n pairs."""

        def at(name: str) -> Floats:
            return self.tensors[f"blk.0.{name}.weight"]

        count, size = len(features), self.width // self.heads
        normed = _norm(features, at("attn_norm_2"))
        both = np.concatenate([_norm(embedded, at("attn_norm")), normed], axis=1)
        places = np.arange(count)
        queries = _turned((both @ at("attn_q").T).reshape(count, self.heads, size), places)
        keys = _turned((both @ at("attn_k").T).reshape(count, self.kv_heads, size), places)
        values = (both @ at("attn_v").T).reshape(count, self.kv_heads, size)
        keys, values = (np.repeat(x, self.heads // self.kv_heads, axis=1) for x in (keys, values))
        scores = np.einsum("ihd,jhd->hij", queries, keys) * size**-0.5
        scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", weights, values).reshape(count, -1)
        state = mixed @ at("attn_output").T
        state = state + (normed if self.norm_before_residual else features)
        inner = _norm(state, at("ffn_norm"))
        gate, up = inner @ at("ffn_gate").T, inner @ at("ffn_up").T
        state = state + (gate / (1 + np.exp(-gate)) * up) @ at("ffn_down").T
        logits = _norm(state, self.tensors["output_norm.weight"]) @ self.tensors["output.weight"].T
        return logits, state


def random_head(
    hidden: int,
    vocab_size: int,
    layers: Sequence[int],
    *,
    seed: int = 0,
    width: int | None = None,
    heads: int = 4,
    kv_heads: int = 2,
    inner: int | None = None,
    draft_vocab: int | None = None,
    spread: float = 6.0,
    own_embeddings: bool = False,
    norm_before_residual: bool = True,
    norm_before_fc: bool = True,
    changes: Changes | None = None,
) -> Head:
    """Guesses wrong. `hidden` is the target's width, and the head's where none is given.

    `draft_vocab` of the ids, chosen at random, are what it can guess; None for all. `spread` is the
    standard deviation of the logits.
    """
    rng = np.random.default_rng(seed)
    width = width or hidden
    inner = inner or 2 * width
    kv_width = width // heads * kv_heads

    def matrix(rows: int, columns: int) -> Floats:
        found: Floats = rng.standard_normal((rows, columns), np.float32) * np.float32(columns**-0.5)
        return found

    def vector(size: int) -> Floats:
        return rng.uniform(0.5, 1.5, size).astype(np.float32)

    tensors = {
        "fc.weight": matrix(width, len(layers) * hidden),
        "output_norm.weight": vector(width) * np.float32(spread),
        "output.weight": matrix(draft_vocab or vocab_size, width),
        "blk.0.attn_norm.weight": vector(width),
        "blk.0.attn_norm_2.weight": vector(width),
        "blk.0.attn_q.weight": matrix(width, 2 * width),
        "blk.0.attn_k.weight": matrix(kv_width, 2 * width),
        "blk.0.attn_v.weight": matrix(kv_width, 2 * width),
        "blk.0.attn_output.weight": matrix(width, width),
        "blk.0.ffn_norm.weight": vector(width),
        "blk.0.ffn_gate.weight": matrix(inner, width),
        "blk.0.ffn_up.weight": matrix(inner, width),
        "blk.0.ffn_down.weight": matrix(width, inner),
    }
    if norm_before_fc:
        tensors["enc.output_norm.weight"] = vector(len(layers) * hidden)
    if own_embeddings:
        tensors["token_embd.weight"] = matrix(vocab_size, width)
    d2t = None
    if draft_vocab:
        d2t = np.sort(rng.permutation(vocab_size)[:draft_vocab]).astype(np.int64)
    return Head(
        tensors,
        heads,
        kv_heads,
        tuple(layers),
        hidden,
        d2t,
        norm_before_residual,
        norm_before_fc,
        changes or {},
    )


def _norm(rows: Floats, weight: Floats) -> Floats:
    found: Floats = rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + _EPSILON) * weight
    return found


def _turned(rows: Floats, places: NDArray[np.int_]) -> Floats:
    """Rotary position on neighbouring pairs (llama.cpp's type NORM): [n, heads, size]."""
    size = rows.shape[-1]
    angles = places[:, None] * _BASE ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    even, odd = rows[..., ::2], rows[..., 1::2]
    turned = np.empty_like(rows)
    turned[..., ::2] = even * cos - odd * sin
    turned[..., 1::2] = even * sin + odd * cos
    return turned
