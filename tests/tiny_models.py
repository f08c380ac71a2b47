"""Models of every kind of memory with a few thousand random weights: read in milliseconds, greedy and mad.

What they say depends on all of their text, so that a memory which has lost or kept a token too many says
something else. Tensors and keys are those of llama.cpp's src/models/KIND.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from tests.gguf_files import Changes, Value, Vocab, byte_vocab

Experts = Literal["qwen35moe", "qwen3next", "glm4moe"]
Kind = Literal["llama", "gemma3", "mamba", "jamba", "lfm2", "qwen35", "nemotron_h"] | Experts
EXPERTS: tuple[Experts, ...] = get_args(Experts)
KINDS: tuple[Kind, ...] = ("llama", "gemma3", "mamba", "jamba", "lfm2", "qwen35", "nemotron_h")
"""One of each kind of memory: those of experts have none of their own."""

# What the layers are, in turns.
_LAYERS: dict[Kind, tuple[str, ...]] = {
    "llama": ("attention",),
    "gemma3": ("attention",),  # the odd ones look back on a window
    "mamba": ("mamba",),
    "jamba": ("mamba", "attention"),
    "lfm2": ("shortconv", "attention"),
    "qwen35": ("delta", "attention"),
    "nemotron_h": ("mamba2", "attention", "mlp"),
    "qwen35moe": ("delta", "attention"),
    "qwen3next": ("delta", "attention"),
    "glm4moe": ("attention",),
}
_DELTA = {"qwen35", "qwen35moe", "qwen3next"}

_WIDTH, _HIDDEN, _HEADS, _KV_HEADS = 32, 64, 4, 2
_INNER, _STATE, _RANK, _GROUPS, _KERNEL = 64, 8, 4, 2, 4
_DELTA_STATE, _DELTA_HEADS = 16, 2
_EXPERTS = 4

Tensors = Iterator[tuple[str, NDArray[np.float32]]]


def tiny_model(
    kind: Kind,
    path: Path,
    *,
    seed: int = 0,
    noise: float = 0.0,
    layers: int | None = None,
    window: int = 16,
    context: int = 2048,
    spread: float = 6.0,
    vocab: Vocab | None = None,
    changes: Changes | None = None,
    mtp: bool = False,
) -> Path:
    """Write a model of F32 weights to `path`, which is returned; the same arguments give the same bytes.

    `noise` disturbs the weights by this share of their size: a draft that is often right (0.05), seldom
    (0.5), or always, with 0. `layers` is one of each kind that the architecture has, or two. `window` is
    what gemma3 looks back on in its first layer, in tokens. `spread` is the standard deviation of the
    logits. `vocab` is `byte_vocab` by default: 281 tokens, one for each byte. `changes` are metadata keys
    to set, or to leave out where the value is None. With `mtp` there is a layer for the token after the
    next, too (qwen35 and those of experts).
    """
    vocab = vocab or byte_vocab()
    pattern = _LAYERS[kind]
    count = layers or max(2, len(pattern))
    what = [pattern[layer % len(pattern)] for layer in range(count)]
    what += ["mtp"] * mtp
    writer = GGUFWriter(path, kind)
    metadata = {
        **_shape(kind, what, window, context, len(vocab.tokens)),
        **vocab.metadata,
        "tokenizer.ggml.tokens": vocab.tokens,
        "tokenizer.ggml.token_type": vocab.types,
        **(changes or {}),
    }
    for key, value in metadata.items():
        if value is not None:
            _add(writer, key, value)
    for name, tensor in _tensors(kind, what, _Dice(seed, noise), len(vocab.tokens), spread):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Value) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, list(value))


def _shape(
    kind: Kind, what: list[str], window: int, context: int, tokens: int
) -> dict[str, Value | None]:
    heads, head = _HEADS, _WIDTH // _HEADS
    own: dict[str, Value] = {}
    if kind == "gemma3":
        own = {"attention.sliding_window": window, "attention.sliding_window_pattern": 2}
    if kind in {"mamba", "jamba", "nemotron_h"}:
        own = {
            "ssm.conv_kernel": _KERNEL,
            "ssm.inner_size": _INNER,
            "ssm.state_size": _STATE,
            "ssm.time_step_rank": _RANK,
            "attention.layer_norm_epsilon": 1e-5,
        }
    if kind == "nemotron_h":
        own["ssm.group_count"] = _GROUPS
    if kind == "lfm2":
        own = {"shortconv.l_cache": 3}
    if kind in _DELTA:
        heads, head = 2, 16
        own = {
            "ssm.conv_kernel": _KERNEL,
            "ssm.inner_size": _DELTA_HEADS * _DELTA_STATE,
            "ssm.state_size": _DELTA_STATE,
            "ssm.time_step_rank": _DELTA_HEADS,
            "ssm.group_count": 1,
            "full_attention_interval": 2,
            "rope.dimension_sections": [2, 3, 3, 0],
            "attention.key_length": head,
            "attention.value_length": head,
        }
    if kind in EXPERTS:
        own |= {
            "expert_count": _EXPERTS,
            "expert_used_count": 2,
            "expert_shared_count": 1,
            "expert_feed_forward_length": _HIDDEN,
            "expert_shared_feed_forward_length": _HIDDEN,
            "expert_weights_norm": True,
        }
    if "mtp" in what:
        own["nextn_predict_layers"] = 1
    shape: dict[str, Value] = {
        "block_count": len(what),
        "context_length": context,
        "embedding_length": _WIDTH,
        "feed_forward_length": [_HIDDEN if one == "mlp" else 0 for one in what]
        if kind == "nemotron_h"
        else _HIDDEN,
        "attention.head_count": 0 if kind == "mamba" else heads,
        "attention.head_count_kv": _kv_heads(kind, what),
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": head,
        "rope.freq_base": 10_000.0,
        "vocab_size": tokens,
        **own,
    }
    named: dict[str, Value | None] = {f"{kind}.{key}": value for key, value in shape.items()}
    return {"general.type": "model", "general.name": f"Tiny {kind}", **named}


def _kv_heads(kind: Kind, what: list[str]) -> Value:
    if kind in {"jamba", "lfm2", "nemotron_h"}:  # which layers are recurrent, these tell by it
        return [_KV_HEADS if one == "attention" else 0 for one in what]
    return 0 if kind == "mamba" else _KV_HEADS


class _Dice:
    """Random tensors, and the same ones disturbed."""

    def __init__(self, seed: int, noise: float) -> None:
        self._rng = np.random.default_rng(seed)
        self._other = np.random.default_rng([seed, 1])
        self._noise = noise

    def matrix(self, rows: int, columns: int, scale: float | None = None) -> NDArray[np.float32]:
        """Standard deviation `scale`, by default such that a product keeps the size of its vector."""
        clear = self._rng.standard_normal((rows, columns), dtype=np.float32)
        noise = self._other.standard_normal((rows, columns), dtype=np.float32)
        scale = columns**-0.5 if scale is None else scale
        found: NDArray[np.float32] = (clear + np.float32(self._noise) * noise) * np.float32(scale)
        return found

    def vector(self, size: int, scale: float, middle: float = 0.0) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.matrix(1, size, scale)[0] + np.float32(middle)
        return found


def _ones(*shape: int) -> NDArray[np.float32]:
    return np.ones(shape, dtype=np.float32)


def _tensors(kind: Kind, what: list[str], dice: _Dice, tokens: int, spread: float) -> Tensors:
    # The output shares the embeddings; small beside what the layers add, they do not repeat the last token.
    norm = "token_embd_norm" if kind == "lfm2" else "output_norm"
    yield "token_embd.weight", dice.matrix(tokens, _WIDTH, 0.1)
    yield f"{norm}.weight", _ones(_WIDTH) * np.float32(spread * _WIDTH**-0.5 / 0.1)
    for layer, one in enumerate(what):
        for name, tensor in _layer(kind, one, dice):
            yield f"blk.{layer}.{name}", tensor


def _layer(kind: Kind, what: str, dice: _Dice) -> Tensors:
    yield "attn_norm.weight", _ones(_WIDTH)
    yield from _MAKERS[what](kind, dice)
    if kind in {"gemma3", *_DELTA, "glm4moe"}:
        yield "post_attention_norm.weight", _ones(_WIDTH)
    if kind == "gemma3":
        yield "post_ffw_norm.weight", _ones(_WIDTH)
    if kind in {"llama", "gemma3", "jamba", "lfm2"}:
        yield "ffn_norm.weight", _ones(_WIDTH)
    if kind in {"llama", "gemma3", "jamba", "lfm2", "qwen35"}:
        yield "ffn_gate.weight", dice.matrix(_HIDDEN, _WIDTH)
        yield from _mlp(kind, dice)
    if kind in EXPERTS:
        yield from _experts(kind, dice)


def _experts(kind: Kind, dice: _Dice) -> Tensors:
    yield "ffn_gate_inp.weight", dice.matrix(_EXPERTS, _WIDTH)
    for name in ("gate", "up"):
        stack = [dice.matrix(_HIDDEN, _WIDTH) for _ in range(_EXPERTS)]
        yield f"ffn_{name}_exps.weight", np.stack(stack)
        yield f"ffn_{name}_shexp.weight", dice.matrix(_HIDDEN, _WIDTH)
    yield "ffn_down_exps.weight", np.stack([dice.matrix(_WIDTH, _HIDDEN) for _ in range(_EXPERTS)])
    yield "ffn_down_shexp.weight", dice.matrix(_WIDTH, _HIDDEN)
    if kind == "glm4moe":
        yield "exp_probs_b.bias", dice.vector(_EXPERTS, 0.1)
    else:
        yield "ffn_gate_inp_shexp.weight", dice.vector(_WIDTH, 0.2)


def _mlp(_kind: Kind, dice: _Dice) -> Tensors:
    yield "ffn_up.weight", dice.matrix(_HIDDEN, _WIDTH)
    yield "ffn_down.weight", dice.matrix(_WIDTH, _HIDDEN)


def _shortconv(_kind: Kind, dice: _Dice) -> Tensors:
    yield "shortconv.conv.weight", dice.matrix(_WIDTH, 3)
    yield "shortconv.in_proj.weight", dice.matrix(3 * _WIDTH, _WIDTH)
    yield "shortconv.out_proj.weight", dice.matrix(_WIDTH, _WIDTH)


def _attention(kind: Kind, dice: _Dice) -> Tensors:
    head = 16 if kind in _DELTA else _WIDTH // _HEADS
    gates = 2 if kind in _DELTA else 1  # queries come with a gate
    yield "attn_q.weight", dice.matrix(gates * _WIDTH, _WIDTH)
    yield "attn_k.weight", dice.matrix(_KV_HEADS * head, _WIDTH)
    yield "attn_v.weight", dice.matrix(_KV_HEADS * head, _WIDTH)
    yield "attn_output.weight", dice.matrix(_WIDTH, _WIDTH)
    if kind in {"gemma3", "lfm2", *_DELTA}:
        yield "attn_q_norm.weight", _ones(head)
        yield "attn_k_norm.weight", _ones(head)


def _mamba(kind: Kind, dice: _Dice) -> Tensors:
    # Decay is exp(dt A): with a dt of about 0.13 a token is felt for some tens of tokens.
    yield "ssm_in.weight", dice.matrix(2 * _INNER, _WIDTH)
    yield "ssm_conv1d.weight", dice.matrix(_INNER, _KERNEL)
    yield "ssm_conv1d.bias", dice.vector(_INNER, 0.1)
    yield "ssm_x.weight", dice.matrix(_RANK + 2 * _STATE, _INNER)
    yield "ssm_dt.weight", dice.matrix(_INNER, _RANK)
    yield "ssm_dt.bias", dice.vector(_INNER, 0.5, -2.0)
    decay = -np.arange(1, _STATE + 1, dtype=np.float32) / _STATE
    yield "ssm_a", np.tile(decay, (_INNER, 1))
    yield "ssm_d", dice.vector(_INNER, 0.3)
    yield "ssm_out.weight", dice.matrix(_WIDTH, _INNER)
    if kind == "jamba":
        yield "ssm_dt_norm.weight", _ones(_RANK)
        yield "ssm_b_norm.weight", _ones(_STATE)
        yield "ssm_c_norm.weight", _ones(_STATE)


def _mamba2(_kind: Kind, dice: _Dice) -> Tensors:
    mixed = _INNER + 2 * _GROUPS * _STATE
    yield "ssm_in.weight", dice.matrix(_INNER + mixed + _RANK, _WIDTH)
    yield "ssm_conv1d.weight", dice.matrix(mixed, _KERNEL)
    yield "ssm_conv1d.bias", dice.vector(mixed, 0.1)
    yield "ssm_dt.bias", dice.vector(_RANK, 0.5, -1.0)
    yield "ssm_a", np.linspace(-1.0, -0.1, _RANK, dtype=np.float32).reshape(_RANK, 1)
    yield "ssm_d", dice.matrix(_RANK, 1, 0.3)
    yield "ssm_norm.weight", _ones(_GROUPS, _INNER // _GROUPS)
    yield "ssm_out.weight", dice.matrix(_WIDTH, _INNER)


def _delta(kind: Kind, dice: _Dice) -> Tensors:
    values = _DELTA_HEADS * _DELTA_STATE
    mixed = 2 * _DELTA_STATE + values
    yield "attn_qkv.weight", dice.matrix(mixed, _WIDTH)
    yield "attn_gate.weight", dice.matrix(values, _WIDTH)
    yield "ssm_conv1d.weight", dice.matrix(mixed, _KERNEL)
    yield "ssm_dt.bias", dice.vector(_DELTA_HEADS, 0.3, -1.0)
    yield "ssm_a", np.linspace(-0.5, -0.1, _DELTA_HEADS, dtype=np.float32)
    if kind == "qwen3next":
        yield "ssm_ba.weight", dice.matrix(2 * _DELTA_HEADS, _WIDTH)
    else:
        yield "ssm_beta.weight", dice.matrix(_DELTA_HEADS, _WIDTH)
        yield "ssm_alpha.weight", dice.matrix(_DELTA_HEADS, _WIDTH)
    yield "ssm_norm.weight", _ones(_DELTA_STATE)
    yield "ssm_out.weight", dice.matrix(_WIDTH, values)


def _mtp(kind: Kind, dice: _Dice) -> Tensors:
    yield "nextn.eh_proj.weight", dice.matrix(_WIDTH, 2 * _WIDTH)
    for name in ("enorm", "hnorm", "shared_head_norm"):
        yield f"nextn.{name}.weight", dice.vector(_WIDTH, 0.2, 1.0)
    yield from _attention(kind, dice)


_MAKERS: dict[str, Callable[[Kind, _Dice], Tensors]] = {
    "attention": _attention,
    "mamba": _mamba,
    "mamba2": _mamba2,
    "shortconv": _shortconv,
    "delta": _delta,
    "mlp": _mlp,
    "mtp": _mtp,
}
