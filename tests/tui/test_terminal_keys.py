from __future__ import annotations

from textual._xterm_parser import XTermParser

from tests.tui.driving import until
from tests.tui.prompt_host import Host, paste


async def test_a_line_break_as_terminals_send_it() -> None:
    host = Host()
    keys = [
        "\n",
        "\x1b\r",
        "\x1b[13;2u",
        "\x1b[13;3u",
        "\x1b[106;5u",
        "\x1b[27;2;13~",
        "\x1b[27;3;13~",
    ]
    async with host.run_test() as pilot:
        for key in keys:
            parser = XTermParser()
            for event in [*parser.feed(f"a{key}b"), *parser.feed("")]:
                pilot.app.post_message(event)
            await pilot.pause()
            assert (key, host.prompt.text) == (key, "a\nb")
            host.prompt.load_text("")
    assert host.sent == []


async def test_enter_as_terminals_send_it() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for count, key in enumerate(["\r", "\x1b[13u", "\x1b[109;5u"], 1):
            parser = XTermParser()
            for event in [*parser.feed(f"a{key}"), *parser.feed("")]:
                pilot.app.post_message(event)
            await until(pilot, lambda: len(host.sent) == count)  # noqa: B023 - awaited at once
    assert host.sent == [("a", "a")] * 3


async def test_undo_has_a_key_that_no_shell_takes() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for key in ("\x1f", "\x1b[47;5u", "\x1b[45;6u"):
            await paste(pilot, "line\n" * 12)
            await pilot.press("backspace")
            assert host.prompt.text == ""
            for event in XTermParser().feed(key):
                pilot.app.post_message(event)
            await pilot.pause()
            assert (key, host.prompt.text) == (key, "line\n" * 12)
            host.prompt.load_text("")
