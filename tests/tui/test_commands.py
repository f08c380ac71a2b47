from __future__ import annotations

from itertools import product

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import TextArea

from tests.tui.driving import (
    eventually,
    make_app,
    prompt,
    questions,
    ready,
    screen,
    settled,
    until,
)
from tests.tui.fake_session import FakeSession, answer
from tests.tui.prompt_host import Host, paste
from tui.commands import (
    COMMANDS,
    as_message,
    command_bindings,
    command_word,
    escapes,
    matching,
    misuse,
    named,
    parse,
    unknown,
)
from tui.palette import CommandProvider
from tui.screens.persona import PersonaScreen
from tui.widgets.prompt import Prompt

ALL = (
    "help new history models tune persona attach detach model draft method system set copy edit again"
    " continue branch think tint panel rename folder export quit"
)


def test_every_name_is_one_command_and_executes_nothing() -> None:
    assert [command.name for command in COMMANDS] == ALL.split()
    names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
    assert len(names) == len(set(names))
    for name in names:
        assert command_word(f"/{name}") == name
        assert named(name.upper()) is named(name) is not None
    assert not {"run", "exec", "shell", "bash", "python"} & set(names)


def test_a_key_is_bound_once_and_is_not_one_that_writing_needs() -> None:
    app_keys = [key for binding in command_bindings() for key in binding.key.split(",")]
    assert len(app_keys) == len(set(app_keys))
    writing: set[str] = set()
    for bindings in (TextArea._merge_bindings(), Prompt._merge_bindings()):
        writing |= set(bindings.key_to_bindings)
    # What a terminal cannot tell from Tab, Enter, Backspace and Esc, what tmux and flow control take.
    writing |= {
        "ctrl+i",
        "ctrl+m",
        "ctrl+h",
        "ctrl+left_square_bracket",
        "ctrl+b",
        "ctrl+s",
        "ctrl+p",
    }
    assert not writing & set(app_keys)


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/help", "help", ""),
        ("/HELP ", "help", ""),
        ("/bye", "quit", ""),
        ("/model  a b ", "model", "a b"),
        ("/system one\ntwo\n", "system", "one\ntwo"),
        ("/system\none", "system", "one"),
        ("/attach /usr/bin", "attach", "/usr/bin"),
    ],
)
def test_a_command_and_its_argument(text: str, name: str, argument: str) -> None:
    given = parse(text)
    assert given is not None
    assert (given[0].name, given[1]) == (name, argument)


@pytest.mark.parametrize(
    "text",
    ["", "/", "//help", "/usr/bin", "/etc/", "/help/", "/help, please", "/help.", " /help", "a /help",
     "// code", "/* code */", "/2", "/^a$/", "help"],
)  # fmt: skip
def test_what_is_no_command(text: str) -> None:
    assert command_word(text) is None
    assert parse(text) is None


def test_any_message_can_be_sent_as_it_is() -> None:
    for parts in product(
        ("", "/", "//", "///"), ("", "help", "usr"), ("", " ", "/", ".", "\n"), ("", "x")
    ):
        text = "".join(parts)
        typed = as_message(text)
        assert command_word(typed) is None
        assert (typed[1:] if escapes(typed) else typed) == text
        assert typed in (text, f"/{text}")


def test_a_begun_word_finds_commands_by_name_alias_and_part() -> None:
    def names(word: str) -> list[str]:
        return [command.name for command in matching(word)]

    assert names("") == [command.name for command in COMMANDS]
    assert names("model") == ["model", "models"]
    assert names("MO") == ["models", "model"]
    assert names("by") == ["quit"]
    assert names("port") == ["export"]
    assert names("t")[:3] == ["tune", "think", "tint"]
    assert names("xyz") == []


def test_an_unknown_word_is_answered_with_near_ones() -> None:
    assert "/models or /model" in unknown("modles") or "/model or /models" in unknown("modles")
    assert "/quit" in unknown("bey")
    assert "/help lists them" in unknown("qqqqqq")
    assert all("//" in unknown(word) for word in ("modles", "qqqqqq"))


def test_what_cannot_be_run_like_this() -> None:
    def why(text: str) -> str:
        given = parse(text)
        assert given is not None
        return misuse(*given)

    assert why("/rename") == "Write it as /rename TITLE"
    assert why("/rename x") == why("/copy") == why("/copy code") == why("/quit") == ""
    assert "nothing after it" in why("/quit smoking")


def test_the_fixed_words_of_an_argument() -> None:
    words = {command.name: command.words for command in COMMANDS if command.words}
    assert words == {"draft": ("none",), "copy": ("code", "all"), "branch": ("previous", "next")}


async def test_a_command_is_given_with_its_whole_argument() -> None:
    host = Host()
    long = "\n".join("abcdefghijkl")
    async with host.run_test() as pilot:
        await pilot.press(*"/BYE", "enter")
        await pilot.press(*"/system be ")
        await paste(pilot, long)
        await pilot.press("enter")
        assert host.prompt.text == ""
        await pilot.press("up")
        assert host.prompt.shown == "/system be [pasted 12 lines #1]"
    assert host.commands == [("quit", ""), ("system", f"be {long}")]
    assert host.sent == []


