"""Which turns a prompt is made of, with an encoder that costs a token a letter."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from edgespec.conversation import Message
from edgespec.errors import ContextFullError
from edgespec.window import ContextWindow, Prompt

CAPACITY = 64
SYSTEM = Message("system", "SYS")


def encode(messages: Sequence[Message]) -> list[int]:
    return [ord(letter) for message in messages for letter in message.content]


def window(capacity: int = CAPACITY) -> ContextWindow:
    return ContextWindow(encode, capacity)


def said(prompt: Prompt | None) -> str:
    assert prompt is not None
    return "".join(map(chr, prompt.tokens))


def turns(*texts: str) -> list[Message]:
    """User and assistant by turns."""
    roles = ("user", "assistant")
    return [Message(roles[n % 2], text) for n, text in enumerate(texts)]  # type: ignore[arg-type]


def test_what_fits_stays() -> None:
    talk = [SYSTEM, *turns("a" * 10, "b" * 10, "c" * 33)]
    prompt = window().prompt(talk)
    assert (said(prompt), prompt.left) == (f"SYS{'a' * 10}{'b' * 10}{'c' * 33}", 0)


def test_an_eighth_is_kept_free_for_the_answer() -> None:
    talk = turns("a" * 20, "b" * 20, "c" * 16)
    assert window().prompt(talk).left == 0
    assert window().prompt([*talk[:-1], Message("user", "c" * 17)]).left == 1


def test_the_oldest_turns_leave_until_half_is_free() -> None:
    talk = [SYSTEM, *turns("a" * 9, "b" * 9, "c" * 9, "d" * 9, "e" * 9, "f" * 9, "g" * 9)]
    prompt = window().prompt(talk)
    assert (said(prompt), prompt.left) == (f"SYS{'e' * 9}{'f' * 9}{'g' * 9}", 2)


def test_what_has_left_stays_away_so_that_prompts_begin_alike() -> None:
    view, talk = window(), turns("a" * 20, "b" * 20, "c" * 20)
    first = view.prompt(talk)
    assert first.left == 1
    talk += turns("", "d" * 5)[1:] + turns("e" * 5)
    second = view.prompt(talk)
    assert second.left == 0
    assert second.tokens[: len(first.tokens)] == first.tokens


def test_a_long_last_message_drives_out_all_older_turns() -> None:
    prompt = window().prompt([SYSTEM, *turns("a", "b", "c" * 60)])
    assert (said(prompt), prompt.left) == (f"SYS{'c' * 60}", 1)


def test_the_longest_message_leaves_one_place() -> None:
    view = window()
    assert len(view.prompt(turns("a" * 63)).tokens) == 63
    with pytest.raises(ContextFullError):
        view.prompt(turns("a" * 64))


def test_a_refused_message_drives_nothing_out() -> None:
    view, talk = window(), turns("a" * 10, "b" * 10)
    with pytest.raises(ContextFullError):
        view.prompt([*talk, Message("user", "c" * 64)])
    assert said(view.prompt([*talk, Message("user", "c")])) == "a" * 10 + "b" * 10 + "c"


def test_an_answer_goes_on_behind_its_question() -> None:
    talk = [SYSTEM, *turns("a" * 10, "b" * 10, "c" * 10)]
    prompt = window().resume(talk, [ord("d")] * 20)
    assert (said(prompt), prompt and prompt.left) == (f"SYS{'c' * 10}{'d' * 20}", 1)


def test_an_answer_without_older_turns_cannot_go_on() -> None:
    assert window().resume([SYSTEM, *turns("a" * 10)], [1] * 30) is None


def test_an_answer_that_is_too_long_by_itself_cannot_go_on() -> None:
    talk = turns("a" * 5, "b" * 5, "c" * 10)
    assert window().resume(talk, [1] * 47) is None
    assert said(window().resume(talk, [1] * 46)) == "c" * 10 + "\1" * 46


def test_an_edit_behind_what_has_left_brings_it_back() -> None:
    view = window()
    talk = turns("a" * 10, "b" * 20, "c" * 10, "d" * 20, "e")
    assert view.prompt(talk).left == 1
    assert said(view.prompt(turns("x" * 10))) == "x" * 10
    assert said(view.prompt([*talk[:2], Message("user", "y")])) == "a" * 10 + "b" * 20 + "y"


@pytest.mark.parametrize("seed", range(30))
def test_every_prompt_is_the_system_text_and_the_last_whole_turns(seed: int) -> None:
    dice = random.Random(seed)
    view, talk = window(), [SYSTEM] if seed % 2 else []
    head = said(Prompt(encode(talk)))
    for number in range(40):
        talk.append(Message("user", chr(97 + number % 26) * dice.randint(1, 50)))
        if dice.random() < 0.2:
            talk.append(Message("user", "again"))  # the answer before was cancelled
        text = said(view.prompt(talk))
        assert len(text) < CAPACITY
        starts = [n for n, message in enumerate(talk) if message.role == "user"]
        assert text in {head + said(Prompt(encode(talk[n:]))) for n in starts}
        talk.append(Message("assistant", chr(65 + number % 26) * dice.randint(1, 30)))
