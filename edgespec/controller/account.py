"""What may be risked, and whether drafting pays in fact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Purse:
    """Gains over plain decoding and losses against it, in tokens of plain decoding.

    A round that took the time of three tokens and gave four gained one. A round may risk what the
    answer has gained so far and a small allowance, so an answer can lose the allowance and little
    more, however wrong the expectations are. What an answer gained is no licence to lose on the next.
    """

    balance: float = 0.0

    ALLOWANCE = 1.7
    MOST = 8.0
    LEAST_STAKE = 0.5
    DRIP = 0.01
    """Allowance that a token of plain decoding brings back."""

    def begin(self) -> None:
        """Another answer begins."""
        self.balance = min(self.balance, 0.0) / 2

    @property
    def stake(self) -> float:
        """The most that a round may cost, in tokens of plain decoding, if it gives but one token."""
        return 1 + max(self.balance + self.ALLOWANCE, self.LEAST_STAKE)

    @property
    def overdrawn(self) -> bool:
        """Whether the allowance is spent."""
        return self.balance < -self.ALLOWANCE

    def unused(self, tokens: int) -> None:
        """A round without a draft gave `tokens` tokens."""
        if self.balance < 0:
            self.balance = min(self.balance + self.DRIP * tokens, 0.0)

    def book(self, gain: float) -> None:
        """A round with a draft gained so many tokens."""
        self.balance = min(self.balance + gain, self.MOST)


@dataclass(slots=True)
class Trial:
    """When to use a drafter of which nothing is expected: to learn whether that is still so.

    The wait doubles with every failure. A success is tried again at once, so that an answer that is
    easier than the ones before is noticed within a few rounds.
    """

    wait: int = 0
    """Tokens without the drafter until it is tried."""
    since: int = 0
    suspended: bool = False
    """Whether it is not to be used although much is expected of it, because that proved wrong."""
    answers: int = 0
    """Answers until the next in which it is tried at all."""
    answers_wait: int = 0
    gained: bool = True

    FIRST, LONGEST = 8, 1024
    MOST_ANSWERS = 16

    def begin(self) -> None:
        """Another answer: another subject."""
        self.wait = min(self.wait, self.FIRST)
        self.since = self.FIRST
        self.suspended = False
        if self.answers:
            self.answers -= 1
        elif not self.gained:
            self.answers_wait = min(max(2 * self.answers_wait, 1), self.MOST_ANSWERS)
            self.answers = self.answers_wait
        else:
            self.answers_wait = 0
        self.gained = False

    @property
    def due(self) -> bool:
        """Whether to try now."""
        return self.since >= self.wait and not self.answers

    def unused(self, tokens: int) -> None:
        """A round went by without it."""
        self.since += tokens

    def used(self, gain: float, overdrawn: bool, on_trial: bool) -> None:
        """A round with it gained so many tokens."""
        self.since = 0
        if gain > 0:
            self.gained, self.suspended, self.wait = True, False, 0
        elif overdrawn:
            self.suspended = True
            self._back_off()
        elif on_trial:
            self._back_off()

    def _back_off(self) -> None:
        self.wait = min(max(2 * self.wait, self.FIRST), self.LONGEST)
