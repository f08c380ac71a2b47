"""The vocabulary of a loaded file: text to tokens and back, and what pairing compares."""

from __future__ import annotations

import ctypes
from functools import cached_property

import llama_cpp

from edgespec.model import Token
from model_registry.pairing import Vocabulary

_BPE = 2  # LLAMA_VOCAB_TYPE_BPE
_TYPES = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLaMo-2"}


class LlamaTokenizer:
    """`edgespec.model.Tokenizer` over llama.cpp's vocabulary. Lives as long as its model."""

    def __init__(self, model: llama_cpp.llama_model_p) -> None:
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        self.size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self._buffer = ctypes.create_string_buffer(256)

    @cached_property
    def bos(self) -> Token | None:
        """The beginning-of-text token, if there is one."""
        return self._or_none(llama_cpp.llama_vocab_bos(self._vocab))

    @cached_property
    def eos(self) -> Token | None:
        """The end-of-text token, if there is one."""
        return self._or_none(llama_cpp.llama_vocab_eos(self._vocab))

    @staticmethod
    def _or_none(token: Token) -> Token | None:
        return None if token < 0 else token

    @cached_property
    def adds_bos(self) -> bool:
        """Whether the file asks for a BOS in front of every prompt."""
        return bool(llama_cpp.llama_vocab_get_add_bos(self._vocab))

    @cached_property
    def joins_freely(self) -> bool:
        """Whether two texts may be tokenised apart: true of BPE, which puts nothing at a seam."""
        return bool(llama_cpp.llama_vocab_type(self._vocab) == _BPE)

    def tokenize(self, text: str, *, special: bool) -> list[Token]:
        """Tokens of `text`, no BOS or EOS added; control tokens in it are parsed if `special`."""
        data = text.encode("utf-8", errors="replace")
        room = len(data) + 8
        while True:
            out = (llama_cpp.llama_token * room)()
            count = llama_cpp.llama_tokenize(
                self._vocab, data, len(data), out, room, False, special
            )
            if count >= 0:
                return out[:count]
            room = -count

    def piece(self, token: Token, *, special: bool = False) -> bytes:
        """The bytes of a token; a control token's only if `special`."""
        while True:
            room = len(self._buffer)
            count = llama_cpp.llama_token_to_piece(
                self._vocab, token, self._buffer, room, 0, special
            )
            if count >= 0:
                return self._buffer.raw[:count]
            self._buffer = ctypes.create_string_buffer(-count)

    def is_end(self, token: Token) -> bool:
        """Whether the token ends a generation."""
        return token in self.end_tokens

    @cached_property
    def end_tokens(self) -> frozenset[Token]:
        """The tokens that end a generation. Takes some 40 ms for a vocabulary of 150k."""
        is_end, vocab = llama_cpp.llama_vocab_is_eog, self._vocab
        return frozenset(token for token in range(self.size) if is_end(vocab, token))

    def vocabulary(self) -> Vocabulary:
        """What decides whether two models may be a pair."""
        kind = llama_cpp.llama_vocab_type(self._vocab)
        return Vocabulary(
            type=_TYPES.get(kind, str(kind)),
            add_bos=self.adds_bos,
            bos=self.bos,
            add_eos=bool(llama_cpp.llama_vocab_get_add_eos(self._vocab)),
            eos=self.eos,
            size=self.size,
            text=lambda token: llama_cpp.llama_vocab_get_text(self._vocab, token),
        )
