import random

import pytest

from edgespec.detokenize import Detokenizer
from edgespec.errors import UsageError
from edgespec.stops import StopMatcher
from tests.text_fakes import FakeTokenizer


def search(text: str, stops: list[str]) -> tuple[int, str] | None:
    """Where a whole text must end: every position, every stop, the longest first."""
    for start in range(len(text)):
        for stop in sorted(stops, key=len, reverse=True):
            if text[start : start + len(stop)] == stop:
                return start, stop
    return None


def chunks(text: str, dice: random.Random) -> list[str]:
    parts = []
    while text:
        size = dice.randint(1, 5)
        parts.append(text[:size])
        text = text[size:]
    return parts


def pending(text: str, stops: list[str]) -> int:
    """How much of the end of `text` may still become a stop."""
    lengths = [n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])]
    return max(lengths, default=0)


@pytest.mark.parametrize("seed", range(20))
def test_it_does_what_a_search_of_the_whole_text_so_far_does(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(500):
        alphabet = "abc🙂\n"[: dice.randint(1, 5)]

        def word(most: int, letters: str = alphabet) -> str:
            return "".join(dice.choice(letters) for _ in range(dice.randint(1, most)))

        stops = [word(5) for _ in range(dice.randint(0, 4))]
        matcher, fed, shown = StopMatcher(stops), "", ""
        for part in chunks(word(40), dice):
            fed += part
            shown += matcher.feed(part)
            hit = search(fed, stops)
            if hit is not None:
                assert (shown, matcher.matched) == (fed[: hit[0]], hit[1])
                assert matcher.feed("more") == ""
                break
            assert matcher.matched is None
            assert shown == fed[: len(fed) - pending(fed, stops)]
        shown += matcher.finish()
        assert shown == (fed if matcher.matched is None else fed[: search(fed, stops)[0]])  # type: ignore[index]
        assert matcher.finish() == ""


def test_a_stop_over_several_pieces_never_flashes() -> None:
    matcher = StopMatcher(["\nUser:"])
    assert [matcher.feed(piece) for piece in ("Yes.", "\n", "Us", "er", ": no")] == [
        "Yes.",
        "",
        "",
        "",
        "",
    ]
    assert matcher.matched == "\nUser:"
    assert matcher.finish() == ""


def test_what_looked_like_a_stop_is_shown_once_it_is_none() -> None:
    matcher = StopMatcher(["abc"])
    assert matcher.feed("xab") == "x"
    assert matcher.feed("abd") == "ababd"
    assert matcher.feed("ab") == ""
    assert matcher.finish() == "ab"
    assert matcher.matched is None


def test_the_first_start_wins_then_the_longest() -> None:
    matcher = StopMatcher(["bc", "abc", "ab"])
    assert matcher.feed("xabcd") == "x"
    assert matcher.matched == "abc"


def test_without_stops_everything_passes() -> None:
    matcher = StopMatcher(())
    assert matcher.feed("abc") + matcher.finish() == "abc"


def test_an_empty_stop_is_refused() -> None:
    with pytest.raises(UsageError, match="empty"):
        StopMatcher(["ok", ""])


def test_a_block_of_tokens_ends_at_the_token_that_completes_the_stop() -> None:
    """However the tokens were grouped, the same ones count and the same text is shown."""
    tokenizer = FakeTokenizer()
    tokens = tokenizer.tokenize("one 🙂 END two END", special=False)
    for size in (1, 3, 8, len(tokens)):
        detokenizer, matcher = Detokenizer(tokenizer), StopMatcher(["🙂 END"])
        shown, kept = "", 0
        for start in range(0, len(tokens), size):
            for token in tokens[start : start + size]:
                if matcher.matched is None:
                    shown += matcher.feed(detokenizer.feed([token]))
                    kept += 1
        assert (shown, kept) == ("one ", len("one 🙂 END".encode()))
