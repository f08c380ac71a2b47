"""Runs of a benchmark, made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgespec.bench.arms import Answer
from edgespec.bench.figures import make_report
from edgespec.bench.measure import Run
from edgespec.bench.parting import Parted
from edgespec.bench.prompts import Prompt, Turn
from edgespec.bench.report import PLAIN, Key, Report
from edgespec.stats import Stats

AUTO: Key = ("auto", 0)
DRAFT_2: Key = ("draft", 2)
DRAFT_4: Key = ("draft", 4)
SERVER: Key = ("server", 0)
CATEGORIES = ("code", "code", "prose")
"""Of prompts 0, 1 and 2, which are called p0, p1 and p2."""


def prompt(number: int, category: str) -> Prompt:
    return Prompt(id=f"p{number}", category=category, messages=(Turn(role="user", content="go"),))


def run(
    arm: Key,
    speed: float,
    *,
    number: int = 0,
    repeat: int = 0,
    temperature: float = 0.0,
    tokens: Sequence[int] = (7, 8, 9),
    accepted: int = 0,
    tested: int = 0,
    sources: Mapping[str, int] | None = None,
    outside: float | None = 0.01,
) -> Run:
    """Ten tokens in five rounds after the first one, at `speed` tokens a second; 0 for one token."""
    stats = Stats(
        tokens=11 if speed else 1,
        rounds=5 if speed else 0,
        round_tokens=10 if speed else 0,
        accepted=accepted,
        tested=tested,
        rows=12 if speed and arm != SERVER else 0,
        ttft_seconds=0.5,
        decode_seconds=10 / speed if speed else 0.0,
        draft_seconds=1 / speed if speed and arm[1] else 0.0,
    )
    answer = Answer(tuple(tokens), stats, sources or {}, outside)
    one = prompt(number, CATEGORIES[number])
    return Run(*arm, temperature, repeat, number, one, answer)


def turn(
    speeds: Mapping[Key, float], number: int, *, repeat: int = 0, temperature: float = 0.0
) -> list[Run]:
    return [
        run(arm, speed, number=number, repeat=repeat, temperature=temperature)
        for arm, speed in speeds.items()
    ]


def report(
    runs: Sequence[Run],
    *,
    complete: bool = True,
    parted: Parted | None = None,
    repeatable: bool = False,
    **setup: object,
) -> Report:
    """Of these runs; the arms are those that occur, plain first."""
    arms: dict[Key, int | None] = dict.fromkeys([PLAIN, *(run.key for run in runs)], 0)
    needs = {DRAFT_2: 512_000_000, DRAFT_4: 512_000_000, AUTO: 1_230_000_000, SERVER: None}
    arms |= {arm: needs[arm] for arm in arms if arm in needs}
    setup = {"target": "a-model", **setup}
    return make_report(
        runs, arms, complete=complete, setup=setup, parted=parted, repeatable=repeatable
    )


def usual() -> Report:
    """Three prompts of two categories, two fixed lengths, auto and a server."""
    arms = (PLAIN, DRAFT_2, DRAFT_4, AUTO, SERVER)
    speeds = [(10, 12, 20, 22, 8), (10, 14, 24, 20, 10), (10, 12, 5, 11, 10)]
    return report(
        [one for n in range(3) for one in turn(dict(zip(arms, speeds[n], strict=True)), n)]
    )
