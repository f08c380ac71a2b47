"""What the models screen shows, and how it changes by what threads and downloads tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.widgets import Footer, Input, Static

from edgespec.shelf.row import Row
from edgespec.shelf.stock import BUILTIN
from tui.download import Download, foot, in_words, percent
from tui.downloads import Downloads
from tui.shelf_messages import Assessed, Checked, Checking, HubAnswered, Stocked, Told
from tui.shelf_worker import ShelfScreen
from tui.widgets.model_table import ModelTable
from tui.widgets.turn import printable

if TYPE_CHECKING:
    from edgespec.settings import Load

POLL_SECONDS = 0.25
"""Least time between two redraws of how far downloads are."""

SOMETIMES = ("draft", "verify", "remove", "pause", "cancel")
"""Actions that do something on some rows only."""

_R = TypeVar("_R")


class ShelfView(ShelfScreen[_R]):
    """A table of models with what is known about the row that the cursor is on."""

    def __init__(self, downloads: Downloads, current: Load, held: Mapping[str, int]) -> None:
        super().__init__()
        self.downloads = downloads
        self.load = current
        self.held = held
        self._stock: dict[str, Row] = {}
        self._hub: dict[str, Row] = {}
        self._views: dict[str, Download] = {}
        self.checks: dict[str, float] = {}
        """How much of a row's files was read, from 0 to 1."""
        self._offered: list[bool | None] = []
        self.filter = Input(placeholder="Filter; Enter asks the hub for it", compact=True)
        self.table = ModelTable()
        self._about = Static(id="about", markup=False)
        self._said = Static(id="said", markup=False)
        self._foot = Static(id="foot", markup=False)

    def compose(self) -> ComposeResult:
        """Filter, table, what is known about its row, what was said last, downloads, keys."""
        now = " + ".join(filter(None, [self.load.model or BUILTIN, self.load.draft]))
        yield Static(printable(f"Models    in use: {now}"), id="title", markup=False)
        yield self.filter
        yield self.table
        yield self._about
        yield self._said
        yield self._foot
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Draw first, then read."""
        self.say("Reading what is here…")
        self.poll()
        self.set_interval(POLL_SECONDS, self.poll)
        self.call_after_refresh(self.read)

    @property
    def row(self) -> Row | None:
        """The row that the cursor is on."""
        key = self.table.current
        return None if key is None else self._rows().get(key)

    @property
    def view(self) -> Download | None:
        """The download of that row."""
        return self._views.get(self.table.current or "")

    def read(self) -> None:
        """Read the store and the catalogue anew."""
        self.read_stock(self.load, self.held)

    def say(self, text: str) -> None:
        """A line that stays until the next one."""
        self._said.update(printable(text))
        self._said.display = bool(text)

    def draw(self) -> None:
        """Show the rows that match the filter."""
        text = self.filter.value
        rows = [row for row in self._rows().values() if row.matches(text)]
        states = {key: in_words(view) for key, view in self._views.items()}
        states |= {key: f"verifying {percent(share)}" for key, share in self.checks.items()}
        for row in rows:
            if row.where == "here" and row.key not in states:
                states[row.key] = self._part(row)
        self.table.show(rows, states)
        self.tell_about()
        self.offer_keys()

    def tell_about(self) -> None:
        """What is known about the row that the cursor is on."""
        row, view = self.row, self.view
        if row is None:
            nothing = "Nothing matches. Enter in the filter asks the hub."
            self._about.update(nothing if self._stock else "")
            return
        lines = [", ".join(filter(None, [row.name, row.use, row.licence]))]
        if view and view.note:
            lines.append(view.note)
        elif row.fit.why:
            guess = "Guessed from the size: " if row.fit.estimated else ""
            lines.append(guess + row.fit.why)
        self._about.update(printable("\n".join(lines)))

    def offer_keys(self) -> None:
        """Offer other keys where others do something now: to draw them costs more than the table."""
        offered = [self.check_action(action, ()) for action in SOMETIMES]
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()

    def poll(self) -> None:
        """See how far the downloads are."""
        views = {view.row.key: view for view in self.downloads.all()}
        if views == self._views:
            return
        ended = any(_ended(view, views.get(key)) for key, view in self._views.items())
        self._views = views
        line = foot(list(views.values()))
        self._foot.update(line)
        self._foot.display = bool(line)
        self.draw()
        if ended:
            self.read()

    def uses(self, row: Row, reference: str | None) -> bool:
        """Whether a row is what a reference of the running conversation means."""
        if reference is None:
            return row.kind == "builtin"
        return row.where == "here" and reference.casefold() in (row.key, row.name.casefold())

    @on(Stocked)
    def _stocked(self, event: Stocked) -> None:
        known = self._stock
        self._stock = {row.key: _as_before(row, known.get(row.key)) for row in event.stock.rows}
        for key, view in self._views.items():
            if view.state == "done" and key in self._stock and self._stock[key].where == "here":
                self.downloads.dismiss(key)
        self._hub = {key: row for key, row in self._hub.items() if key not in self._stock}
        if event.stock.problems:
            self.say(" ".join(event.stock.problems))
        elif str(self._said.content).startswith("Reading"):
            self.say("")
        self.draw()

    @on(Assessed)
    def _assessed(self, event: Assessed) -> None:
        self._stock |= {row.key: row for row in event.rows if row.key in self._stock}
        self.draw()

    @on(HubAnswered)
    def _hub_answered(self, event: HubAnswered) -> None:
        self._hub = {row.key: row for row in event.rows if row.key not in self._stock}
        if event.problem:
            self.say(event.problem)
        elif event.rows:
            self.say(f"{len(event.rows)} found on the hub for {event.text!r}.")
        else:
            self.say(f"The hub knows nothing with {event.text!r} in its name.")
        self.draw()

    @on(Checking)
    def _checking(self, event: Checking) -> None:
        if event.key in self.checks:
            self.checks[event.key] = event.share
            self.draw()

    @on(Checked)
    def _checked(self, event: Checked) -> None:
        self.checks.pop(event.row.key, None)
        if event.problems:
            again = "" if event.row.kind == "pair" else " Remove it, then fetch it again."
            self.say(f"{event.row.name}: {'; '.join(event.problems)}.{again}")
        elif event.problems is not None:
            self.say(f"{event.row.name} is as it came: every byte was read.")
        self.draw()

    @on(Told)
    def _told_something(self, event: Told) -> None:
        self.say(event.text)
        if event.changed:
            self.read()

    def _rows(self) -> dict[str, Row]:
        """All rows: of the store and the catalogue, of the hub, and of downloads that are in neither."""
        rows = {**self._stock, **self._hub}
        for key, view in self._views.items():
            row = rows.get(key, view.row)
            moving = view.state != "done" and row.where != "here"
            rows[key] = replace(row, where="downloading") if moving else row
        return rows

    def _part(self, row: Row) -> str:
        if self.uses(row, self.load.model):
            return "in use"
        if self.load.draft and row.kind != "pair" and self.uses(row, self.load.draft):
            return "the draft in use"
        return ""


def _ended(before: Download, now: Download | None) -> bool:
    """Whether the store may be another than it was."""
    if now is None:
        return before.state != "done"
    return before.at_work and not now.at_work


def _as_before(row: Row, before: Row | None) -> Row:
    """The row with what was found out about it, where nothing has happened to it."""
    if before is None or before.where != row.where:
        return row
    return replace(
        row,
        fit=before.fit,
        speed=before.speed,
        speed_up=before.speed_up,
        rough=before.rough,
    )
