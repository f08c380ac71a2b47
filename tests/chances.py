"""Every course that a random procedure can take, with its probability: laws without drawing anything.

A procedure here uses random numbers in two ways: it asks whether one is below a bound, and it draws a
token by one. Both are decided by a script, and the procedure is run again for every script there is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TypeVar
from unittest.mock import patch

from edgespec.model import Token
from edgespec.sampling import Distribution

Outcome = TypeVar("Outcome", bound=Hashable)


class Number:
    """A random number whose value nobody knows; each is used once."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def __lt__(self, bound: float) -> bool:
        below = min(max(float(bound), 0.0), 1.0)
        return self._course.decide([1 - below, below]) == 1

    def pick(self, probs: Sequence[float]) -> int:
        return self._course.decide(probs)


class Course:
    """One way through: the decisions of a script, and the first possible one beyond its end."""

    def __init__(self, script: Sequence[int]) -> None:
        self.taken: list[int] = []
        self.weights: list[list[float]] = []
        self._script = script

    def decide(self, weights: Sequence[float]) -> int:
        total = math.fsum(weights)
        shares = [float(weight) / total for weight in weights]
        at = len(self.taken)
        if at < len(self._script):
            choice = self._script[at]
        else:
            choice = next(i for i, share in enumerate(shares) if share > 0)
        self.taken.append(choice)
        self.weights.append(shares)
        return choice

    @property
    def chance(self) -> float:
        return math.prod(
            shares[choice] for choice, shares in zip(self.taken, self.weights, strict=True)
        )

    def next(self) -> list[int] | None:
        """The script of the next course, the last decision changed first; None after the last."""
        for at in range(len(self.taken) - 1, -1, -1):
            for other in range(self.taken[at] + 1, len(self.weights[at])):
                if self.weights[at][other] > 0:
                    return [*self.taken[:at], other]
        return None


def law(run: Callable[[Callable[[], float]], Outcome]) -> dict[Outcome, float]:
    """The probability of everything that `run(uniform)` can return.

    `run` must depend on nothing else that changes, and must draw by `Distribution.draw`.
    """
    found: dict[Outcome, list[float]] = {}

    def draw(self: Distribution, uniform: Number) -> Token:
        place = uniform.pick(self.probs.tolist())
        return place if self.ids is None else int(self.ids[place])

    script: list[int] | None = []
    with patch.object(Distribution, "draw", draw):
        while script is not None:
            course = Course(script)
            outcome = run(partial(Number, course))  # type: ignore[arg-type]
            found.setdefault(outcome, []).append(course.chance)
            script = course.next()
    return {outcome: math.fsum(chances) for outcome, chances in found.items()}


def texts(
    p_of: Callable[[tuple[Token, ...]], Distribution], vocab: int, length: int
) -> dict[tuple[Token, ...], float]:
    """The law of texts of `length` tokens, each drawn from `p_of` of those before it."""
    return {
        text: math.prod(p_of(text[:i]).prob(token) for i, token in enumerate(text))
        for text in itertools.product(range(vocab), repeat=length)
    }


def distance(
    found: dict[tuple[Token, ...], float], wanted: dict[tuple[Token, ...], float]
) -> float:
    """The largest difference between two laws."""
    return max(abs(found.get(text, 0.0) - wanted.get(text, 0.0)) for text in {*found, *wanted})
