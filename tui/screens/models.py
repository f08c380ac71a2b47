"""What can be had and what is here, in one table: fetch, choose, check, remove.

Nothing goes over the network before Enter or `h` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Input

from edgespec.shelf.orders import Quote
from edgespec.shelf.row import Row
from model_registry.sizes import human_size
from tui.download import Download
from tui.downloads import Downloads
from tui.screens.ask import AskScreen
from tui.shelf_messages import Detailed, DraftJudged, Quoted, RemovalPlanned
from tui.shelf_view import ShelfView

if TYPE_CHECKING:
    from edgespec.settings import Load


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What to load in the running conversation."""

    model: str | None
    """As `Load.model`: None for the model that comes along."""
    draft: str | None
    """As `Load.draft`: None for the pair's own, if a pair is chosen."""


class ModelsScreen(ShelfView[ModelChoice | None]):
    """Dismisses with what to load, or with None."""

    CSS_PATH = "models.tcss"
    AUTO_FOCUS = "ModelTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Find", key_display="/"),
        Binding("h", "hub", "Hub"),
        Binding("d", "draft", "Draft"),
        Binding("p", "pause", "Pause/go on"),
        Binding("c", "cancel", "Cancel"),
        Binding("v", "verify", "Verify"),
        Binding("i", "details", "Details"),
        Binding("delete", "remove", "Remove", key_display="del"),
        Binding("escape", "back", "Back"),
    ]

    def __init__(
        self, downloads: Downloads, current: Load, held: Mapping[str, int] | None = None
    ) -> None:
        """`current`: what answers now; `held`: bytes by device that it would give back."""
        super().__init__(downloads, current, held or {})
        self.asked_hub = False
        """Whether anything was sent to it."""

    # What the user does

    @on(DataTable.RowHighlighted)
    def _moved(self) -> None:
        self.tell_about()
        self.offer_keys()

    @on(DataTable.RowSelected)
    def _use(self) -> None:
        row, view = self.row, self.view
        if row is None:
            return
        if view and view.state == "done":
            self.dismiss(ModelChoice(view.stored, None))
        elif view and view.at_work:
            self.say("It is on its way: p pauses it, c cancels it.")
        elif view or row.where == "unfinished":
            self._go_on(view.row if view else row)
        elif row.where != "here":
            self.say(f"Looking at what {row.name} would bring…")
            self.asked_hub |= row.size is None  # only the hub knows it
            self.ask_quote(row, self.load, self.held)
        elif not row.whole:
            self.say(f"Files of {row.name} are gone. Remove it, then fetch it again.")
        elif self.uses(row, self.load.model):
            self.say(f"{row.name} is what answers already.")
        else:
            self.dismiss(ModelChoice(None if row.kind == "builtin" else row.reference, None))

    @on(Input.Changed)
    def _typed(self) -> None:
        self.draw()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self.filter.value.strip():
            self.table.focus()
        self.action_hub()

    def action_filter(self) -> None:
        """Write what the rows must hold."""
        self.filter.focus()

    def action_hub(self) -> None:
        """Send what stands in the filter to the hub, and only now."""
        text = self.filter.value.strip()
        if text:
            self.say(f"Asking the hub for {text!r}…")
            self.asked_hub = True
            self.ask_hub(text)
        else:
            self.filter.focus()
            self.say("Write a part of a name: the hub is asked for that.")

    def action_draft(self) -> None:
        """Let the row guess for the model that answers, or no longer."""
        row = self.row
        if row is None:
            return
        if row.where != "here":
            self.say("A draft must be here first: Enter fetches it.")
        elif row.kind == "pair":
            self.say("A pair brings a draft of its own: Enter loads both.")
        elif self.load.draft and self.uses(row, self.load.draft):
            self.dismiss(ModelChoice(self.load.model, "none"))
        else:
            self.say(f"Comparing the vocabulary of {row.name} with that of the target…")
            self.judge_draft(self.load.model, row)

    def action_pause(self) -> None:
        """Stop a download for now, or go on with it."""
        row, view = self.row, self.view
        if view and view.at_work:
            self.downloads.pause(view.row.key)
            self.poll()
        elif view and view.state != "done":
            self._go_on(view.row)
        elif row and row.where == "unfinished":
            self._go_on(row)

    def action_cancel(self) -> None:
        """Give a download up, or the check of files."""
        row, view = self.row, self.view
        if row and row.key in self.checks:
            self.stop_check(row.key)
        elif view and view.state == "done":
            self.downloads.dismiss(view.row.key)
            self.poll()
        elif view and view.state != "removing":
            self._ask_what_to_keep(view)

    def action_verify(self) -> None:
        """Read every byte of a row that is here and compare."""
        row = self.row
        if row is None or row.where != "here" or row.key in self.checks:
            return
        if row.kind == "builtin":
            self.say("It belongs to the installation, which knows no digest of it.")
            return
        self.checks[row.key] = 0.0
        self.draw()
        self.check_files(row)

    def action_details(self) -> None:
        """Show all that is known about the row."""
        if row := self.row:
            self.read_details(row)

    def action_remove(self) -> None:
        """Remove a row that is here, or what has come of it, after asking."""
        row = self.row
        if row is None or row.where not in {"here", "unfinished"}:
            return
        if row.kind == "builtin":
            self.say("It belongs to the installation, and stays with it.")
        elif row.key in self.checks:
            self.say("Its files are being read: c stops that.")
        else:
            self.plan_removal(row)

    def action_back(self) -> None:
        """From the filter to the table, from there back to where the user came from."""
        if self.filter.has_focus:
            self.table.focus()
        else:
            self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer in the footer only the keys that would do something."""
        row, view = self.row, self.view
        here = row is not None and row.where == "here"
        begun = row is not None and row.where == "unfinished"
        match action:
            case "draft":
                return here and row is not None and row.kind != "pair"
            case "verify":
                return here
            case "remove":
                return here or begun
            case "pause":
                return begun or (view is not None and view.state != "done")
            case "cancel":
                return view is not None or (row is not None and row.key in self.checks)
            case _:
                return True

    # What follows from it

    @on(Quoted)
    def _quoted(self, event: Quoted) -> None:
        quote = event.quote
        self.say("")
        answers = [("yes", "Fetch it")]
        if quote.row.kind != "pair":
            answers.append(("draft", "Fetch it with a draft that fits, if one is known"))
        answers.append(("no", "Not now"))

        def decide(answer: str | None) -> None:
            if answer in {"yes", "draft"}:
                self._go_on(replace(quote.row, draft="auto" if answer == "draft" else None))

        self.app.push_screen(
            AskScreen(f"Fetch {quote.row.name}?", self._words(quote), answers), decide
        )

    @on(DraftJudged)
    def _draft_judged(self, event: DraftJudged) -> None:
        if event.ok and self.app.screen is self:
            self.dismiss(ModelChoice(self.load.model, event.row.reference))
        else:
            self.say(event.words)

    @on(Detailed)
    def _detailed(self, event: Detailed) -> None:
        view = self._views.get(event.row.key)
        told = [view.note, ""] if view and view.note else []
        self.app.push_screen(AskScreen(event.row.name, [*told, *event.lines]))

    @on(RemovalPlanned)
    def _removal_planned(self, event: RemovalPlanned) -> None:
        row, lines = event.row, list(event.lines)
        if self.uses(row, self.load.model) or self.uses(row, self.load.draft or ""):
            lines.append("It is in use: this conversation goes on, the next one cannot load it.")

        def decide(answer: str | None) -> None:
            if answer == "yes":
                self.remove_row(row)

        answers = [("no", "Keep it"), ("yes", "Remove it")]
        self.app.push_screen(AskScreen(f"Remove {row.name}?", lines, answers), decide)

    def _ask_what_to_keep(self, view: Download) -> None:
        sizes = f"{human_size(view.done)} of {human_size(view.total or view.row.size or 0)}"
        answers = [
            ("no", "Leave it as it is"),
            ("keep", "Give it up for now, and keep what has come"),
            ("discard", "Give it up, and throw away what has come"),
        ]

        def decide(answer: str | None) -> None:
            if answer in {"keep", "discard"}:
                self.downloads.cancel(view.row.key, keep=answer == "keep")
                self.poll()

        lines = [f"{sizes} have come.", view.note] if view.note else [f"{sizes} have come."]
        self.app.push_screen(AskScreen(f"Give up {view.row.name}?", lines, answers), decide)

    def _words(self, quote: Quote) -> list[str]:
        fit = quote.row.fit
        place = {
            "GPU": "on the GPU",
            "partly": "partly on the GPU",
            "RAM": "in RAM",
            "no": "not at all: there is not the memory for it",
        }.get(fit.where)
        guess = " (guessed from the size)" if fit.estimated else ""
        return [*quote.lines(), f"It would run {place}{guess}."] if place else quote.lines()

    def _go_on(self, row: Row) -> None:
        self.downloads.start(row)
        self.poll()
