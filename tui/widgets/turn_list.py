"""A list of turns that costs what is seen of it: layout, scrolling, the turn that keys act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeGuard

from textual.containers import VerticalScroll
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import DockArrangeResult, WidgetPlacement
from textual.scrollbar import ScrollBar
from textual.widget import Widget
from textual.widgets import Static

from tui.widgets.arrangement import Places
from tui.widgets.bar import ThriftyScrollBar
from tui.widgets.drawn import Drawn, Turn

NEAR_ROWS = 3
"""A reader who comes this near to the end wants to see what comes."""


class Gap(Widget):
    """Turns that are not widgets of the screen yet; they become so when they come near the view."""

    DEFAULT_CSS = "Gap { display: none; }"

    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__()
        self.turns = list(turns)


class MoreBelow(Static):
    """Says that there is new text below the view."""

    DEFAULT_CSS = """
    MoreBelow {
        display: none;
        background: $panel;
        color: $foreground;
        text-style: bold;
    }
    """
    WORDS = " ↓ more below (Ctrl+End) "

    def __init__(self) -> None:
        super().__init__(self.WORDS, markup=False)


class TurnList(VerticalScroll, can_focus=False):
    """Turns and lines, one below the other, a blank row below each; a few stand at the bottom."""

    BLANK = True

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._more = MoreBelow()
        self._places = Places()
        self._width = 0
        """The width for which these places are."""
        self._window = (0, 0)
        """The rows that are laid out."""
        self._opening = False
        self._selected: Turn | None = None

    def compose(self) -> Iterator[Widget]:
        """Only what lies above the turns."""
        yield self._more

    def on_mount(self) -> None:
        """Stay at the end until the reader scrolls away; back at the end, stay again."""
        self.anchor()

    # The turns

    @property
    def turns(self) -> list[Turn]:
        """Questions and answers, oldest first, whether they are on the screen or not."""
        return [widget for widget in self._widgets() if isinstance(widget, Turn)]

    async def empty(self) -> None:
        """Take all turns away."""
        self.select_none()
        await self.remove_children([child for child in self.children if child is not self._more])

    async def remove_from(self, turn: Turn) -> None:
        """Take away `turn` and what comes after it."""
        self.select_none()
        widgets = list(self._widgets())
        gone = set(widgets[widgets.index(turn) :])
        for gap in self.query_children(Gap):
            gap.turns = [kept for kept in gap.turns if kept not in gone]
        await self.remove_children([child for child in self.children if child in gone])

    def _widgets(self) -> Iterator[Widget]:
        for child in self.children:
            if isinstance(child, Gap):
                yield from child.turns
            elif child is not self._more and child.display:
                yield child

    # The turn that keys act on

    @property
    def selected(self) -> Turn | None:
        """The turn that the user's keys act on."""
        return self._selected if self._selected in self.turns else None

    def select_previous(self) -> None:
        """Select the turn above; at first the last one."""
        turns = self.turns
        place = turns.index(self._selected) if self._selected in turns else len(turns)
        if place:
            self._select(turns[place - 1])

    def select_next(self) -> None:
        """Select the turn below; below the last one, none."""
        turns = self.turns
        place = turns.index(self._selected) + 1 if self._selected in turns else len(turns)
        if place < len(turns):
            self._select(turns[place])
        else:
            self.select_none()

    def select_none(self) -> None:
        """Select no turn."""
        if self._selected is not None:
            self._selected.selected = False
        self._selected = None

    def _select(self, turn: Turn) -> None:
        self.select_none()
        self._selected = turn
        turn.selected = True
        span = self._places.span(turn)
        if span is None:
            return
        (top, bottom), height = span, self.size.height
        if top < self.scroll_y or bottom - top >= height:
            self.scroll_to(y=top, animate=False)
        elif bottom > self.scroll_y + height:
            self.scroll_to(y=bottom - height, animate=False)

    # Following the end

    @property
    def following(self) -> bool:
        """Whether the view stays at the end while text comes."""
        return self._anchored and not self._anchor_released

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.anchor()
        self._more.display = False

    def note_more(self) -> None:
        """Say that there is something new, if the reader does not see the end."""
        if not self.following and self.scroll_y < self.max_scroll_y:
            self._more.display = True

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Whoever scrolls up leaves the end; whoever comes down near to it is back."""
        super().watch_scroll_y(old_value, new_value)
        if new_value > old_value and new_value >= self.max_scroll_y - NEAR_ROWS:
            self._anchor_released = False
        if self.following:
            self._more.display = False

    # Layout

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scroll bar, made when it is first needed."""
        if self._vertical_scrollbar is None:
            bar = ThriftyScrollBar(self.scrollbar_size_vertical)
            bar.display = False
            self._vertical_scrollbar = bar
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # More rows to scroll change nothing on the screen: no second layout for each new row.
        return super()._size_updated(size, virtual_size, container_size, layout=False)

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Place the turns near the view. Textual asks for each layout and each scroll."""
        key = (size, self._nodes._updates, optimal)
        known = self._arrangement_cache.get(key)
        if known is None or not self._covers_view(size.height):
            known = self._arrangement_cache[key] = self._arrange(size)
        return known

    def _covers_view(self, height: int) -> bool:
        """Whether what is laid out reaches a screen beyond the view, or to an end."""
        top = self._places.height - height if self.following else round(self.scroll_y)
        first, last = self._window
        above = top - height >= first or first <= 0
        return above and (top + 2 * height <= last or last >= self._places.height)

    def _arrange(self, size: Size) -> DockArrangeResult:
        widgets = list(self._widgets())
        moving = self.app.animator.is_being_animated(self, "scroll_y")
        if not moving and self.scroll_y >= self._places.height - size.height:
            # Textual takes a key that scrolls nowhere for a wish to leave the end.
            self._anchor_released = False
        while True:
            places = Places.of(widgets, lambda widget: self._height(widget, size))
            view = self._view(places, size)
            window = view - 2 * size.height, view + 3 * size.height
            near = places.between(*window)
            unknown = [turn for turn in near if _is_unknown(turn, size.width)]
            if not unknown:
                break
            for turn in unknown:
                turn.rows(size.width)
        moved = not self.following and view != round(self.scroll_y)
        if moved and moving:
            # What scrolls to a row would end at another turn; better to be there at once.
            self.app.animator.force_stop_animation(self, "scroll_y")
            return self._arrange(size)
        self._places, self._width, self._window = places, size.width, window
        if moved:
            self._move_view(view)
        if any(turn.parent is None for turn in near) and not self._opening:
            self._opening = True
            self.call_next(self._open_gaps)
        return self._placed(near, size)

    def _height(self, widget: Widget, size: Size) -> int:
        if isinstance(widget, Drawn):
            return widget.likely_height(size.width)
        width, height = Fraction(size.width), Fraction(size.height)
        return int(widget._get_box_model(size, self.app.size, width, height).height)

    def _view(self, places: Places, size: Size) -> int:
        """The first row to show of the new places: the end, or what is read now."""
        end = max(places.height - size.height, 0)
        if self.following:
            return end
        row = round(self.scroll_y)
        held = self._places.hold(row)
        if held is not None:
            found = places.find(held, stretched=size.width != self._width)
            row = row if found is None else found
        return min(row, end)

    def _move_view(self, row: int) -> None:
        """Set the scroll position in the midst of a layout, which goes on with it."""
        self.set_reactive(Widget.scroll_y, row)
        self.set_reactive(Widget.scroll_target_y, row)
        self.vertical_scrollbar.position = row

    def _placed(self, near: Sequence[Widget], size: Size) -> DockArrangeResult:
        # A short conversation stands above the prompt.
        shift = max(size.height - self._places.height, 0)
        placements: list[WidgetPlacement] = []
        for widget in near:
            span = self._places.span(widget)
            if widget.parent is None or span is None:
                continue
            top, bottom = span
            region = Region(0, top + shift, size.width, bottom - top)
            placements.append(WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, widget))
        if self._more.display:
            width = min(len(MoreBelow.WORDS), size.width)
            region = Region(size.width - width, size.height - 1, width, 1)
            placements.append(
                WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, self._more, order=1, fixed=True)
            )
        shown = {placement.widget for placement in placements}
        result = DockArrangeResult(placements, shown, NULL_SPACING)
        # What is not laid out takes its room all the same.
        height = self._places.height + shift
        result.spatial_map.total_region = Region(0, 0, size.width, height)
        return result

    async def _open_gaps(self) -> None:
        """Make widgets of the turns that have come near the view."""
        near = set(self._places.between(*self._window))
        with self.app.batch_update():
            for gap in list(self.query_children(Gap)):
                chosen = [turn for turn in gap.turns if turn in near]
                if not chosen:
                    continue
                first = gap.turns.index(chosen[0])
                after = gap.turns[first + len(chosen) :]
                gap.turns = gap.turns[:first]
                await self.mount_all([*chosen, *([Gap(after)] if after else [])], after=gap)
                if not gap.turns:
                    await gap.remove()
        self._opening = False


def _is_unknown(widget: Widget, width: int) -> TypeGuard[Drawn]:
    return isinstance(widget, Drawn) and not widget.is_measured(width)
