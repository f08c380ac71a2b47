"""How drafting stands, and why: the controller's figures, and the sentence that they make."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """What the controller goes by, costs in tokens of plain decoding on this machine, now."""

    step: float | None
    """A step of the draft model, or of a head in its place; None without one."""
    four_rows: float
    """A pass of the target over four rows."""
    acceptance: float | None
    """Share of the draft model's tested tokens that was accepted lately; None when none was."""
    lookup_acceptance: float | None
    """The same for copied tokens, proposed or not."""
    expected: float | None
    """Speed-up that the draft model promises at this place; below 1 it would lose time."""
    suspended: bool
    """Whether the draft model is not used although much is expected of it, because it lost."""

    def sentence(self, guesser: str = "draft model") -> str:
        """The figures in words; `guesser` is what drafts beside lookup, a head it may be."""
        rows = f"checking three drafted tokens takes the time of {self.four_rows:.2f} tokens"
        if self.step is None or self.expected is None:
            seen = _seen("copied", self.lookup_acceptance)
            return f"No {guesser}: lookup drafts where the text repeats itself; {rows}{seen}."
        cost = f"a drafted token takes {self.step:.2f} of a target token, and {rows}"
        seen = _seen("drafted", self.acceptance)
        if self.suspended:
            return f"The {guesser} is suspended, because it lost time lately: {cost}{seen}."
        if self.expected > 1:
            return f"Drafting pays: {cost}{seen}; {self.expected:.2f}x is expected."
        return f"The {guesser} is off, because it would lose: {cost}{seen}."


def _seen(which: str, acceptance: float | None) -> str:
    return "" if acceptance is None else f"; {acceptance:.0%} of {which} tokens were accepted"
