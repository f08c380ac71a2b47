"""What tests share: a home of their own, and model files that are written once a run."""

from __future__ import annotations

import os
import site
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import gguf_files
from tests.gguf_files import Changes, Vocab

RAISES_ON_SYSTEM = (
    "{% for message in messages %}{% if message.role == 'system' %}"
    "{{ raise_exception('no system role here') }}{% endif %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WRITES_BOS = (
    "{{ bos_token }}{% for message in messages %}{{ message.role }}: {{ message.content }}\n"
    "{% endfor %}"
)


class ModelFiles:
    """Model files by name, each written when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> Path:
        path = self._folder / f"{name}.gguf"
        return path if path.exists() else _MAKERS[name](path)

    @property
    def smollm2(self) -> Path:
        """The real model."""
        return gguf_files.smollm2_path()

    def draft(self, method: str) -> str:
        """What `Load.draft` and `--draft` take for one of `rig.METHODS` with SmolLM2 as target."""
        if method == "self":
            return str(self.smollm2)
        return str(self["bad"]) if method == "bad" else method


def _tiny(changes: Changes) -> Callable[[Path], Path]:
    return lambda path: gguf_files.random_llama(path, changes=changes)


def _padded(count: int) -> Callable[[Path], Path]:
    return lambda path: gguf_files.random_llama(
        path, vocab=gguf_files.smollm2_vocab().padded(count)
    )


def _padded_bytes() -> Vocab:
    vocab = gguf_files.byte_vocab().padded(128)
    scores = [0.0] * len(vocab.tokens)
    return replace(vocab, metadata={**vocab.metadata, "tokenizer.ggml.scores": scores})


def _cut(path: Path) -> Path:
    whole = gguf_files.smollm2_vocab()
    vocab = replace(whole, tokens=whole.tokens[:-100], types=whole.types[:-100])
    return gguf_files.random_llama(path, vocab=vocab)


_MAKERS: dict[str, Callable[[Path], Path]] = {
    # Random weights with SmolLM2's vocabulary: a draft that guesses wrong, a target that rambles.
    "bad": lambda path: gguf_files.random_llama(path, seed=0),
    "rambler": lambda path: gguf_files.random_llama(path, seed=1),
    "short": lambda path: gguf_files.random_llama(path, context=128),
    # The draft that guesses right, but was trained to look back less far.
    "short-self": lambda path: gguf_files.copy_with(
        path, gguf_files.smollm2_path(), {"llama.context_length": 128}
    ),
    # One token a byte: what it says is mostly no UTF-8.
    "bytes": lambda path: gguf_files.foreign_vocab(path, seed=3),
    "other-bytes": lambda path: gguf_files.foreign_vocab(path, seed=4),
    "padded-bytes": lambda path: gguf_files.random_llama(path, seed=4, vocab=_padded_bytes()),
    # llama.cpp stops at this one: there are fewer scores than tokens.
    "without-scores": lambda path: gguf_files.random_llama(
        path, vocab=gguf_files.byte_vocab().padded(128)
    ),
    "shuffled": lambda path: gguf_files.random_llama(
        path, vocab=gguf_files.smollm2_vocab().shuffled(1)
    ),
    "other-special": lambda path: gguf_files.random_llama(
        path, vocab=gguf_files.smollm2_vocab().renamed(7, "<elsewhere>")
    ),
    "adds-bos": _tiny({"tokenizer.ggml.add_bos_token": True}),
    "adds-eos": _tiny({"tokenizer.ggml.add_eos_token": True}),
    "padded-1": _padded(1),
    "padded-100": _padded(100),
    "padded-128": _padded(128),
    "padded-129": _padded(129),
    "cut-100": _cut,
    "no-template": _tiny({"tokenizer.chat_template": None}),
    "broken-template": _tiny({"tokenizer.chat_template": "{% for %}"}),
    "no-system": _tiny({"tokenizer.chat_template": RAISES_ON_SYSTEM}),
    "template-with-bos": lambda path: gguf_files.foreign_vocab(
        path, changes={"tokenizer.chat_template": WRITES_BOS}
    ),
}


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder of the tests' own: logs and settings of the person who runs them stay theirs."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        # Packages installed for the user only must still be found by processes started here.
        patch.setenv("PYTHONUSERBASE", site.getuserbase())
        patch.setenv("HOME", str(folder))
        patch.delenv("EDGESPEC_PROFILE", raising=False)
        for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
            patch.setenv(f"XDG_{kind}_HOME", str(folder / kind.lower()))
        if os.name == "nt":
            patch.setenv("LOCALAPPDATA", str(folder))
        yield folder


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    return ModelFiles(tmp_path_factory.mktemp("models"))
