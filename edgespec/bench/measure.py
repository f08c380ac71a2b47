"""The measuring itself: who answers which prompt when.

Arms take turns prompt by prompt, and the order rotates, so that a machine that slows down slows all
of them. A method that learns keeps what it learned from prompt to prompt and from one temperature
to the next, as in a session of somebody who uses it, unless it is told to forget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from edgespec.bench.arms import Answer, Arm, Order
from edgespec.bench.prompts import Prompt
from edgespec.engine import Acceptance
from edgespec.model import Token
from edgespec.sampling import Sampling

_WARM_UP = 8
"""Tokens of the answers that do not count."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    prompts: Sequence[Prompt]
    encoded: Sequence[Sequence[Token]]
    """The same prompts as tokens."""
    temperatures: Sequence[float]
    sampling: Sampling
    """All but the temperature."""
    max_tokens: int
    repeats: int = 1
    seed: int = 0
    acceptance: Acceptance = "rejection"
    forget: bool = False
    """Every answer is the first one that a learning method gives."""

    def order(self, temperature: float, repeat: int, number: int) -> Order:
        """What all arms are asked in one turn; counts are from 0."""
        return Order(
            prompt=self.encoded[number],
            sampling=replace(self.sampling, temperature=temperature),
            max_tokens=self.max_tokens,
            seed=(self.seed, number, repeat),
            acceptance=self.acceptance,
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One answer, and where it belongs."""

    method: str
    draft_length: int
    temperature: float
    repeat: int
    """From 0."""
    number: int
    """The prompt's, from 0."""
    prompt: Prompt
    answer: Answer

    @property
    def turn(self) -> tuple[float, int, int]:
        """What it shares with the runs that it is compared with."""
        return self.temperature, self.repeat, self.number

    @property
    def key(self) -> tuple[str, int]:
        """Its arm's."""
        return self.method, self.draft_length


def measure(
    arms: Sequence[Arm],
    plan: Plan,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Run]:
    """Yield every answer when it is finished; whoever stops early keeps those before.

    `progress` is told before each turn where things stand. Raises EdgeSpecError.
    """
    _warm_up(arms, plan)
    counts = range(plan.repeats), range(len(plan.prompts))
    turns = list(product(plan.temperatures, *counts))
    begun = clock()
    for done, (temperature, repeat, number) in enumerate(turns):
        left = (clock() - begun) / done * (len(turns) - done) if done else None
        progress(_where(plan, temperature, repeat, number, left))
        order = plan.order(temperature, repeat, number)
        prompt = plan.prompts[number]
        for turn in range(len(arms)):
            arm = arms[(turn + number + repeat) % len(arms)]
            if plan.forget:
                arm.answerer.forget()
            answer = arm.answerer.answer(order)
            yield Run(*arm.key, temperature, repeat, number, prompt, answer)


def _warm_up(arms: Sequence[Arm], plan: Plan) -> None:
    """First passes pay for page faults and for buffers that later ones find."""
    order = plan.order(plan.temperatures[0], 0, 0)
    for arm in arms:
        arm.answerer.answer(replace(order, max_tokens=min(plan.max_tokens, _WARM_UP)))


def _where(plan: Plan, temperature: float, repeat: int, number: int, left: float | None) -> str:
    parts = [f"prompt {number + 1} of {len(plan.prompts)}"]
    if plan.repeats > 1:
        parts.append(f"repetition {repeat + 1} of {plan.repeats}")
    if len(plan.temperatures) > 1:
        parts.append(f"temperature {temperature:g}")
    if left is not None:
        minutes, seconds = divmod(round(left), 60)
        parts.append(f"about {minutes}:{seconds:02d} left")
    return ", ".join(parts)
