"""A text area in which a long paste is one short placeholder that is moved over and deleted whole."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.actions import SkipAction
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Location, Selection

from tui.folding import DRAWN, FOLD, Folds, Written, clean, is_long
from tui.widgets.turn import printable


class FoldingArea(TextArea):
    """`text` and the clipboard have the whole text; only the document and the screen are short."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"folding-area--fold"}
    DEFAULT_CSS = """
    FoldingArea > .folding-area--fold {
        color: $text-accent;
        text-style: bold;
    }
    """

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(
            soft_wrap=True, highlight_cursor_line=False, placeholder=placeholder, id=id
        )
        self._folds = Folds()
        self._copied = Written("")

    @property
    def written(self) -> Written:
        """What is written, whole, and which parts of it are folded."""
        return self._folds.open(self.document.text)

    @property
    def text(self) -> str:
        """What is written, whole."""
        return self.written.text

    @text.setter
    def text(self, value: str) -> None:
        self.load_text(value)

    @property
    def shown(self) -> str:
        """What is written, as it is seen."""
        return self.document.text.translate(DRAWN)

    @property
    def selected_text(self) -> str:
        """What is selected, whole."""
        return self._folds.open(self.get_text_range(*self.selection)).text

    def load_text(self, text: str) -> None:
        """Show `text` unfolded in the place of what there is; cannot be undone."""
        self.load(Written(text))

    def load(self, written: Written) -> None:
        """Show a text with its folds in the place of what there is; cannot be undone."""
        self._folds = Folds()
        super().load_text(self._folds.close(written))

    def fill(self, written: Written) -> None:
        """Put a text in the place of what there is; undo brings that back."""
        document = self._folds.close(written)
        self.replace(document, (0, 0), self.document.end, maintain_selection_offset=False)

    def put_in(self, text: str) -> None:
        """Insert at the cursor, folded if it is long; what was copied here keeps its folds."""
        text = clean(text)
        if not text:
            return
        if text == self._copied.text:
            text = self._folds.close(self._copied)
        elif is_long(text):
            text = self._folds.fold(text)
        self.replace(text, *self.selection, maintain_selection_offset=False)

    async def on_paste(self, event: events.Paste) -> None:
        """Take a paste in place of Textual, which would insert it as it comes."""
        event.stop()
        event.prevent_default()
        await self.receive(clean(event.text))

    async def receive(self, text: str) -> None:
        """Do with a paste what is to be done."""
        self.put_in(text)

    def action_paste(self) -> None:
        """Insert what was copied last in this app."""
        self.put_in(self.app.clipboard)

    def action_copy(self) -> None:
        """Copy the selection, whole."""
        if self.selection.is_empty:
            raise SkipAction
        self._copy(self.get_text_range(*self.selection))

    def action_cut(self) -> None:
        """Copy the selection, or without one the line, and delete it."""
        if self.selection.is_empty:
            cut = self._delete_cursor_line()
        else:
            cut = self._delete_via_keyboard(*self.selection)
        if cut is not None:
            self._copy(cut.replaced_text)

    def edit(self, edit: Edit) -> EditResult:
        """Perform an edit. A fold that it cuts into goes as a whole."""
        if edit.from_location != edit.to_location:
            top, bottom = edit.top, edit.bottom
            edit.from_location = self._beside_fold(top, -1)
            edit.to_location = self._beside_fold(bottom, 1)
        return super().edit(edit)

    def validate_selection(self, selection: Selection) -> Selection:
        """Keep the cursor out of folds, wherever a key or the mouse would put it."""
        return Selection(self._beside_fold(selection.start), self._beside_fold(selection.end))

    def get_cursor_left_location(self) -> Location:
        """One character to the left, or one fold."""
        return self._beside_fold(super().get_cursor_left_location(), -1)

    def get_cursor_right_location(self) -> Location:
        """One character to the right, or one fold."""
        return self._beside_fold(super().get_cursor_right_location(), 1)

    def get_cursor_word_left_location(self) -> Location:
        """One word to the left; a fold is a word."""
        return self._beside_fold(super().get_cursor_word_left_location(), -1)

    def get_cursor_word_right_location(self) -> Location:
        """One word to the right; a fold is a word."""
        return self._beside_fold(super().get_cursor_word_right_location(), 1)

    def get_line(self, line_index: int) -> Text:
        """Draw folds apart from text, and no character that could command the terminal."""
        line = self.document.get_line(line_index)
        text = Text(printable(line).translate(DRAWN), end="", no_wrap=True)
        for match in FOLD.finditer(line):
            style = self.get_component_rich_style("folding-area--fold", partial=True)
            text.stylize(style, *match.span())
        return text

    def _copy(self, document: str) -> None:
        self._copied = self._folds.open(document)
        self.app.copy_to_clipboard(self._copied.text)

    def _beside_fold(self, location: Location, towards: int = 0) -> Location:
        """`location`, or if it is inside a fold that one's start (-1), end (1) or nearer side (0)."""
        row, column = location
        if row >= self.document.line_count:
            return location
        for match in FOLD.finditer(self.document[row]):
            start, end = match.span()
            if start < column < end:
                to_end = towards > 0 if towards else column - start > end - column
                return row, end if to_end else start
        return location
