"""What a training tells while it goes on. Loads no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgespec.derive.candidates import Doing
from edgespec.reply import Notice


@dataclass(frozen=True, slots=True)
class Point:
    """A look at the texts that are held out."""

    step: int
    seen: int
    """Positions that were trained on, those of later epochs again."""
    seconds: float
    """Of training, in all sessions."""
    loss: float
    """Mean since the look before; NaN at the first one."""
    shares: tuple[float, ...]
    """By place: how often the guess there, and all before it, were what the target says."""

    @property
    def tokens(self) -> float:
        """Tokens a round of a chain would bring, greedy, the target's own one included."""
        return 1 + sum(self.shares)


@dataclass(frozen=True, slots=True)
class Made:
    """The last event: the head is written."""

    path: Path
    """Its file, in the folder of the training."""
    curve: tuple[Point, ...]
    best: int
    """Index of the look at the weights that were written."""
    before: tuple[float, ...]
    after: tuple[float, ...]
    """As `Point.shares`, over all that is held out: without any training, and now."""
    rows: int
    """States that there are to train on."""
    held: int
    """States that are held out."""
    seconds: float
    """Of collecting."""
    coverage: float
    """How often, held out, the target's token is one that the head can guess."""


Event = Doing | Notice | Point | Made