async def test_a_command_is_given_while_nothing_can_be_sent() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.prompt.refusal = "The answer is still coming"
        await pilot.press(*"/quit", "enter")
        assert host.commands == [("quit", "")]
        assert host.prompt.refusal == "The answer is still coming"
        await pilot.press("a", "enter")
        assert host.prompt.hint == "The answer is still coming"
    assert host.sent == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [("/modle x", "/model"), ("/rename", "/rename TITLE"), ("/quit now", "// sends it as text")],
)
async def test_what_is_no_command_stays_with_a_hint(text: str, hint: str) -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press(*text, "escape", "enter")
        assert hint in host.prompt.hint
        assert host.prompt.text == text
        assert host.sent == host.commands == []
        await pilot.press("x")
        assert host.prompt.hint == ""


async def test_a_hint_shows_brackets_as_they_are() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.prompt.hint = "[bold]a[/] [code|all]"
        await pilot.pause()
        rows = [strip.text for strip in pilot.app.screen._compositor.render_strips()]
        assert host.prompt.hint in "\n".join(rows)


async def test_a_message_that_begins_with_a_slash() -> None:
    host = Host()
    cases = [
        ("//help me", "/help me"),
        ("///help me", "//help me"),
        ("/usr/bin/env", "/usr/bin/env"),
        ("// code", "// code"),
        ("/help, please", "/help, please"),
    ]
    async with host.run_test() as pilot:
        for typed, _ in cases:
            await pilot.press(*typed, "enter")
            assert host.prompt.text == ""
            await pilot.press("up")
            assert host.prompt.text == typed
            host.prompt.load_text("")
    assert host.sent == [(sent, sent) for _, sent in cases]
    assert host.commands == []


async def test_a_pasted_text_is_no_command_when_it_is_folded() -> None:
    host = Host()
    text = "//help\n" * 9
    async with host.run_test() as pilot:
        await paste(pilot, text)
        await pilot.press("enter")
        await paste(pilot, text[1:])
        await pilot.press("enter")
    assert [sent for sent, _ in host.sent] == [text, text[1:]]
    assert host.commands == []


class CommandScreen(Screen[None]):
    def __init__(self) -> None:
        super().__init__()
        self.prompt = Prompt()
        self.run: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        yield self.prompt

    def action_run_command(self, name: str, argument: str) -> None:
        self.run.append((name, argument))


class PaletteApp(App[None]):
    COMMANDS = App.COMMANDS | {CommandProvider}

    def __init__(self) -> None:
        super().__init__()
        self.commands = CommandScreen()

    def on_mount(self) -> None:
        self.push_screen(self.commands)


async def choose(pilot: Pilot[None], words: str) -> None:
    await pilot.press("ctrl+p", *words)
    await eventually(lambda: bool(pilot.app.screen.query("CommandList")))
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause()


async def test_the_palette_runs_a_command() -> None:
    app = PaletteApp()
    async with app.run_test() as pilot:
        await choose(pilot, "/again")
        await eventually(lambda: bool(app.commands.run))
    assert app.commands.run == [("again", "")]


async def test_the_palette_lets_an_argument_be_written() -> None:
    app = PaletteApp()
    async with app.run_test() as pilot:
        app.commands.prompt.focus()
        await pilot.press(*"text")
        await choose(pilot, "/rename")
        await eventually(lambda: app.commands.prompt.text == "/rename ")
        await pilot.press("x")
        assert app.commands.prompt.text == "/rename x"
        await pilot.press("ctrl+z", "ctrl+z")
        assert app.commands.prompt.text == "text"
    assert app.commands.run == []


async def test_the_palette_runs_a_command_that_opens_a_screen() -> None:
    app = make_app(FakeSession())
    async with app.run_test() as pilot:
        await ready(pilot)
        await choose(pilot, "/persona")
        await until(pilot, lambda: isinstance(app.screen, PersonaScreen))


async def test_the_palette_lists_every_command_where_it_can_run() -> None:
    app = PaletteApp()
    async with app.run_test():
        hits = [hit async for hit in CommandProvider(app.commands).discover()]
        assert [hit.text for hit in hits] == [f"/{name}" for name in ALL.split()]
        found = [hit.text async for hit in CommandProvider(app.commands).search("drafted")]
        assert "/help" not in found
        assert [hit async for hit in CommandProvider(Screen()).discover()] == []


async def test_a_message_that_looks_like_a_command_is_changed_and_sent_as_a_message() -> None:
    session = FakeSession(answer("one"), answer("two"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await pilot.press(*"//help me", "enter")
        await settled(pilot)
        await pilot.press(*"draft")
        screen(pilot).action_run_command("edit", "")
        await until(pilot, lambda: prompt(pilot).text == "//help me")
        await pilot.press("ctrl+underscore")
        assert prompt(pilot).text == "draft"
        await pilot.press("ctrl+y", "!", "enter")
        await settled(pilot)
        assert questions(pilot) == ["/help me!"]
