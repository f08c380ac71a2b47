"""Keys that Textual 8.2 takes for plain Enter, which would send a text that is to get a new line."""

from __future__ import annotations

from enum import Enum
from typing import cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS


class _MoreKeys(Enum):
    ALT_ENTER = "alt+enter"


def know_alt_enter() -> None:
    """Know Alt+Enter on terminals without the kitty protocol, tmux among them: Esc, then Enter.

    The two keys pressed one after the other stay two: there is time between them.
    """
    sequences = cast(dict[str, tuple[_MoreKeys, ...]], ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = (_MoreKeys.ALT_ENTER,)


def is_enter_with_modifier(key: str) -> bool:
    """Whether this is Textual's name for Shift+Enter as xterm's modifyOtherKeys and tmux 3.5 send it."""
    return key.endswith("\r")
