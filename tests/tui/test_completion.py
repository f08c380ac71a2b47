from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tests.tui.driving import eventually, until
from tests.tui.prompt_host import Host, at_once, drawn, drawn_rows, paste, threads_done
from tui.commands import COMMANDS, named
from tui.widgets.completion import argument_choices, argument_of, command_choices


def labels(host: Host) -> list[str]:
    return [choice.label for choice in host.prompt.completion._choices]


async def test_a_slash_offers_every_command_right_above_the_prompt() -> None:
    host = Host()
    async with host.run_test(size=(80, 24)) as pilot:
        assert not host.prompt.completion.display
        await pilot.press("/")
        assert labels(host) == [command.usage for command in COMMANDS]
        box = host.prompt.completion.region
        assert (box.bottom, box.height) == (host.prompt.region.y, 10)
        assert (box.x, box.width) == (host.prompt.region.x, host.prompt.region.width)
        rows = drawn(pilot)
        assert "/help" in rows[box.y + 1]
        assert COMMANDS[0].about in rows[box.y + 1]
        assert "/persona [NAME]" in rows[box.y + 6]
        await pilot.press("backspace")
        assert not host.prompt.completion.display
        assert "/help" not in "\n".join(drawn(pilot))


async def test_the_list_grows_with_nothing_around_it() -> None:
    host = Host()
    async with host.run_test(size=(80, 24)) as pilot:
        before = host.prompt.region
        await pilot.press(*"/mo")
        assert host.prompt.region == before
        box = host.prompt.completion.region
        assert (box.bottom, box.height) == (before.y, 4)
        await pilot.resize_terminal(40, 12)
        await until(pilot, lambda: host.prompt.region.width == 40)
        box = host.prompt.completion.region
        assert (box.bottom, box.width) == (host.prompt.region.y, 40)
        assert box.y >= 0
        await pilot.press("backspace", "backspace")
        assert host.prompt.completion.region.y >= 0


async def test_the_highlight_is_seen_without_colour() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/mo", "down")
        rows = [row[:9] for row in drawn_rows(host.prompt.completion)]
        assert rows == [" /models ", ">/model N"]
        await pilot.press("up", "up", "ctrl+u", "/", "up")
        assert [row[:6] for row in drawn_rows(host.prompt.completion)][-2:] == [" /expo", ">/quit"]


@pytest.mark.parametrize("key", ["tab", "enter"])
async def test_tab_and_enter_complete(key: str) -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/thi", key)
        assert host.prompt.text == "/think"
        assert not host.prompt.completion.is_open
        assert host.commands == []
        await pilot.press("enter")
        await pilot.press(*"/ren", key)
        assert host.prompt.text == "/rename "
        await pilot.press(*"x", "enter")
    assert host.commands == [("think", ""), ("rename", "x")]


async def test_up_and_down_choose_around_the_ends() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/mo", "down", "tab")
        assert host.prompt.text == "/model "
        await pilot.press("ctrl+u", *"/mo", "down", "down", "tab")
        assert host.prompt.text == "/models"
        await pilot.press("ctrl+u", "/", "up", "enter")
        assert host.prompt.text == "/quit"


async def test_a_whole_name_runs_at_once_unless_another_was_chosen() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/models", "enter")
        await pilot.press(*"/exit", "enter")
        assert host.commands == [("models", ""), ("quit", "")]
        await pilot.press(*"/model", "enter")
        assert host.prompt.text == "/model "
        await pilot.press("ctrl+u", *"/model", "down", "enter")
        assert host.prompt.text == "/models"
    assert len(host.commands) == 2


async def test_escape_closes_the_list_and_only_then_is_somebody_elses() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/he", "escape")
        assert not host.prompt.completion.is_open
        assert host.escapes == 0
        await pilot.press("escape")
        assert host.escapes == 1
        await pilot.press("l")
        assert host.prompt.completion.is_open
        await pilot.press("escape", "enter")
        assert "/help" in host.prompt.hint
    assert host.commands == []


async def test_keys_that_come_at_once_are_all_taken_in_turn() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await at_once(
            pilot, "/", "m", "o", "down", "tab", "x", "enter", "/", "h", "enter", "enter", "y"
        )
        assert host.prompt.text == "y"
    assert host.commands == [("model", "x"), ("help", "")]


async def test_walking_through_the_history_opens_no_list() -> None:
    host = Host(complete=lambda name, begun: ["one", "two"])
    async with host.run_test() as pilot:
        await pilot.press(*"/rename x", "enter", *"/help", "enter")
        await pilot.press("up")
        assert host.prompt.text == "/help"
        await pilot.press("up")
        assert host.prompt.text == "/rename x"
        await threads_done(pilot)
        assert not host.prompt.completion.is_open
        await pilot.press("down", "down")
        assert host.prompt.text == ""


