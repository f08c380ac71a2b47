import random

import pytest

from edgespec.detokenize import Detokenizer
from tests.text_fakes import FakeTokenizer, real_tokenizer

TEXTS = (
    "plain",
    "smile 🙂 and thumbs 👍🏽",
    "flags 🇩🇪🇯🇵🇧🇷",
    "family 👨‍👩‍👧‍👦 done",
    "漢字とかな 한국어",
    "cafe\u0301 n\u0303 o\u0302\u0323",
    "क्षि ไทย العربية",
)


def halves(tokens: list[int], cut: int) -> tuple[list[int], list[int]]:
    return tokens[:cut], tokens[cut:]


@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_cut_at_any_byte_gives_the_text_and_no_replacement_marks(text: str) -> None:
    tokens = list(text.encode())
    for cut in range(len(tokens) + 1):
        detokenizer = Detokenizer(FakeTokenizer())
        parts = [detokenizer.feed(part) for part in halves(tokens, cut)]
        assert text.startswith(parts[0])
        assert "".join(parts) + detokenizer.finish() == text


@pytest.mark.parametrize("text", TEXTS)
def test_every_character_comes_with_its_last_byte(text: str) -> None:
    detokenizer = Detokenizer(FakeTokenizer())
    shown = ""
    for number, byte in enumerate(text.encode(), 1):
        shown += detokenizer.feed([byte])
        assert shown == text.encode()[:number].decode(errors="ignore")
    assert detokenizer.finish() == ""


@pytest.mark.parametrize("text", TEXTS)
def test_a_cut_tail_is_one_replacement_mark_and_only_at_the_end(text: str) -> None:
    data = text.encode()
    for cut in range(len(data) + 1):
        detokenizer = Detokenizer(FakeTokenizer())
        shown = detokenizer.feed(data[:cut])
        assert "\ufffd" not in shown
        assert shown + detokenizer.finish() == data[:cut].decode(errors="replace")
        assert detokenizer.finish() == ""


def test_any_bytes_in_any_chunks_read_as_if_they_came_at_once() -> None:
    dice = random.Random(7)
    pool = [*"🙂é漢a".encode(), 0xFF, 0xC0, 0xED, 0xA0, 0xF4, 0x9F]
    for _ in range(2000):
        data = bytes(dice.choice(pool) for _ in range(dice.randrange(12)))
        detokenizer = Detokenizer(FakeTokenizer())
        shown, rest = "", list(data)
        while rest:
            size = dice.randint(1, 4)
            shown += detokenizer.feed(rest[:size])
            rest = rest[size:]
        assert shown + detokenizer.finish() == data.decode(errors="replace")


def test_control_tokens_have_no_text_even_inside_a_character() -> None:
    tokenizer = FakeTokenizer()
    first, *rest = "🙂".encode()
    detokenizer = Detokenizer(tokenizer)
    assert detokenizer.feed([first, tokenizer.control("<|im_end|>"), *rest]) == "🙂"


def test_the_real_vocabulary_streams_every_text_token_by_token() -> None:
    tokenizer = real_tokenizer()
    for text in TEXTS:
        tokens = tokenizer.tokenize(text, special=False)
        detokenizer = Detokenizer(tokenizer)
        parts = [detokenizer.feed([token]) for token in tokens]
        assert "".join(parts) + detokenizer.finish() == text
    emoji = tokenizer.tokenize("👨‍👩‍👧‍👦", special=False)
    assert len(emoji) > 7, "no test of split characters unless they are split"
