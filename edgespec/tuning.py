"""What a pair costs on this machine: from the store of results, or measured in seconds.

Nothing here may keep anybody from chatting: whatever goes wrong ends in costs that are a guess, which
use corrects, and in a sentence for the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from edgespec.busy import quiet_now
from edgespec.calibrate import Bench, Calibration, finish
from edgespec.costs import Costs, CostTable
from edgespec.errors import Cancelled, EdgeSpecError
from edgespec.exact import ExactRows, exact_at, measure_exact
from edgespec.heads.file import HeadFile
from edgespec.payoff import recommend
from edgespec.quick import SECONDS, calibrate_quick
from edgespec.settings import Load
from edgespec.tuned_keys import key_of, learned_key, learned_key_of
from model_registry.gguf import GGUFError
from model_registry.problem import ModelFileProblem
from profiles.tuned import Key, Table, Tuned, TunedStore, stale_reasons

if TYPE_CHECKING:
    from edgespec.pair import Pair

# A middling processor; the first rounds put it right.
_GUESS = Costs(
    (
        CostTable(
            depth=0,
            verify={1: 0.05, 2: 0.075, 4: 0.1, 8: 0.15, 16: 0.2, 32: 0.4},
            draft={1: 0.015, 32: 0.1},
        ),
    )
)
_RETRY = timedelta(days=1)
"""Figures that are doubted are used for so long before they are measured again."""
_RETRY_SOON = timedelta(minutes=1)
"""And for so long where the machine has become quiet, or where they tell of single rows only."""
_PROBLEMS = (EdgeSpecError, ModelFileProblem, GGUFError, OSError)


def costs_for(
    pair: Pair, load: Load, *, store: TunedStore | None = None, seconds: float = SECONDS
) -> tuple[Costs, str | None]:
    """Costs of a loaded pair whose caches may be emptied, and what the user should know about them.

    Stored ones where they hold; the threads that won are then set, unless `load` asks for others.
    Else it measures for `seconds` at most, and stores what it finds. Never raises.
    """
    store = store or TunedStore.default()
    if not pair.target.weights.rolls_back:
        return _GUESS, None  # nothing is drafted for it
    try:
        key = key_of(pair, load)
        stored = store.load(key)
        if stored and not _worn(stored):
            _set_threads(pair, load, stored)
            return costs_of(stored), _told(store)
        return _measured(pair, key, store, seconds, stored)
    except Cancelled:
        return _GUESS, None
    except _PROBLEMS as problem:
        return _GUESS, f"What drafting costs here could not be measured: {problem}"


def keep_exact(pair: Pair, load: Load, *, store: TunedStore | None = None) -> str | None:
    """Let the target be asked only for as many rows as round like single ones (`Load.strict`).

    Measures how many that is where it is not known. Returns what the user should know. Never raises.
    """
    store = store or TunedStore.default()
    model = pair.target.model
    model.row_limit = None
    try:
        key = key_of(pair, load)
        stored = store.load(key)
        if stored:
            _set_threads(pair, load, stored)  # what is exact depends on them
        exact = stored.exact_rows if stored else None
        if exact is None:
            # Kept as a part of what `edgespec tune` measures, which then need not do it again.
            bench = Bench(model, None, store.load_partial(key))
            exact = finish(measure_exact(bench))
            store.save_partial(key, bench.samples)
    except (Cancelled, *_PROBLEMS) as problem:
        model.row_limit = lambda depth: 1
        return (
            f"Strict: nothing is drafted, as exact widths could not be measured. {problem}".strip()
        )
    known = dict(exact)
    model.row_limit = lambda depth: exact_at(known, depth)
    return _strict_words(known)


def recall(pair: Pair, load: Load, *, store: TunedStore | None = None) -> dict[str, Any] | None:
    """What use of this pair has taught here. Never raises."""
    try:
        return (store or TunedStore.default()).load_learned(learned_key_of(pair, load))
    except _PROBLEMS:
        return None


def remember(
    pair: Pair, load: Load, learned: Mapping[str, Any], *, store: TunedStore | None = None
) -> None:
    """Keep what use has taught. Never raises: what cannot be kept is learnt again."""
    with suppress(*_PROBLEMS):
        (store or TunedStore.default()).save_learned(learned_key_of(pair, load), learned)


def recorded(pair: Pair, load: Load, *, store: TunedStore | None = None) -> Tuned | None:
    """What was measured for a loaded pair, if that still holds. Never raises."""
    try:
        return (store or TunedStore.default()).load(key_of(pair, load))
    except _PROBLEMS:
        return None


def taught(store: TunedStore, key: Key, head: HeadFile | None) -> dict[str, Any] | None:
    """What use has taught of files whose costs were measured under `key`, found without loading them."""
    return store.load_learned(learned_key(key, head))


def costs_of(tuned: Tuned) -> Costs:
    """The tables of a result."""
    return Costs(tuple(CostTable(one.depth, one.verify, one.draft) for one in tuned.tables))


def result(
    pair: Pair,
    key: Key,
    found: Calibration,
    *,
    quick: bool,
    exact: ExactRows | None = None,
    acceptance: dict[str, float] | None = None,
) -> Tuned:
    """What was found, as it is stored."""
    return Tuned(
        key=key,
        target_name=pair.target.weights.name,
        draft_name=pair.draft.weights.name if pair.draft else None,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=quick,
        tables=tuple(Table(**asdict(one)) for one in found.costs.tables),
        prefill=found.prefill,
        draft_prefill=found.draft_prefill,
        threads=found.threads,
        batch_threads=found.batch_threads,
        exact_rows=None if exact is None else dict(exact),
        busy=" ".join(found.doubts),
        acceptance=acceptance or {},
        recommendation=recommend(found.costs.tables[0], acceptance or {}),
    )


def outdated(
    store: TunedStore, key: Key, target_name: str, draft_name: str | None
) -> Sequence[str]:
    """Why the latest result for a pair of these names no longer holds; empty where there is none."""
    names = (target_name, draft_name)
    same = (one for one in store.all() if (one.target_name, one.draft_name) == names)
    last = next(same, None)
    return stale_reasons(last.key, key) if last else ()


def adopt(
    pair: Pair, load: Load, tuned: Tuned, *, store: TunedStore | None = None
) -> tuple[Costs, str | None]:
    """Set a loaded pair's threads and exact widths by a result, which is stored by now.

    Returns its costs, and what the user should know. Never raises.
    """
    _set_threads(pair, load, tuned)
    told = keep_exact(pair, load, store=store) if load.strict else None
    return costs_of(tuned), told


def lasting(
    before: Tuned | None, threads: tuple[int, int]
) -> tuple[ExactRows | None, dict[str, float]]:
    """What of an older result does not depend on how busy the machine was: exact rows, acceptance."""
    if before is None:
        return None, {}
    alike = (before.threads, before.batch_threads) == threads
    return (before.exact_rows if alike else None), dict(before.acceptance)


def _measured(
    pair: Pair, key: Key, store: TunedStore, seconds: float, before: Tuned | None
) -> tuple[Costs, str | None]:
    weights, model = pair.target.weights, pair.target.model
    draft = pair.draft.weights.name if pair.draft else None
    reasons = () if before else outdated(store, key, weights.name, draft)
    limit, model.row_limit = model.row_limit, None
    try:
        bench = Bench(model, pair.draft.model if pair.draft else None)
        found = calibrate_quick(
            bench, threads=(model.threads, model.batch_threads), seconds=seconds
        )
    finally:
        model.row_limit = limit
    exact, acceptance = lasting(before, (found.threads, found.batch_threads))
    tuned = result(pair, key, found, quick=True, exact=exact, acceptance=acceptance)
    store.save(tuned)
    why = f"What was measured before no longer holds: {', '.join(reasons)}. " if reasons else ""
    why = "What was measured before was rough. " if before else why
    doubts = f" {tuned.busy} The figures are rough." if tuned.busy else ""
    text = f"{why}Measured what drafting costs here; `edgespec tune` does it thoroughly.{doubts}"
    return found.costs, _told(store, text)


def _strict_words(exact: dict[int, int]) -> str:
    if max(exact.values()) == 1:
        return (
            "Strict: on this machine no pass over several rows rounds like single ones, so nothing is "
            "drafted."
        )
    until = max((depth for depth in exact if exact_at(exact, depth) > 1), default=0)
    rows = max(exact.values())
    end = "" if until == max(exact) else f", up to {until} tokens of context; beyond, nothing"
    return f"Strict: up to {rows - 1} tokens are drafted in a round{end}."


def _worn(tuned: Tuned) -> bool:
    """Whether a result that is doubted should be tried again."""
    if not tuned.busy:
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(tuned.measured_at)
    return age > _RETRY or (age > _RETRY_SOON and (tuned.scant or quiet_now()))


def _set_threads(pair: Pair, load: Load, tuned: Tuned) -> None:
    if load.threads is None:
        for loaded in pair.models:
            loaded.model.set_threads(tuned.threads, tuned.batch_threads)


def _told(store: TunedStore, text: str = "") -> str | None:
    """The text and what the store had to say, once."""
    told = " ".join([*store.notices, text]).strip()
    store.notices.clear()
    return told or None