async def test_fixed_words_are_offered_and_none_is_forced() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/copy ")
        assert labels(host) == ["code", "all"]
        await pilot.press("enter")
        assert host.commands == [("copy", "")]
        await pilot.press(*"/copy ", "down", "enter")
        assert host.prompt.text == "/copy code"
        await pilot.press("enter")
        await pilot.press(*"/copy a", "tab", "enter")
    assert host.commands[1:] == [("copy", "code"), ("copy", "all")]


async def test_an_argument_is_completed_with_what_the_screen_knows() -> None:
    asked: list[tuple[str, str, bool]] = []

    def complete(name: str, begun: str) -> Sequence[str]:
        asked.append((name, begun, threading.current_thread() is threading.main_thread()))
        return [
            value
            for value in ("small one", "small [two]", "large\x1b[0m")
            if value.startswith(begun)
        ]

    host = Host(complete=complete)
    async with host.run_test() as pilot:
        await pilot.press(*"/model ")
        await threads_done(pilot)
        assert labels(host) == ["small one", "small [two]", "large"]
        assert "small [two]" in "\n".join(drawn(pilot))
        await pilot.press("s")
        await threads_done(pilot)
        await pilot.press("up", "enter")
        assert host.prompt.text == "/model small [two]"
        await threads_done(pilot)
        await pilot.press("enter")
        await pilot.press(*"/new")
        await threads_done(pilot)
    assert host.commands == [("model", "small [two]")]
    assert asked[:2] == [("model", "", False), ("model", "s", False)]
    assert {name for name, _, _ in asked} == {"model"}


async def test_values_that_come_late_are_not_offered() -> None:
    gates = {name: threading.Event() for name in ("model", "draft")}

    def complete(name: str, begun: str) -> Sequence[str]:
        if begun != "a":
            gates[name].wait(30)
        return [f"{begun}-value"]

    host = Host(complete=complete)
    async with host.run_test() as pilot:
        await pilot.press(*"/model ")
        await pilot.press("a")
        await eventually(lambda: labels(host) == ["a-value"])
        gates["model"].set()
        await threads_done(pilot)
        assert labels(host) == ["a-value"]
        await pilot.press("escape", "backspace", "escape")
        await threads_done(pilot)
        assert not host.prompt.completion.is_open
        await pilot.press("ctrl+u", *"/draft ", "down")
        gates["draft"].set()
        await threads_done(pilot)
        assert labels(host) == ["none"]
        assert host.prompt.completion.moved


async def test_a_completion_that_fails_disturbs_nobody() -> None:
    def complete(name: str, begun: str) -> Sequence[str]:
        raise OSError("gone")

    host = Host(complete=complete)
    async with host.run_test() as pilot:
        await pilot.press(*"/model abc")
        await eventually(lambda: all(worker.is_finished for worker in pilot.app.workers))
        await pilot.press("enter")
    assert host.commands == [("model", "abc")]


async def test_the_mouse_chooses_and_the_prompt_keeps_the_keyboard() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/mo")
        await pilot.click(host.prompt.completion, offset=(3, 2))
        await pilot.pause()
        assert host.prompt.text == "/model "
        await pilot.press("x", "enter")
    assert host.commands == [("model", "x")]


async def test_what_is_completed_can_be_undone() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*"/thi", "tab", "ctrl+z")
        assert host.prompt.text == "/thi"
        assert host.prompt.completion.is_open


async def test_text_offers_nothing() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for text in ("a /help", "//help", "/usr/bin", "/help\nme", " /he"):
            host.prompt.load_text(text)
            assert not host.prompt.completion.is_open
        host.prompt.load_text("")
        await paste(pilot, "/he\n" * 12)
        assert not host.prompt.completion.is_open


def test_what_is_offered() -> None:
    assert [choice.text for choice in command_choices("/mo")] == ["/models", "/model "]
    assert command_choices("/models") == []
    assert command_choices("/xyz") == command_choices("/a b") == command_choices("") == []
    copy = named("copy")
    assert copy is not None
    assert argument_of("/copy ") == (copy, "")
    assert argument_of("/COPY  a b") == (copy, " a b")
    assert argument_of("/copy") is argument_of("/new ") is argument_of("/copy a\nb") is None
    assert [c.text for c in argument_choices(copy, "", ["x", "code"])] == [
        "/copy code", "/copy all", "/copy x",
    ]  # fmt: skip
    assert argument_choices(copy, "code", ["code"]) == []
    assert len(argument_choices(copy, "", [str(n) for n in range(1000)])) == 52
