"""Who is to answer: the personas, and what the one at the cursor says and sets."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from edgespec.personas import BUILTIN, Persona, Personas, user_folder
from tui.widgets.turn import printable


def preview(persona: Persona) -> str:
    """All that a persona is, for reading."""
    source = "comes with EdgeSpec" if persona.source == BUILTIN else persona.source
    chosen = ", ".join(f"{key} {value:g}" for key, value in persona.sampling.items())
    lines = [
        persona.title,
        *([persona.about] if persona.about else []),
        "",
        f"From      {source}",
        f"By name   --persona {persona.name}",
        f"Sampling  {f'{chosen}; the rest as you set it' if chosen else 'as you set it'}",
        f"Prefers   {persona.pair or 'no model in particular'}",
        "",
        *(["System text", "", persona.system] if persona.system else ["No system text."]),
    ]
    return printable("\n".join(lines))


class PersonaScreen(Screen[Persona | None]):
    """Ends with the persona that was taken, or with None."""

    CSS_PATH = "persona.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-wide")]  # noqa: RUF012 - as Textual has it
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back")]

    def __init__(self, personas: Personas, current: str) -> None:
        """`current` is the name of the one in use; empty for none."""
        super().__init__()
        self._current = current
        self._personas = tuple(personas.found.values())
        self._problems = tuple(printable(f"Left out: {text}") for text in personas.problems)
        self._list = OptionList(*map(self._row, self._personas), id="personas", markup=False)
        self._preview = Static(id="preview", markup=False)
        self._scroll = VerticalScroll(self._preview, id="about")

    def compose(self) -> ComposeResult:
        """The list, beside or above the preview; below it what could not be read."""
        yield Static("Who answers?  Enter takes one, Esc goes back", id="headline", markup=False)
        yield Container(self._list, self._scroll, id="body")
        yield Static(
            "\n".join([*self._problems, printable(f"Your own: {user_folder()}, NAME.yaml each")]),
            id="problems",
            markup=False,
        )
        yield Footer()

    def on_mount(self) -> None:
        """Begin at the one in use."""
        names = [persona.name for persona in self._personas]
        start = names.index(self._current) if self._current in names else 0
        self._list.highlighted = start
        self._list.focus()
        self._show(start)

    def action_leave(self) -> None:
        """Change nothing."""
        self.dismiss(None)

    @on(OptionList.OptionHighlighted)
    def _move(self, event: OptionList.OptionHighlighted) -> None:
        self._show(event.option_index)

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._personas[event.option_index])

    def _show(self, index: int) -> None:
        self._preview.update(preview(self._personas[index]))
        self._scroll.scroll_home(animate=False)

    def _row(self, persona: Persona) -> Option:
        in_use = " (in use)" if persona.name == self._current else ""
        return Option(printable(f"{persona.title}{in_use}"))
