"""The settings in force on this machine, for whoever needs defaults. Loads nothing native."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from edgespec.errors import UsageError
from edgespec.llama.backends import usable_vendors
from profiles.hardware import Hardware, detect
from profiles.layers import VARIABLE, Layer, Resolved, resolve, user_layer
from profiles.profile import ProfileProblem

HINT = f"Correct it there; {VARIABLE} can name another file."


@cache
def this_machine() -> Hardware:
    """The hardware, asked for once."""
    return detect()


def settings_here(*, tuned: Layer | None = None, options: Iterable[Layer] = ()) -> Resolved:
    """What all the layers come to. Raises UsageError for a profile that cannot be used."""
    try:
        return resolve(
            this_machine(),
            usable=usable_vendors(),
            tuned=tuned,
            user=user_layer(),
            options=options,
        )
    except ProfileProblem as problem:
        raise UsageError(str(problem), HINT) from problem
