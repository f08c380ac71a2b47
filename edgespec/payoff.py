"""What drafting is predicted to bring: tokens and time of a round, from costs and acceptance. Pure.

A round of K drafted tokens, each accepted with probability a if those before it were, gives
E = (1 - a^(K+1)) / (1 - a) tokens and takes T = C(K+1) + K d (Leviathan et al. 2023, with the cost of
the pass as it is measured instead of that of one row).
"""

from __future__ import annotations

from collections.abc import Mapping

from edgespec.costs import CostTable, between
from profiles.tuned import Gain, Recommendation

PERCENTS = (50, 60, 70, 80, 90, 95)
_WORTH = 1.03
"""A speed-up below this is noise."""


def expected_tokens(acceptance: float, length: int) -> float:
    """Tokens of a round, the target's own included."""
    return sum(acceptance**n for n in range(length + 1))


def speedup(table: CostTable, acceptance: float, length: int) -> float:
    """Over plain decoding, drafting `length` tokens each round; without a draft model they are free."""
    step = table.draft[1] if table.draft else 0.0
    seconds = between(table.verify, length + 1) + length * step
    return expected_tokens(acceptance, length) * table.token / seconds


def best(table: CostTable, acceptance: float) -> Gain:
    """The best length, 0 for none, and its speed-up."""
    lengths = range(max(table.verify))
    length = max(lengths, key=lambda one: speedup(table, acceptance, one))
    return Gain(length=length, speedup=speedup(table, acceptance, length))


def pays_from(table: CostTable) -> float | None:
    """The lowest acceptance, in whole percent, at which drafting pays; None where it never does."""
    found = (n for n in range(1, 101) if best(table, n / 100).speedup >= _WORTH)
    return next((n / 100 for n in found), None)


def recommend(table: CostTable, acceptance: Mapping[str, float]) -> Recommendation:
    """What to do with a pair; `acceptance` is by kind of text, empty where it was not measured."""
    start = pays_from(table)
    pays = [kind for kind, share in acceptance.items() if start is not None and share >= start]
    method, why = _verdict(table, start, acceptance, pays)
    gains = {percent: best(table, percent / 100) for percent in PERCENTS}
    return Recommendation(method=method, why=why, pays_from=start, gains=gains)


def _verdict(
    table: CostTable, start: float | None, acceptance: Mapping[str, float], pays: list[str]
) -> tuple[str, str]:
    if max(table.verify) == 1:
        return "auto", (
            "What a check of several tokens takes was not measured. Recommended: auto, which finds out."
        )
    cost = _cost(table)
    if start is None:
        return "none", f"{cost} drafting cannot pay here, however good the guesses."
    first = f"{cost} drafting pays from {start:.0%} acceptance."
    if not acceptance:
        return "auto", f"{first} Recommended: auto, which drafts where it pays."
    shares = ", ".join(f"{share:.0%} in {kind}" for kind, share in acceptance.items())
    accepted = f"Of this draft's guesses {shares} were right."
    if not pays:
        return "none", (
            f"{first} {accepted} Recommended: none, leave this draft away; --draft lookup guesses "
            "from the text so far at no cost."
        )
    often = "" if len(pays) == len(acceptance) else f" (mostly off: it pays for {', '.join(pays)})"
    return "auto", f"{first} {accepted} Recommended: auto{often}."


def _cost(table: CostTable) -> str:
    if not table.draft:
        return "Without a draft model guesses are free, but their check is not:"
    three = between(table.verify, 4) / table.token
    return (
        f"A drafted token costs {table.draft[1] / table.token:.2f} of a target token, and checking three "
        f"{three:.2f}:"
    )
