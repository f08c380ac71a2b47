"""Small windows, other terminals' keys, no colour: the app stays of use."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.pilot import Pilot

from tests.tui.driving import (
    answers,
    drawn,
    make_app,
    prompt,
    questions,
    ready,
    screen,
    send,
    settled,
    transcript,
    until,
)
from tests.tui.fake_session import FakeSession, Gate, answer

TALL = "\n".join(f"line {number}" for number in range(30))


async def terminal_sends(pilot: Pilot[None], sequence: str) -> None:
    """What the app makes of bytes that a terminal sends."""
    for event in XTermParser().feed(sequence):
        assert isinstance(event, events.Key)
        pilot.app.post_message(event)
    await pilot.pause()


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12), (30, 8), (20, 6)])
async def test_a_question_is_answered_in_any_window(size: tuple[int, int]) -> None:
    async with make_app(FakeSession(answer("short"))).run_test(size=size) as pilot:
        await ready(pilot)
        await send(pilot, "hm")
        await settled(pilot)
        assert "short" in drawn(pilot)
        await pilot.press("x")
        assert "x" in drawn(pilot).splitlines()[prompt(pilot).content_region.y]
        assert screen(pilot).region.contains_region(prompt(pilot).region)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (30, 10)])
async def test_a_long_message_leaves_room_for_what_it_is_about(size: tuple[int, int]) -> None:
    async with make_app(FakeSession(answer(TALL))).run_test(size=size) as pilot:
        await ready(pilot)
        await send(pilot, "hm")
        await settled(pilot)
        prompt(pilot).load_text(TALL)
        await pilot.pause()
        assert transcript(pilot).size.height >= size[1] // 4
        assert prompt(pilot).size.height >= 1


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (500, 3), (3, 100)])
async def test_no_window_is_too_odd(size: tuple[int, int]) -> None:
    gate = Gate()
    session = FakeSession([*answer(TALL)[:-1], gate, *answer("more")[1:]])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, TALL)
        await until(pilot, gate.reached.is_set)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        gate.open()
        await settled(pilot)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "more" in drawn(pilot)


@pytest.mark.parametrize(
    ("where", "sequence"),
    [
        ("everywhere: Ctrl+J", "\n"),
        ("Alt+Enter in xterm, GNOME, tmux, and on a Mac where Option is Meta", "\x1b\r"),
        ("Shift+Enter in kitty, Ghostty, WezTerm, iTerm2", "\x1b[13;2u"),
        ("Alt+Enter in the same", "\x1b[13;3u"),
    ],
)
async def test_ways_to_a_new_line(where: str, sequence: str) -> None:
    async with make_app(FakeSession(answer("ok"))).run_test() as pilot:
        await ready(pilot)
        await pilot.press("a")
        await terminal_sends(pilot, sequence)
        await pilot.press("b")
        assert prompt(pilot).text == "a\nb", where
        await terminal_sends(pilot, "\r")
        await settled(pilot)
        assert questions(pilot) == ["a\nb"]


@pytest.mark.parametrize(
    ("where", "back", "forth"),
    [
        ("Ctrl and an arrow", "\x1b[1;5D", "\x1b[1;5C"),
        ("Option and an arrow in Terminal.app", "\x1bb", "\x1bf"),
        ("Alt and an arrow in iTerm2 and elsewhere", "\x1b[1;3D", "\x1b[1;3C"),
    ],
)
async def test_ways_over_a_word(where: str, back: str, forth: str) -> None:
    async with make_app(FakeSession()).run_test() as pilot:
        await ready(pilot)
        await pilot.press(*"one", "space", *"two")
        await terminal_sends(pilot, back)
        assert prompt(pilot).cursor_location == (0, 4), where
        await terminal_sends(pilot, forth)
        assert prompt(pilot).cursor_location == (0, 7), where


@pytest.mark.parametrize("sequence", ["\x7f", "\x08"])
async def test_both_codes_of_the_key_that_deletes(sequence: str) -> None:
    async with make_app(FakeSession()).run_test() as pilot:
        await ready(pilot)
        await pilot.press("a", "b")
        await terminal_sends(pilot, sequence)
        assert prompt(pilot).text == "a"


async def test_ctrl_z_puts_the_app_aside_and_not_the_text_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suspended: list[bool] = []
    app = make_app(FakeSession())
    monkeypatch.setattr(app, "action_suspend_process", lambda: suspended.append(True))
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("a", "b")
        await terminal_sends(pilot, "\x1a")
        assert suspended == [True]
        assert prompt(pilot).text == "ab"
        await terminal_sends(pilot, "\x1f")
        assert prompt(pilot).text in {"", "a"}, "undone by Ctrl+_, as in other shells' lines"


async def test_nothing_is_told_by_colour_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    session = FakeSession(answer("```python\nx = 1\n```"))
    app = make_app(session)
    assert app.no_color
    async with app.run_test() as pilot:
        await ready(pilot)
        await send(pilot, "hm")
        await settled(pilot)
        assert "▌ hm" in drawn(pilot), "what was asked has a bar"
        assert "x = 1" in drawn(pilot)
        assert len(answers(pilot)) == 1
