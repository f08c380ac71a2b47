"""Choosing who answers."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from edgespec.personas import Persona, Personas
from tests.tui.driving import until
from tests.tui.hosting import Host, picture, words
from tui.screens.persona import PersonaScreen, preview

LONG = "\n".join(f"Rule {number}: [be] brief." for number in range(60))
FOUND = {
    one.name: one
    for one in (
        Persona("plain", "Plain", "as it is", ""),
        Persona("coder", "Coder", "code first", "You code.", {"temperature": 0.2}, "some-pair"),
        Persona("mine", "My [b]own[/b]", "", LONG, {}, None, "/home/me/personas/mine.yaml"),
    )
}
BROKEN = "/home/me/personas/bad.yaml: there is no key systm. Did you mean system?"


def host(current: str = "", *, problems: tuple[str, ...] = ()) -> Host:
    return Host(PersonaScreen(Personas(FOUND, problems), current))


async def shown(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, PersonaScreen))


def test_the_preview_says_all_of_a_persona() -> None:
    assert preview(FOUND["coder"]).splitlines() == [
        "Coder",
        "code first",
        "",
        "From      comes with EdgeSpec",
        "By name   --persona coder",
        "Sampling  temperature 0.2; the rest as you set it",
        "Prefers   some-pair",
        "",
        "System text",
        "",
        "You code.",
    ]
    plain = preview(FOUND["plain"])
    assert "Sampling  as you set it" in plain
    assert "Prefers   no model in particular" in plain
    assert plain.endswith("No system text.")
    assert "From      /home/me/personas/mine.yaml" in preview(FOUND["mine"])


def test_no_text_of_a_persona_commands_the_terminal() -> None:
    odd = Persona("a", "b\x1b[2J", "c\x07", "d\x9b2J", {}, "e\x1b", "f\x1b")
    assert not set("\x1b\x07\x9b") & set(preview(odd))


@pytest.mark.parametrize("size", [(80, 24), (50, 16), (130, 40)])
async def test_the_one_in_use_is_where_it_begins(size: tuple[int, int]) -> None:
    app = host("coder")
    async with app.run_test(size=size) as pilot:
        await shown(pilot)
        drawn = picture(pilot)
        assert "Coder (in use)" in drawn
        assert "Plain" in drawn
        assert "code first" in drawn
        assert "Esc goes back" in drawn or size[0] < 60
        await pilot.press("enter")
        await until(pilot, lambda: bool(app.results))
    assert app.results == [FOUND["coder"]]


async def test_the_preview_follows_the_cursor() -> None:
    app = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "(in use)" not in picture(pilot)
        assert words(pilot, "#preview").startswith("Plain")
        await pilot.press("down")
        await until(pilot, lambda: words(pilot, "#preview").startswith("Coder"))
        assert "You code." in picture(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: bool(app.results))
    assert app.results == [FOUND["coder"]]


async def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    async with host().run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("end")
        await until(pilot, lambda: "Rule 0" in words(pilot, "#preview"))
        drawn = picture(pilot)
        assert drawn.count("My [b]own[/b]") == 2
        assert "Rule 0: [be] brief." in drawn


async def test_a_long_text_can_be_read_to_its_end_and_begins_anew() -> None:
    two = {name: Persona(name, name, "", LONG) for name in ("one", "two")}
    async with Host(PersonaScreen(Personas(two), "two")).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "Rule 59" not in picture(pilot)
        await pilot.press("tab", "end")
        await pilot.wait_for_animation()
        await until(pilot, lambda: "Rule 59" in picture(pilot))
        await pilot.press("shift+tab", "home")
        await until(pilot, lambda: "Rule 0" in picture(pilot))


async def test_escape_changes_nothing() -> None:
    app = host("coder")
    async with app.run_test() as pilot:
        await shown(pilot)
        await pilot.press("down", "escape")
        await until(pilot, lambda: bool(app.results))
    assert app.results == [None]


async def test_what_could_not_be_read_is_told() -> None:
    async with host(problems=(BROKEN,)).run_test(size=(90, 24)) as pilot:
        await shown(pilot)
        assert words(pilot, "#problems").startswith(f"Left out: {BROKEN}")
        assert "there is no key systm" in picture(pilot)
        assert "NAME.yaml each" in picture(pilot)


async def test_a_name_that_is_gone_begins_at_the_first() -> None:
    app = host("gone")
    async with app.run_test() as pilot:
        await shown(pilot)
        assert app.screen.query_one(OptionList).highlighted == 0
        await pilot.click(OptionList, offset=(4, 2))
        await until(pilot, lambda: bool(app.results))
    assert app.results == [FOUND["coder"]]
