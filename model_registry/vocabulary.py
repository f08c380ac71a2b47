"""The vocabulary that a GGUF header holds, as pairing compares it: no weights, no runtime.

Defaults for what a file leaves out are those of llama.cpp's src/llama-vocab.cpp. Where a header is
not enough to be sure, the check at load time still has the last word.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import overload

from model_registry import pairing
from model_registry.gguf import Array, GGUFError, GGUFHeader, parse_header
from model_registry.pairing import PairVerdict, Vocabulary

_U64 = struct.Struct("<Q")

_TYPES = {
    "llama": "SPM",
    "bert": "WPM",
    "gpt2": "BPE",
    "hybriddna": "BPE",
    "whitespace": "BPE",
    "t5": "UGM",
    "rwkv": "RWKV",
    "plamo2": "PLaMo-2",
}
"""`tokenizer.ggml.model` -> the name of llama.cpp's vocabulary type."""

_MARKERS: dict[str, tuple[int | None, int | None]] = {
    "SPM": (1, 2),
    "WPM": (101, None),
    "BPE": (11, 11),
    "UGM": (None, 1),
    "PLaMo-2": (1, 2),
}
"""BOS and EOS where the file names none."""

# fmt: off
_BPE_WITH_BOS = frozenset({
    "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
    "jina-v5-nano", "tekken", "chameleon", "gemma4",
})
"""Values of `tokenizer.ggml.pre` that put a BOS before every prompt."""

# llama.cpp's llm_arch_is_recurrent and llm_arch_is_hybrid (src/llama-arch.cpp).
_STATEFUL = frozenset({
    "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7", "jamba", "falcon-h1", "plamo2",
    "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe", "qwen3next", "kimi-linear",
    "bailingmoe3", "kimi-k3", "glm5-next", "qwen35", "qwen35moe", "qwen4exp", "deepseek4",
    "minimax-01",
})
"""Architectures whose memory is a running state, of which tokens are taken back by copies of it."""
# fmt: on


class TokenTexts(Sequence[bytes]):
    """The texts of a vocabulary, read in place: 8 bytes a token beside the text itself."""

    def __init__(self, data: bytes | mmap.mmap, tokens: Array) -> None:
        """`tokens` is an array of texts that `parse_header` found in `data`."""
        starts = array("Q", bytes(8 * (tokens.length + 1)))
        at = tokens.start
        for token in range(tokens.length):
            starts[token] = at - tokens.start
            at += 8 + _U64.unpack_from(data, at)[0]
        starts[tokens.length] = at - tokens.start
        self._starts = starts
        self._data = bytes(data[tokens.start : at])

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, token: int) -> bytes: ...
    @overload
    def __getitem__(self, token: slice) -> list[bytes]: ...
    def __getitem__(self, token: int | slice) -> bytes | list[bytes]:
        if isinstance(token, slice):
            return [self[one] for one in range(*token.indices(len(self)))]
        if not 0 <= token < len(self):
            raise IndexError(token)
        text = self._data[self._starts[token] + 8 : self._starts[token + 1]]
        return text or b"[EMPTY_%d]" % token


def rolls_back(header: GGUFHeader) -> bool:
    """Whether the model's memory just drops its last tokens, and no copy of a state is needed."""
    return header.architecture not in _STATEFUL


def of(header: GGUFHeader, data: bytes | mmap.mmap) -> Vocabulary:
    """The vocabulary in the bytes that `header` was parsed from. Raises GGUFError without one."""
    metadata = header.metadata
    tokens = metadata.get("tokenizer.ggml.tokens")
    model, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if not isinstance(tokens, Array) or tokens.kind != "string" or not isinstance(model, str):
        raise GGUFError("It holds no vocabulary.")
    kind = _TYPES.get(model, model)
    bos, eos = _MARKERS.get(kind, (None, None))
    adds_bos = pre in _BPE_WITH_BOS if kind == "BPE" else kind in {"SPM", "WPM"}
    return Vocabulary(
        type=kind,
        size=tokens.length,
        add_bos=_flag(header, "add_bos_token", adds_bos),
        bos=_token(header, "bos_token_id", bos, tokens.length),
        add_eos=_flag(header, "add_eos_token", kind == "UGM"),
        eos=_token(header, "eos_token_id", eos, tokens.length),
        text=TokenTexts(data, tokens),
    )


def read(path: Path) -> tuple[GGUFHeader, Vocabulary]:
    """Header and vocabulary of a file. Raises GGUFError, and OSError as `open` does."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        header = parse_header(data)
        return header, of(header, data)


def check_pair(
    target: tuple[GGUFHeader, Vocabulary], draft: tuple[GGUFHeader, Vocabulary]
) -> PairVerdict:
    """Judge a pair by its headers alone."""
    return pairing.check(target[1], draft[1])


def _flag(header: GGUFHeader, key: str, default: bool) -> bool:
    value = header.metadata.get(f"tokenizer.ggml.{key}")
    return value if isinstance(value, bool) else default


def _token(header: GGUFHeader, key: str, default: int | None, size: int) -> int | None:
    """An id; one out of range is ignored, as llama.cpp does."""
    fallback = default if default is not None and default < size else None
    value = header.metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < size:
        return fallback
    return value
