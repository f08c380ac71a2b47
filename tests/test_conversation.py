import random
from collections.abc import Sequence

import pytest

from edgespec.conversation import Fit, Message, fit
from edgespec.errors import ContextFullError


class Counting:
    """A prompt of one token for each character and one for each message."""

    def __init__(self) -> None:
        self.calls = 0
        self.read = 0

    def __call__(self, messages: Sequence[Message]) -> list[int]:
        self.calls += 1
        tokens = [n for m in messages for n in [0, *map(ord, m.content)]]
        self.read += len(tokens)
        return tokens


def chat(turns: int, *, system: str | None = "sys", last: str = "last") -> list[Message]:
    messages = [] if system is None else [Message("system", system)]
    for n in range(turns):
        messages += [Message("user", f"q{n}"), Message("assistant", f"a{n}")]
    return [*messages, Message("user", last)]


def naive(messages: list[Message], budget: int) -> tuple[int, list[Message]]:
    """Takes away one turn after the other."""
    head = [m for m in messages if m.role == "system"]
    rest = messages[len(head) :]
    dropped = 0
    while len(Counting()([*head, *rest])) > budget:
        second = [n for n, m in enumerate(rest) if m.role == "user"][1]
        rest = rest[second:]
        dropped += 1
    return dropped, [*head, *rest]


def test_everything_stays_where_it_fits_exactly_and_is_encoded_once() -> None:
    messages, encode = chat(3), Counting()
    size = len(Counting()(messages))
    assert fit(messages, encode, size) == Fit(tuple(messages), tuple(encode(messages)), 0)
    assert encode.calls == 2


def test_one_token_too_many_costs_one_whole_turn() -> None:
    messages = chat(3)
    kept = fit(messages, Counting(), len(Counting()(messages)) - 1)
    assert kept.dropped == 1
    assert [m.content for m in kept.messages] == ["sys", "q1", "a1", "q2", "a2", "last"]
    assert kept.tokens == tuple(Counting()(kept.messages))


@pytest.mark.parametrize("seed", range(10))
def test_it_keeps_what_dropping_turn_by_turn_keeps(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(100):
        messages = [Message("system", "s")] * dice.randint(0, 2)
        for _ in range(dice.randint(0, 9)):
            messages.append(Message("user", "u" * dice.randint(0, 9)))
            messages += [Message("assistant", "a" * dice.randint(0, 9))] * dice.randint(0, 2)
        messages.append(Message("user", "u" * dice.randint(1, 9)))
        head = [m for m in messages if m.role == "system"]
        least = len(Counting()([*head, messages[-1]]))
        budget = dice.randint(least, least + 80)
        kept = fit(messages, Counting(), budget)
        assert (kept.dropped, list(kept.messages)) == naive(messages, budget)


@pytest.mark.parametrize("system", ["sys", None])
def test_the_last_message_and_the_system_text_stay_to_the_last(system: str | None) -> None:
    messages = chat(5, system=system)
    least = [m for m in messages if m.role == "system"] + messages[-1:]
    size = len(Counting()(least))
    assert list(fit(messages, Counting(), size).messages) == least
    with pytest.raises(ContextFullError) as full:
        fit(messages, Counting(), size - 1)
    assert str(size) in full.value.message
    assert str(size - 1) in full.value.message
    assert ("system" in full.value.message) == (system is not None)
    assert "Shorten" in full.value.hint
    assert "--ctx" in full.value.hint


@pytest.mark.parametrize("budget", [0, -5])
def test_no_room_at_all_is_said_as_zero(budget: int) -> None:
    with pytest.raises(ContextFullError, match=r"room for 0\."):
        fit(chat(0), Counting(), budget)


def test_what_follows_the_last_user_message_stays_with_it() -> None:
    messages = [*chat(2), Message("assistant", "half", complete=False)]
    kept = fit(messages, Counting(), len("sys") + len("last") + len("half") + 3)
    assert [m.content for m in kept.messages] == ["sys", "last", "half"]
    assert kept.messages[-1] is messages[-1]


def test_a_system_text_in_the_midst_leaves_with_its_turn() -> None:
    messages = [*chat(2), Message("system", "now"), Message("user", "end")]
    kept = fit(messages, Counting(), 17)
    assert [m.content for m in kept.messages] == ["sys", "last", "now", "end"]
    assert [m.content for m in fit(messages, Counting(), 8).messages] == ["sys", "end"]


def test_a_greeting_before_the_first_question_leaves_as_a_turn() -> None:
    messages = [Message("assistant", "welcome"), *chat(1, system=None)]
    assert fit(messages, Counting(), 13).dropped == 1
    assert [m.content for m in fit(messages, Counting(), 5).messages] == ["last"]


def test_a_thousand_turns_take_few_encodings_of_shrinking_length() -> None:
    messages, encode = chat(1000), Counting()
    whole = len(Counting()(messages))
    kept = fit(messages, encode, 200)
    assert 150 < len(kept.tokens) <= 200
    assert encode.calls <= 12
    assert encode.read < 3 * whole
