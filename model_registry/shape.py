"""The numbers of a model that its memory follows from, read off its headers.

Where a header does not say, or says what only llama.cpp understands, the larger number is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_registry.gguf import Array, GGUFHeader
from model_registry.layout import Layout, joined
from model_registry.vocabulary import rolls_back

# llama.cpp's llm_arch_supports_rs_rollback (src/llama-arch.cpp).
# fmt: off
_SNAPSHOTS = frozenset({
    "kimi-k3", "qwen35", "qwen35moe", "qwen4exp", "deepseek4", "glm5-next", "nemotron_h", "nemotron_h_moe",
    "lfm2", "lfm2moe", "bailingmoe3",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class Shape:
    """One model. Bytes are of the file's own formats."""

    name: str
    layers: tuple[int, ...]
    """Bytes of weights, by layer."""
    input: int
    """Bytes that always stay in RAM: the embeddings."""
    output: int
    """Bytes of the output layer."""
    copy: int
    """Bytes more that the output layer takes on another device than the input: a copy of the embeddings,
    in models that use one matrix for both."""
    keys: tuple[int, ...]
    """Numbers that the KV cache holds of one token as keys, by layer. Sliding windows count in full,
    because that is how they are loaded here (llama_context_params.swa_full)."""
    values: tuple[int, ...]
    state: int
    """Bytes of the running state of a layer, for recurrent and hybrid models."""
    quantisable: bool
    """Whether the KV cache can be stored in blocks of 32 numbers, as q8_0 and q4_0 are."""
    width: int
    """Length of the vector that goes from layer to layer."""
    inner: int
    """Numbers that a layer computes at once of a token: its feed-forward or attention width."""
    vocabulary: int
    windows: bool
    """Whether some layers look back on a window only, and need a mask of their own."""
    context: int | None
    """Tokens that the model was trained to look back on."""
    rolls_back: bool = True
    """Whether its memory just drops its last tokens; a running state goes back to a copy."""
    snapshots: bool = False
    """Whether llama.cpp can keep states of earlier tokens beside the running one."""
    architecture: str = ""
    """llama.cpp's name of the kind of network."""

    @property
    def weights(self) -> int:
        """All bytes of weights, with no copy of the embeddings."""
        return sum(self.layers) + self.input + self.output


def shape_of(headers: Sequence[GGUFHeader], sizes: Sequence[int], name: str) -> Shape:
    """The shape of a model whose files have these headers and sizes in bytes, parts in order."""
    header = headers[0]
    numbers = _Numbers(header)
    layout = joined(one.layout for one in headers)
    count = max(numbers.get("block_count"), len(layout.blocks), 1)
    heads = numbers.by_layer("attention.head_count", count)
    kv_heads = numbers.by_layer("attention.head_count_kv", count, heads)
    width = numbers.get("embedding_length")
    head = width // max(*heads, 1)
    key, value = (
        numbers.most("attention.key_length", head),
        numbers.most("attention.value_length", head),
    )
    # Multi-head latent attention keeps one compressed vector a token, from which values come too.
    latent = numbers.get("attention.key_length_mla") > 0
    unknown = any(one.data_end is None for one in headers)
    return Shape(
        name=name,
        layers=_layers(layout, count, sum(sizes) if unknown else 0),
        input=layout.input,
        output=layout.output,
        copy=0 if layout.has_output else layout.embedding,
        keys=tuple(number * key for number in kv_heads),
        values=tuple(0 if latent else number * value for number in kv_heads),
        state=_state(numbers, width),
        quantisable=key % 32 == 0 and value % 32 == 0 and max(kv_heads) > 0,
        width=width,
        inner=_inner(numbers, count, max(heads) * max(key, value)),
        vocabulary=header.token_count or numbers.get("vocab_size"),
        windows=numbers.get("attention.sliding_window") > 0,
        context=header.context_length,
        rolls_back=rolls_back(header),
        snapshots=header.architecture in _SNAPSHOTS,
        architecture=header.architecture or "",
    )


class _Numbers:
    """The keys of an architecture, such as `llama.block_count`."""

    def __init__(self, header: GGUFHeader) -> None:
        self._metadata = header.metadata
        self._prefix = header.architecture

    def get(self, key: str, default: int = 0) -> int:
        """A number, the largest of several."""
        value = self._metadata.get(f"{self._prefix}.{key}")
        if isinstance(value, Array):
            return max((one for one in value.values or () if isinstance(one, int)), default=default)
        return value if isinstance(value, int) and value >= 0 else default

    def most(self, key: str, default: int) -> int:
        """The larger of the number for full attention and that for windows."""
        return max(self.get(key, default), self.get(f"{key}_swa"))

    def by_layer(
        self, key: str, count: int, default: Sequence[int] | None = None
    ) -> tuple[int, ...]:
        """A number a layer; one number stands for all layers."""
        value = self._metadata.get(f"{self._prefix}.{key}")
        if isinstance(value, Array) and value.values and len(value.values) == count:
            return tuple(int(one) for one in value.values)
        if default is not None and not isinstance(value, int):
            return tuple(default)
        return (self.get(key),) * count


def _layers(layout: Layout, count: int, size: int) -> tuple[int, ...]:
    """Bytes by layer; tensors of unknown types are what else is in files of `size`, spread over all."""
    known = dict(layout.blocks)
    spread = -(-max(size - layout.total, 0) // count)
    return tuple(known.get(number, 0) + spread for number in range(count))


def _inner(numbers: _Numbers, count: int, attention: int) -> int:
    experts = numbers.get("expert_used_count")
    each = numbers.get("expert_feed_forward_length", numbers.get("feed_forward_length"))
    shared = numbers.get("expert_shared_feed_forward_length")
    routed = experts * (each + numbers.get("embedding_length") // 3) + shared
    return max(*numbers.by_layer("feed_forward_length", count), routed, attention)


def _state(numbers: _Numbers, width: int) -> int:
    """Bytes a layer, as n_embd_r and n_embd_s of llama.cpp's src/llama-hparams.cpp."""
    if heads := numbers.get("wkv.head_size"):
        return 4 * width * (2 + heads)
    inner, state = numbers.get("ssm.inner_size"), numbers.get("ssm.state_size")
    past = max(numbers.get("ssm.conv_kernel") - 1, 0)
    short = max(numbers.get("shortconv.l_cache") - 1, 0)
    return 4 * (
        past * (inner + 2 * numbers.get("ssm.group_count") * state) + inner * state + short * width
    )
