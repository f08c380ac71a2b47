"""Everything that is worth knowing of a pair, measured once: for `edgespec tune` and for the app."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import resources

import yaml

from edgespec.calibrate import Bench, Plan, Samples, calibrate
from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.drafters.base import Drafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import Cancelled, EdgeSpecError, UsageError
from edgespec.events import Finished, Reason, Round
from edgespec.exact import measure_exact
from edgespec.measuring import Measured, Outcome, Stopped, TuneEvent
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.prospect import look_ahead
from edgespec.quick import quick_steps
from edgespec.reply import Notice
from edgespec.sampling import Sampling
from edgespec.settings import MAX_DRAFT, Load
from edgespec.templates import choose_template
from edgespec.tuned_keys import key_ahead, key_of
from edgespec.tuning import lasting, outdated, result
from profiles.cores import logical_cores, physical_cores, usable_cores
from profiles.tuned import Key, Tuned, TunedStore

_SAVE_EVERY = 5.0
_LENGTH = 4
"""Tokens drafted in a round while acceptance is measured."""
_TOKENS = 48
"""Of each answer."""


def known_ahead(load: Load, store: TunedStore, *, quick: bool) -> Tuned | None:
    """What is known and good enough, found by headers alone; None when one has to load and see.

    Raises EdgeSpecError.
    """
    if load.rpc:
        return None  # servers are greeted by what loads, and only once
    ahead = look_ahead(load)
    with _store_problems(store):
        draft = ahead.draft.target if ahead.draft else None
        known = store.load(key_ahead(load, ahead.plan, ahead.target.target, draft))
    return known if known and _good_enough(known, quick) else None


def tune_events(
    pair: Pair, load: Load, *, quick: bool, force: bool, store: TunedStore | None = None
) -> Iterator[TuneEvent]:
    """`tune_loaded` for whoever shows it: its result, or that it was cancelled, is the last event."""
    try:
        yield (
            yield from tune_loaded(
                pair, load, quick=quick, force=force, store=store or TunedStore.default()
            )
        )
    except Cancelled:
        yield Stopped(goes_on=not quick)


def tune_loaded(
    pair: Pair, load: Load, *, quick: bool, force: bool, store: TunedStore
) -> Generator[Measured | Notice, None, Outcome]:
    """Measure a loaded pair unless it is known well enough or `force`d; store it, and go by it.

    Older figures that are to be believed are kept when those of now are not. The caches are empty
    afterwards. May be closed or cancelled as `tune`. Raises EdgeSpecError, `Cancelled`.
    """
    _check(pair, load)
    with _store_problems(store):
        key = key_of(pair, load)
        before = store.load(key)
        if before and not force and _good_enough(before, quick):
            return Outcome(found=before, holds=before, measured=False)
        if before is None:
            yield from _why_anew(pair, key, store)
        with _undisturbed(pair):
            found = yield from tune(pair, load, key, store, quick=quick)
        holds = before if before and found.busy and not before.busy else found
        if holds is found:
            store.save(found)
        told = pair.adopt(load, holds, store)
        if told:
            yield Notice(told)
        return Outcome(found=found, holds=holds, measured=True)


def _good_enough(known: Tuned, quick: bool) -> bool:
    return not known.busy and (quick or not known.quick)


def _check(pair: Pair, load: Load) -> None:
    """Raise UsageError where there is nothing to measure, or not all of it could be."""
    if not pair.target.weights.rolls_back:
        raise UsageError(
            f"{pair.target.weights.name} cannot take back tokens, so nothing is drafted for it.",
            "There is nothing to tune.",
        )
    if load.draft_length is not None and load.draft_length < MAX_DRAFT:
        raise UsageError(
            f"With --draft-length {load.draft_length} longer drafts cannot be measured.",
            "Load the pair without it, or measure with: edgespec tune",
        )


def _why_anew(pair: Pair, key: Key, store: TunedStore) -> Iterator[Notice]:
    name = pair.draft.weights.name if pair.draft else None
    reasons = outdated(store, key, pair.target.weights.name, name)
    if reasons:
        yield Notice(f"What was measured before no longer holds: {', '.join(reasons)}.")


@contextmanager
def _store_problems(store: TunedStore) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise EdgeSpecError(
            f"The results in {store.folder} cannot be used: {problem.strerror or problem}.",
            "Check the disk and the folder's permissions.",
        ) from problem


@contextmanager
def _undisturbed(pair: Pair) -> Iterator[None]:
    """No limit of rows meanwhile; that and the threads are as before, however it ends, and caches empty."""
    target = pair.target.model
    limit, target.row_limit = target.row_limit, None
    models = [loaded.model for loaded in pair.models]
    threads = [(model.threads, model.batch_threads) for model in models]
    try:
        yield
    finally:
        target.row_limit = limit
        for model, (single, batch) in zip(models, threads, strict=True):
            model.truncate(0)
            model.set_threads(single, batch)


def tune(
    pair: Pair, load: Load, key: Key, store: TunedStore, *, quick: bool = False
) -> Generator[Measured, None, Tuned]:
    """Measure a loaded pair; what it finds is not stored, what an interruption leaves is.

    May be closed or, by the pair's abort switch, cancelled at any step; the next one for the same key
    goes on. The quick form neither goes on nor takes away what a thorough one left. Raises
    EdgeSpecError, `Cancelled`, and OSError of the store.
    """
    samples: Samples = {} if quick else store.load_partial(key)
    bench = Bench(pair.target.model, pair.draft.model if pair.draft else None, samples)
    if quick:
        return (yield from _quick(pair, bench, key, store.load(key)))
    saved = bench.clock()
    complete = False
    try:
        steps = _thorough(pair, load, bench, key)
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                found: Tuned = end.value
                break
            if bench.clock() - saved > _SAVE_EVERY:
                store.save_partial(key, samples)
                saved = bench.clock()
            yield event
        complete = True
    finally:
        store.save_partial(key, {} if complete else samples)
    return found


def _quick(
    pair: Pair, bench: Bench, key: Key, before: Tuned | None
) -> Generator[Measured, None, Tuned]:
    threads = (pair.target.model.threads, pair.target.model.batch_threads)
    found = yield from quick_steps(bench, threads=threads)
    exact, acceptance = lasting(before, threads)
    return result(pair, key, found, quick=True, exact=exact, acceptance=acceptance)


def _thorough(pair: Pair, load: Load, bench: Bench, key: Key) -> Generator[Measured, None, Tuned]:
    choice = [load.threads] if load.threads else thread_choices()
    found = yield from calibrate(bench, Plan.full(bench.target, bench.draft, choice))
    exact = yield from measure_exact(bench)
    acceptance: dict[str, float] = {}
    if "draft" in pair.drafters:
        acceptance = yield from _acceptance(pair, bench, pair.drafters["draft"])
    return result(pair, key, found, quick=False, exact=exact, acceptance=acceptance)


def thread_choices() -> list[int]:
    """Numbers of threads that may be the best: 1, half the fast cores, these, and all that there are."""
    fast = usable_cores()
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical_cores()
    return sorted({1, max(1, fast // 2), fast, min(physical_cores(), allowed), allowed})


def _acceptance(
    pair: Pair, bench: Bench, drafter: Drafter
) -> Generator[Measured, None, dict[str, float]]:
    """The share of tested guesses that were right, by kind of text, at the built-in prompts."""
    prompts = read_prompts()
    for number, (kind, text) in enumerate(prompts):
        name = f"acceptance {number}"
        begun = bench.clock()
        if not bench.count(name):
            bench.samples[name] = _guesses(pair, drafter, _encode(pair, text))
        yield Measured(number + 1, len(prompts), f"acceptance, {kind}", bench.clock() - begun)
    shares: dict[str, float] = {}
    for kind in dict.fromkeys(kind for kind, _ in prompts):
        counts = [bench.samples[f"acceptance {n}"] for n, (k, _) in enumerate(prompts) if k == kind]
        tested, accepted = (sum(column) for column in zip(*counts, strict=True))
        if tested:
            shares[kind] = accepted / tested
    return shares


def read_prompts() -> list[tuple[str, str]]:
    """Kind and text of the prompts that come with EdgeSpec."""
    text = (resources.files("edgespec") / "tune_prompts.yaml").read_text(encoding="utf-8")
    return [(one["kind"], one["text"]) for one in yaml.safe_load(text)]


def _encode(pair: Pair, text: str) -> list[Token]:
    weights = pair.target.weights
    template, _ = choose_template(weights.tokenizer, weights.chat_template)
    tokens = ChatFormat(weights.tokenizer, template).encode([Message("user", text)])
    # A context too small for the prompt is no reason not to know the rest.
    return tokens[-max(1, pair.target.model.capacity - _TOKENS) :]


def _guesses(pair: Pair, drafter: Drafter, prompt: list[Token]) -> list[float]:
    """How many guesses of one greedy answer were tested, and how many were right."""
    options = DecodeOptions(
        sampling=Sampling(temperature=0),
        draft_length=_LENGTH,
        max_tokens=_TOKENS,
        end_tokens=pair.end_tokens,
    )
    events = list(decode(pair.target.model, drafter, prompt, options))
    if events[-1] == Finished(Reason.CANCELLED):
        raise Cancelled
    rounds = [event for event in events if isinstance(event, Round)]
    return [float(sum(one.tested for one in rounds)), float(sum(one.accepted for one in rounds))]
