"""The model files that other tests rely on are what llama.cpp takes them for."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import gguf_files
from tests.gguf_files import Vocab

_silent = llama_cpp.llama_log_callback(lambda level, text, data: None)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    llama_cpp.llama_log_get(ctypes.byref(before), ctypes.byref(data))
    llama_cpp.llama_log_set(_silent, ctypes.c_void_p())
    yield
    llama_cpp.llama_log_set(before, data)


def _load(path: Path) -> ctypes.c_void_p | None:
    """As plainly as llama.cpp can: weights as they are in the file, not rearranged for the CPU."""
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.use_extra_bufts = False
    model: ctypes.c_void_p | None = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    return model


@contextmanager
def loaded(path: Path) -> Iterator[ctypes.c_void_p]:
    """The model as llama.cpp loads it; fails the test if it does not."""
    model = _load(path)
    assert model, f"llama.cpp refused {path.name}"
    yield model
    llama_cpp.llama_model_free(model)


def load_fails(path: Path) -> bool:
    model = _load(path)
    if model:
        llama_cpp.llama_model_free(model)
    return not model


def decoded(path: Path, tokens: list[int]) -> NDArray[np.float32]:
    """Logits after the last of `tokens`, on one thread."""
    with loaded(path) as model:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_threads, params.n_threads_batch = 64, 1, 1
        context = llama_cpp.llama_init_from_model(model, params)
        assert context
        ids = (llama_cpp.llama_token * len(tokens))(*tokens)
        assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(ids, len(ids))) == 0
        size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (size,)).copy()
        llama_cpp.llama_free(context)
        return logits


def vocab_of(model: ctypes.c_void_p) -> ctypes.c_void_p:
    vocab: ctypes.c_void_p = llama_cpp.llama_model_get_vocab(model)
    return vocab


def text_of(model: ctypes.c_void_p, token: int) -> str:
    text: bytes = llama_cpp.llama_vocab_get_text(vocab_of(model), token)
    return text.decode()


def tokenized(model: ctypes.c_void_p, text: str) -> list[int]:
    raw, ids = text.encode(), (llama_cpp.llama_token * 256)()
    count = llama_cpp.llama_tokenize(vocab_of(model), raw, len(raw), ids, 256, False, True)
    return list(ids[:count])


def test_a_random_model_has_the_real_models_vocabulary(tmp_path: Path) -> None:
    text = "<|im_start|>user\nBonjour, 你好 🎉 x = 1234;<|im_end|>\n"
    with (
        loaded(gguf_files.random_llama(tmp_path / "random.gguf", context=512)) as random,
        loaded(gguf_files.smollm2_path()) as real,
    ):
        assert tokenized(random, text) == tokenized(real, text)
        assert llama_cpp.llama_vocab_n_tokens(vocab_of(random)) == 49152
        assert llama_cpp.llama_model_n_ctx_train(random) == 512
        assert llama_cpp.llama_model_chat_template(
            random, None
        ) == llama_cpp.llama_model_chat_template(real, None)


def test_a_random_model_decodes_and_prefers_some_tokens(tmp_path: Path) -> None:
    sharp = decoded(gguf_files.random_llama(tmp_path / "sharp.gguf", layers=2), [1, 4093, 198])
    assert np.isfinite(sharp).all()
    assert 3 < sharp.std() < 12
    flat = decoded(gguf_files.random_llama(tmp_path / "flat.gguf", spread=0.1), [1, 4093, 198])
    assert flat.std() < 0.2


def test_the_next_token_depends_on_what_came_before(tmp_path: Path) -> None:
    path = gguf_files.random_llama(tmp_path / "m.gguf")
    best = {
        int(decoded(path, [first, second, 198]).argmax())
        for first in (1, 300)
        for second in (500, 9000)
    }
    assert len(best) > 1
    assert int(decoded(path, [1, 500, 198]).argmax()) != 198, "it does not repeat its input"


def test_the_seed_decides_the_bytes(tmp_path: Path) -> None:
    one = gguf_files.random_llama(tmp_path / "1.gguf", seed=1).read_bytes()
    assert gguf_files.random_llama(tmp_path / "1b.gguf", seed=1).read_bytes() == one
    assert gguf_files.random_llama(tmp_path / "2.gguf", seed=2).read_bytes() != one


@pytest.mark.parametrize("extra", [1, 100, 128, 129])
def test_padded_vocabularies_load_in_their_size(tmp_path: Path, extra: int) -> None:
    vocab = gguf_files.smollm2_vocab().padded(extra)
    path = gguf_files.random_llama(tmp_path / "padded.gguf", vocab=vocab)
    assert decoded(path, [1, 2, 49151 + extra]).shape == (49152 + extra,)
    with loaded(path) as model:
        assert text_of(model, 49151 + extra) == f"[PAD{49151 + extra}]"


def test_edited_vocabularies_load_and_show_their_edit(tmp_path: Path) -> None:
    plain = gguf_files.smollm2_vocab()
    edits: dict[str, tuple[Vocab, int]] = {
        "swapped": (plain.swapped(300, 400), 300),
        "renamed": (plain.renamed(7, "<another>"), 7),
        "shuffled": (plain.shuffled(3), 30000),
    }
    for name, (vocab, token) in edits.items():
        path = gguf_files.random_llama(tmp_path / f"{name}.gguf", vocab=vocab)
        with loaded(path) as model:
            assert text_of(model, token) == vocab.tokens[token] != plain.tokens[token]
            assert tokenized(model, "<|im_end|>") == [2]


def test_changed_flags_and_ids_are_seen(tmp_path: Path) -> None:
    changes = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 3}
    path = gguf_files.random_llama(tmp_path / "bos.gguf", changes=changes)
    with loaded(path) as model:
        assert llama_cpp.llama_vocab_get_add_bos(vocab_of(model))
        assert llama_cpp.llama_vocab_bos(vocab_of(model)) == 3


def test_templates_can_be_removed_and_replaced(tmp_path: Path) -> None:
    without = {"tokenizer.chat_template": None}
    with loaded(gguf_files.random_llama(tmp_path / "without.gguf", changes=without)) as model:
        assert llama_cpp.llama_model_chat_template(model, None) is None
    other = {"tokenizer.chat_template": gguf_files.PLAIN_TEMPLATE}
    with loaded(gguf_files.random_llama(tmp_path / "other.gguf", changes=other)) as model:
        template = llama_cpp.llama_model_chat_template(model, None)
        assert template == gguf_files.PLAIN_TEMPLATE.encode()


def test_a_copy_of_the_real_model_answers_as_it_does(tmp_path: Path) -> None:
    source = gguf_files.smollm2_path()
    changes = {"tokenizer.chat_template": None, "general.name": "Copy"}
    copy = gguf_files.copy_with(tmp_path / "copy.gguf", source, changes)
    assert np.array_equal(decoded(copy, [1, 4093, 198]), decoded(source, [1, 4093, 198]))
    with loaded(copy) as model:
        assert llama_cpp.llama_model_chat_template(model, None) is None


def test_the_foreign_model_is_of_another_family(tmp_path: Path) -> None:
    path = gguf_files.foreign_vocab(tmp_path / "foreign.gguf")
    with loaded(path) as model:
        assert llama_cpp.llama_vocab_type(vocab_of(model)) == llama_cpp.LLAMA_VOCAB_TYPE_SPM
        assert 265 < llama_cpp.llama_vocab_n_tokens(vocab_of(model)) < 400
        tokens = tokenized(model, "the end, 🎉")
        pieces = [text_of(model, token) for token in tokens]
        assert pieces[0] == "▁the"
        assert pieces[-4:] == ["<0xF0>", "<0x9F>", "<0x8E>", "<0x89>"]
    assert np.isfinite(decoded(path, [1, 40, 260])).all()


def test_a_split_model_needs_both_parts(tmp_path: Path) -> None:
    first, second = gguf_files.split_llama(tmp_path, "model")
    assert first.name == "model-00001-of-00002.gguf"
    assert np.isfinite(decoded(first, [1, 2, 3])).all()
    second.unlink()
    assert load_fails(first)


def test_files_that_must_not_load_do_not(tmp_path: Path) -> None:
    whole = gguf_files.random_llama(tmp_path / "whole.gguf")
    bad = [
        gguf_files.random_llama(tmp_path / "arch.gguf", architecture="no-such-network"),
        gguf_files.vocabulary_only(tmp_path / "vocabulary.gguf"),
        gguf_files.truncated(tmp_path / "half.gguf", whole, 0.5),
        gguf_files.truncated(tmp_path / "header.gguf", whole, 0.01),
        gguf_files.html_page(tmp_path / "page.gguf"),
        gguf_files.zeros(tmp_path / "zeros.gguf"),
        gguf_files.wrong_version(tmp_path / "version.gguf", whole),
    ]
    assert [path.name for path in bad if not load_fails(path)] == []
