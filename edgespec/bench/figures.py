"""Runs into figures. Pure, but that it asks for the process's own memory.

A turn counts when every arm has finished it with a speed: an answer of one token has none. A
speed-up is a ratio to the plain run of the same turn, so it is not moved by what moves both.
Categories are summed up by their geometric mean: 2x here and 0.5x there is no gain.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgespec.bench.measure import Run
from edgespec.bench.parting import Parted, Texts
from edgespec.bench.report import PLAIN, SERVER, Key, Report, Row, RunRow, Summary, Worst, name

Turn = Mapping[Key, Run]
PARTS = {
    "auto": ("auto-lookup", "auto-draft"),
    "cascade": ("draft", "confidence", "lookup", "suffix"),
}
"""What a method is made of."""


def make_report(
    runs: Sequence[Run],
    arms: Mapping[Key, int | None],
    *,
    complete: bool,
    setup: Mapping[str, object],
    parted: Parted | None = None,
    repeatable: bool = False,
) -> Report:
    """The figures of these runs. `arms` begin with `PLAIN`; each has the bytes that it takes beside the
    target, where that is known. `parted` tells of texts that are not plain decoding's; `repeatable` that
    sampled texts must be the same, too, because a seed decides them and not the drafts.
    """
    texts = Texts(parted or {}, repeatable)
    turns: dict[tuple[float, int, int], dict[Key, Run]] = {}
    for run in runs:
        turns.setdefault(run.turn, {})[run.key] = run
    finished = [turn for turn in turns.values() if len(turn) == len(arms)]
    counted = [turn for turn in finished if all(_speed(run) > 0 for run in turn.values())]
    rows: list[Row] = []
    summary: list[Summary] = []
    for temperature in dict.fromkeys(run.temperature for run in runs):
        mine = [turn for turn in counted if turn[PLAIN].temperature == temperature]
        by_category = _by_category(mine)
        found = [
            _row(arm, part, memory, texts)
            for part in by_category.values()
            for arm, memory in arms.items()
        ]
        rows += found
        if found:
            summary += [_summary(arm, found, by_category, texts) for arm in arms]
    return Report(
        rows=rows,
        outside_llama_cpp=_outside(runs, list(arms)),
        summary=summary,
        runs=[
            _run_row(turn[arm], turn.get(PLAIN), texts)
            for turn in turns.values()
            for arm in arms
            if arm in turn
        ],
        complete=complete,
        left_out=len(finished) - len(counted),
        setup=dict(setup),
    )


def _speed(run: Run) -> float:
    """Tokens a second; 0 where there is none."""
    return run.answer.stats.tokens_per_second or 0.0


def _by_category(turns: Sequence[Turn]) -> dict[str, list[Turn]]:
    """In the order of the prompts, whatever the order in which they were measured."""
    found: dict[str, list[Turn]] = {}
    for turn in sorted(turns, key=lambda turn: turn[PLAIN].number):
        found.setdefault(turn[PLAIN].prompt.category, []).append(turn)
    return found


def _ratios(turns: Sequence[Turn], arm: Key, base: Key) -> list[float]:
    return [_speed(turn[arm]) / _speed(turn[base]) for turn in turns]


def _row(arm: Key, turns: Sequence[Turn], memory: int | None, texts: Texts) -> Row:
    plain = turns[0][PLAIN]
    together = _Together.of(arm, turns, texts)
    ratios = _ratios(turns, arm, PLAIN)
    low, high = _quartiles(ratios)
    return Row(
        category=plain.prompt.category,
        temperature=plain.temperature,
        method=arm[0],
        draft_length=arm[1],
        tokens_per_second=statistics.median(_speed(turn[arm]) for turn in turns),
        speedup=statistics.median(ratios),
        acceptance=together.acceptance,
        tokens_per_round=together.tokens_per_round,
        ttft_s=statistics.median(turn[arm].answer.stats.ttft_seconds for turn in turns),
        peak_rss_bytes=peak_rss(),
        same_as_plain=together.same_as_plain,
        speedup_low=low,
        speedup_high=high,
        rows_per_round=together.rows_per_round,
        parted_logits=together.parted_logits,
        memory_bytes=memory,
        worst_prompt=_worst(arm, turns),
    )


@dataclass(frozen=True, slots=True)
class _Together:
    """Answers of one arm, counted as if they were one."""

    acceptance: float | None
    tokens_per_round: float
    rows_per_round: float | None
    same_as_plain: bool | None
    """None when sampled."""
    parted_logits: float | None

    @classmethod
    def of(cls, arm: Key, turns: Sequence[Turn], texts: Texts) -> _Together:
        all_stats = [turn[arm].answer.stats for turn in turns]
        tested, rounds, rows = (
            sum(getattr(stats, name) for stats in all_stats)
            for name in ("tested", "rounds", "rows")
        )
        same = [texts.same(turn[arm], turn[PLAIN]) for turn in turns]
        apart = [
            texts.parted.get((arm, turn[arm].turn))
            for turn, one in zip(turns, same, strict=True)
            if one is False
        ]
        known = [one for one in apart if one is not None]
        return cls(
            sum(stats.accepted for stats in all_stats) / tested if tested else None,
            sum(stats.round_tokens for stats in all_stats) / rounds,
            rows / rounds if rows else None,
            None if None in same else all(same),
            max(known, default=None) if len(known) == len(apart) else None,
        )


def _costs(arm: Key, turns: Sequence[Turn]) -> tuple[float | None, float | None]:
    """What drafting and the rest of a round take, in rounds of plain decoding."""
    if arm == SERVER:
        return None, None
    drafting = whole = rounds = 0.0
    for turn in turns:
        stats, plain = turn[arm].answer.stats, turn[PLAIN].answer.stats
        one = plain.decode_seconds / plain.rounds
        drafting += stats.draft_seconds / one
        whole += stats.decode_seconds / one
        rounds += stats.rounds
    return drafting / rounds, (whole - drafting) / rounds


def _of_parts(arm: Key, speedups: Mapping[Key, Mapping[str, float]]) -> dict[str, float] | None:
    """By category its speed-up over the best of its parts."""
    parts = [other for other in speedups if other[0] in PARTS.get(arm[0], ())]
    if not parts:
        return None
    return {
        category: mine / max(speedups[other][category] for other in parts)
        for category, mine in speedups[arm].items()
    }


def _quartiles(values: list[float]) -> tuple[float, float]:
    """Of one value, twice that one."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def _worst(arm: Key, turns: Sequence[Turn]) -> Worst:
    by_prompt: dict[int, list[Turn]] = {}
    for turn in turns:
        by_prompt.setdefault(turn[PLAIN].number, []).append(turn)
    medians = [
        Worst(some[0][PLAIN].prompt.id, statistics.median(_ratios(some, arm, PLAIN)))
        for some in by_prompt.values()
    ]
    return min(medians, key=lambda worst: worst.speedup)


