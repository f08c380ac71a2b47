"""The first start: what machine this is, and three ways to go on, none of which keeps anybody waiting."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from edgespec import first_run
from edgespec.first_run import Offer
from edgespec.shelf.row import Row
from model_registry.sizes import human_size
from tui.widgets.turn import printable

Action = Literal["start", "fetch", "choose"]

_LOOKING = "Looking at this machine…"
_START = "1  Start with the small built-in model, at once"
_CHOOSE = "3  Choose another"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FirstChoice:
    """How to go on. The built-in model answers meanwhile, whatever was chosen."""

    action: Action
    row: Row | None = None
    """What to fetch."""


class FirstRunScreen(ModalScreen[FirstChoice]):
    """Dismisses with how to go on, and is not due again. `look` is called in a thread."""

    CSS_PATH = "first_run.tcss"
    AUTO_FOCUS = "OptionList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,escape", "choose('start')", "Start"),
        Binding("2", "choose('fetch')", "Fetch"),
        Binding("3", "choose('choose')", "Choose another"),
    ]

    @dataclass
    class Looked(Message, bubble=False):
        """The machine is known; None where it could not be looked at."""

        offer: Offer | None

    def __init__(self, look: Callable[[], Offer] = first_run.look) -> None:
        super().__init__()
        self._look = look
        self._offer: Offer | None = None
        self._text = Static(_LOOKING, id="found", markup=False)
        self._options = OptionList(
            Option(_START, id="start"),
            Option("2  …", id="fetch", disabled=True),
            Option(_CHOOSE, id="choose"),
            markup=False,
        )

    def compose(self) -> ComposeResult:
        """What was found, and what can be done."""
        with Vertical():
            yield Static("Welcome to EdgeSpec", classes="title", markup=False)
            with VerticalScroll(can_focus=False):
                yield self._text
            yield self._options
            yield Static(
                "Nothing has been sent or fetched so far. /models shows all there is at any time.",
                classes="hint",
                markup=False,
            )

    def on_mount(self) -> None:
        """Draw first, then look: in a thread that the end of the program does not wait for."""
        thread = threading.Thread(target=self._find_out, name="look at the machine", daemon=True)
        self.call_after_refresh(thread.start)

    @on(Looked)
    def _looked(self, event: Looked) -> None:
        self._offer = offer = event.offer
        if offer is None:
            self._text.update("What this machine has could not be found out; details in the log.")
            return
        self._text.update(printable("\n".join(sentences(offer))))
        if offer.row is None:
            self._options.replace_option_prompt("fetch", "2  Nothing to fetch for this machine")
            return
        size = f" ({human_size(offer.row.size)})" if offer.row.size else ""
        self._options.replace_option_prompt(
            "fetch", printable(f"2  Fetch {offer.row.name}{size} while the small one answers")
        )
        self._options.enable_option("fetch")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.action_choose(event.option_id or "start")

    def action_choose(self, action: str) -> None:
        """Go on."""
        row = self._offer.row if self._offer else None
        match action:
            case "fetch" if row is not None:
                self._leave(FirstChoice("fetch", row))
            case "choose":
                self._leave(FirstChoice("choose"))
            case "start":
                self._leave(FirstChoice("start"))

    def _leave(self, choice: FirstChoice) -> None:
        first_run.dismiss()
        self.dismiss(choice)

    def _find_out(self) -> None:
        offer: Offer | None = None
        try:
            offer = self._look()
        except Exception:
            log.exception("the machine could not be looked at")
        with suppress(RuntimeError):  # the app may have ended meanwhile
            self.post_message(self.Looked(offer))


def sentences(offer: Offer) -> list[str]:
    """The offer in plain words."""
    lines = ["This machine:", *(f"  {one}" for one in (*offer.hardware, *offer.hints)), ""]
    if offer.row is None:
        return [*lines, offer.why]
    row = offer.row
    size = human_size(row.size) if row.size else "of a size that the hub knows"
    lines.append(f"Proposed: {row.name}, {size}, for {row.use}. Licence: {row.licence}.")
    return [*lines, f"  {offer.why}", f"  {offer.brings}"]
