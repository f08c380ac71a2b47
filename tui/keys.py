"""What terminals send for keys that Textual takes for others."""

from __future__ import annotations

from typing import cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import Keys


def learn_keys() -> None:
    """Alt+Enter is a new line. Textual drops the Alt before a key of a longer name, and Enter sends.

    Terminals without the keyboard protocol of kitty send Escape and Return for it: xterm, GNOME's,
    tmux, and those of a Mac where Option is Meta; and for Shift+Enter where people have set that up.
    """
    cast("dict[str, tuple[Keys, ...]]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = (Keys.ControlJ,)
