"""Why a method lost, and what a method made of others gains over them: sentences from the figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.bench.report import PLAIN, Key, Summary, name

_BESIDE = {
    "confidence": ("draft",),
    "tree": ("draft",),
    "kseq": ("draft",),
    "eagle3-tree": ("eagle3",),
    "suffix": ("lookup",),
    "cascade": ("draft", "lookup"),
}
"""What a method is an elaboration of, which it is to beat beside plain decoding."""
_WORTH = 1.03
"""A difference below this is noise."""


def verdicts(summaries: Sequence[Summary]) -> list[str]:
    """Sentences without their stop, on the summaries of one temperature."""
    best: dict[str, Summary] = {}
    for one in summaries:
        if one.method not in best or one.speedup > best[one.method].speedup:
            best[one.method] = one
    found = [_gain(one) for one in best.values() if one.of_parts]
    for one in best.values():
        beside = [best[other] for other in _BESIDE.get(one.method, ()) if other in best]
        rival = max([*beside, best[PLAIN[0]]], key=lambda other: other.speedup)
        if one.speedup * _WORTH < rival.speedup and one.draft_cost is not None:
            found.append(_loss(one, rival))
    return found


def _gain(one: Summary) -> str:
    ratios = ", ".join(f"{category} {x:.2f}" for category, x in (one.of_parts or {}).items())
    return f"{_name(one)}, compared with the better one of its parts in each category: {ratios}"


def _loss(one: Summary, rival: Summary) -> str:
    """In what a round brought and what it cost; a round of plain decoding brings 1 and costs 1."""
    if rival.method == PLAIN[0]:
        return f"{_name(one)} lost to plain decoding, {one.speedup:.2f}x: {_round(one)}"
    more = one.tokens_per_round / rival.tokens_per_round - 1
    return (
        f"{_name(one)} lost to {_name(rival)}, {one.speedup:.2f}x to {rival.speedup:.2f}x: {_round(one)}; "
        f"{_name(rival)}'s {rival.tokens_per_round:.2f} tokens ({more:+.0%}) cost {_cost(rival):.2f}"
    )


def _round(one: Summary) -> str:
    rows = "" if one.rows_per_round is None else f" of {one.rows_per_round:.1f} rows"
    return (
        f"a round brought {one.tokens_per_round:.2f} tokens and cost {_cost(one):.2f} plain ones, "
        f"{one.draft_cost or 0:.2f} to draft and {one.verify_cost or 0:.2f} for the pass{rows}"
    )


def _cost(one: Summary) -> float:
    return (one.draft_cost or 0.0) + (one.verify_cost or 0.0)


def _name(one: Summary) -> str:
    arm: Key = (one.method, one.draft_length)
    return name(arm)
