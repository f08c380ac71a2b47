"""Which drafts serve which targets: llama.cpp's rule, and sentences that say why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from model_registry.pairing import MOST_EXTRA_TOKENS, PairVerdict, Vocabulary, check
from tests import gguf_files
from tests.gguf_files import Vocab

INSTEAD = "Use `--draft lookup`, which needs no second model, or no draft."


def vocabulary(texts: Sequence[str], kind: str | int = "gpt2") -> Vocabulary:
    return Vocabulary(
        type=kind,
        size=len(texts),
        add_bos=False,
        bos=1,
        add_eos=False,
        eos=2,
        text=[text.encode() for text in texts],
    )


def of(vocab: Vocab) -> Vocabulary:
    kind = vocab.metadata["tokenizer.ggml.model"]
    assert isinstance(kind, str)
    return vocabulary(vocab.tokens, kind)


@pytest.fixture(scope="module")
def plain() -> Vocab:
    return gguf_files.smollm2_vocab()


@pytest.fixture(scope="module")
def target(plain: Vocab) -> Vocabulary:
    return of(plain)


SMALL = vocabulary([f"t{token}" for token in range(20)])


def refused(verdict: PairVerdict, rule: str, token: int | None) -> str:
    assert not verdict.ok
    assert (verdict.rule, verdict.token) == (rule, token)
    assert f"({rule})" in verdict.message
    assert verdict.message.endswith(INSTEAD)
    assert (token is None) or f"token {token}: " in verdict.message
    return verdict.message


def test_the_same_vocabulary(target: Vocabulary) -> None:
    verdict = check(target, target)
    assert verdict == PairVerdict(
        True, "compatible", "The vocabularies are the same: 49152 tokens.", None
    )


@pytest.mark.parametrize("extra", [1, 100, 128])
def test_padding_at_the_end_is_accepted(plain: Vocab, target: Vocabulary, extra: int) -> None:
    padded = of(plain.padded(extra))
    verdict = check(target, padded)
    assert verdict.ok
    assert f"the draft has {extra} more at its end (up to 128 may be)" in verdict.message
    assert f"the target has {extra} more" in check(padded, target).message


def test_more_padding_than_that_is_refused(plain: Vocab, target: Vocabulary) -> None:
    padded = of(plain.padded(129))
    message = refused(check(target, padded), "size", None)
    assert "the target has 49152 tokens and the draft 49281, more than 128 apart" in message
    refused(check(padded, target), "size", None)


def test_another_family(target: Vocabulary) -> None:
    foreign = of(gguf_files.byte_vocab())
    message = refused(check(target, foreign), "type", 5)
    assert "the target's vocabulary is gpt2 and the draft's is llama" in message
    assert "token 5: '<file_sep>' in the target, '<0x02>' in the draft" in message


def test_types_may_be_llama_cpps_numbers() -> None:
    message = check(replace(SMALL, type=2), replace(SMALL, type=1)).message
    assert "the target's vocabulary is BPE and the draft's is SPM" in message
    assert "of type 77" in check(replace(SMALL, type=77), replace(SMALL, type=1)).message
    assert check(replace(SMALL, type=2), replace(SMALL, type=2)).ok


def test_the_same_size_with_shuffled_tokens(plain: Vocab, target: Vocabulary) -> None:
    shuffled = plain.shuffled(1)
    first = next(
        token
        for token, texts in enumerate(zip(plain.tokens, shuffled.tokens, strict=True))
        if texts[0] != texts[1]
    )
    message = refused(check(target, of(shuffled)), "text", first)
    assert repr(plain.tokens[first]) in message


@pytest.mark.parametrize("token", [5, 16, 300, 49151])
def test_a_single_token_that_differs(plain: Vocab, target: Vocabulary, token: int) -> None:
    message = refused(check(target, of(plain.renamed(token, "<other>"))), "text", token)
    assert f"{plain.tokens[token]!r} in the target, '<other>' in the draft" in message


def test_the_first_five_and_the_tail_are_not_compared(plain: Vocab, target: Vocabulary) -> None:
    assert check(target, of(plain.renamed(4, "<other>"))).ok
    longer = of(plain.padded(2).renamed(49152, "<other>"))
    assert check(of(plain.padded(1)), longer).token == 49152
    assert check(target, longer).ok


def test_marker_flags(plain: Vocab, target: Vocabulary) -> None:
    adding = replace(target, add_bos=True)
    message = refused(check(target, adding), "bos", None)
    assert "the draft adds BOS to every prompt and the target does not" in message
    assert "the target adds BOS" in refused(check(adding, target), "bos", None)
    assert "adds EOS" in refused(check(target, replace(target, add_eos=True)), "eos", None)


def test_marker_ids_count_only_when_they_are_added() -> None:
    assert check(SMALL, replace(SMALL, bos=9, eos=None)).ok
    adding = replace(SMALL, add_bos=True, add_eos=True)
    assert check(adding, adding).ok
    message = refused(check(adding, replace(adding, bos=9)), "bos", None)
    assert "the target's BOS token is 1 and the draft's is 9" in message
    refused(check(adding, replace(adding, eos=None)), "eos", None)


def test_the_rules_are_asked_in_llama_cpps_order() -> None:
    wrong = replace(vocabulary(["x"] * 200, "llama"), add_bos=True, add_eos=True)
    fixes: list[tuple[str, dict[str, Any]]] = [
        ("type", {"type": SMALL.type}),
        ("bos", {"add_bos": False}),
        ("eos", {"add_eos": False}),
        ("size", {"size": 20}),
        ("text", {"text": SMALL.text}),
    ]
    for rule, fix in fixes:
        refused(check(SMALL, wrong), rule, 5)
        wrong = replace(wrong, **fix)
    assert check(SMALL, wrong).ok


def test_texts_may_come_from_a_function_and_no_more_than_needed() -> None:
    asked: list[int] = []

    def text(token: int) -> bytes:
        asked.append(token)
        return f"t{token}".encode() if token < 9 else b"?"

    verdict = check(SMALL, replace(SMALL, text=text))
    assert verdict.token == 9
    assert set(asked) <= set(range(5, 10))


def test_the_limit_is_llama_cpps() -> None:
    assert MOST_EXTRA_TOKENS == 128


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"\xff\xfe", r"'\\xff\\xfe'"),
        ("\u0120hello".encode(), "'Ġhello'"),
        (b"\x1b[2J\n", r"'\x1b[2J\n'"),
        (b"x" * 500, f"'{'x' * 39}…'"),
    ],
)
def test_texts_are_shown_on_one_harmless_line(text: bytes, shown: str) -> None:
    texts = [f"t{token}".encode() for token in range(20)]
    texts[7] = text
    message = check(SMALL, replace(SMALL, text=texts)).message
    assert f"{shown} in the draft" in message
    assert message.isprintable()