def _summary(
    arm: Key, rows: Sequence[Row], by_category: Mapping[str, Sequence[Turn]], texts: Texts
) -> Summary:
    speedups = _speedups(rows)
    fixed = [other for other in speedups if other[1]]
    best = own = None
    if arm[0] == "auto" and fixed:
        mine = speedups[arm]
        best = _mean(mine) / max(_mean(speedups[other]) for other in fixed)
        own = {one: mine[one] / max(speedups[other][one] for other in fixed) for one in mine}
    of_server = None
    if SERVER in speedups:
        medians = [statistics.median(_ratios(some, arm, SERVER)) for some in by_category.values()]
        of_server = statistics.geometric_mean(medians)
    every = [turn for some in by_category.values() for turn in some]
    together = _Together.of(arm, every, texts)
    draft_cost, verify_cost = _costs(arm, every)
    return Summary(
        temperature=rows[0].temperature,
        method=arm[0],
        draft_length=arm[1],
        speedup=_mean(speedups[arm]),
        worst_prompt=min(
            (row.worst_prompt for row in rows if (row.method, row.draft_length) == arm),
            key=lambda worst: worst.speedup,
        ),
        of_best_fixed=best,
        of_own_best=own,
        of_server=of_server,
        acceptance=together.acceptance,
        tokens_per_round=together.tokens_per_round,
        rows_per_round=together.rows_per_round,
        draft_cost=draft_cost,
        verify_cost=verify_cost,
        memory_bytes=next(
            row.memory_bytes for row in rows if (row.method, row.draft_length) == arm
        ),
        same_as_plain=together.same_as_plain,
        parted_logits=together.parted_logits,
        of_parts=_of_parts(arm, speedups),
    )


def _speedups(rows: Sequence[Row]) -> dict[Key, dict[str, float]]:
    """By arm and category."""
    found: dict[Key, dict[str, float]] = {}
    for row in rows:
        found.setdefault((row.method, row.draft_length), {})[row.category] = row.speedup
    return found


def _mean(by_category: Mapping[str, float]) -> float:
    return statistics.geometric_mean(by_category.values())


def _run_row(run: Run, plain: Run | None, texts: Texts) -> RunRow:
    stats = run.answer.stats
    comparable = plain is not None and _speed(run) > 0 and _speed(plain) > 0
    return RunRow(
        id=run.prompt.id,
        category=run.prompt.category,
        temperature=run.temperature,
        method=run.method,
        draft_length=run.draft_length,
        repeat=run.repeat + 1,
        tokens=stats.tokens,
        seconds=stats.decode_seconds,
        tokens_per_second=_speed(run) or None,
        speedup=_speed(run) / _speed(plain) if comparable and plain else None,
        acceptance=stats.acceptance,
        tokens_per_round=stats.tokens_per_round,
        rounds=stats.rounds,
        ttft_s=stats.ttft_seconds,
        same_as_plain=texts.same(run, plain) if plain else None,
        parted_logits=texts.parted.get((run.key, run.turn)),
        rows_per_round=stats.rows_per_round,
        draft_s=stats.draft_seconds,
        verify_s=stats.verify_seconds,
        sources=dict(run.answer.sources),
    )


def _outside(runs: Sequence[Run], arms: Sequence[Key]) -> dict[str, float]:
    found: dict[str, float] = {}
    for arm in arms:
        shares = [
            run.answer.outside for run in runs if run.key == arm and run.answer.outside is not None
        ]
        if shares:
            found[name(arm)] = statistics.median(shares)
    return found


def peak_rss() -> int:
    """The largest resident size of this process so far, in bytes; 0 where it is not told."""
    try:
        import resource  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
