"""What a measurement of a pair tells a front end: progress, and what came of it. Light, as `reply` is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgespec.reply import Notice

if TYPE_CHECKING:
    from profiles.tuned import Tuned


@dataclass(frozen=True, slots=True)
class Measured:
    """One more pass was measured."""

    done: int
    total: int
    what: str
    seconds: float
    """What it took."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The last event, unless it was stopped or an `EdgeSpecError` is raised."""

    found: Tuned
    """What was measured, or what was known and is good enough."""
    holds: Tuned
    """What is stored and gone by from now on: `found`, or older figures where those of now are not to
    be believed."""
    measured: bool
    """Whether anything was measured for it."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The last event of a measurement that was cancelled."""

    goes_on: bool
    """Whether what was measured is kept, so that the next one goes on."""


TuneEvent = Measured | Notice | Outcome | Stopped
