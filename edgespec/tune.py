"""`edgespec tune`: everything that is worth knowing of a pair, measured once and thoroughly."""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib import resources

import yaml

from edgespec.calibrate import Bench, Calibration, Measured, Plan, Samples, calibrate
from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.drafters.base import Drafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import Cancelled
from edgespec.events import Finished, Reason, Round
from edgespec.exact import measure_exact
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.quick import calibrate_quick
from edgespec.sampling import Sampling
from edgespec.settings import Load
from edgespec.templates import choose_template
from edgespec.tuning import result
from profiles.cores import logical_cores, physical_cores, usable_cores
from profiles.tuned import Key, Tuned, TunedStore

_SAVE_EVERY = 5.0
_LENGTH = 4
"""Tokens drafted in a round while acceptance is measured."""
_TOKENS = 48
"""Of each answer."""


def tune(
    pair: Pair, load: Load, key: Key, store: TunedStore, *, quick: bool = False
) -> Generator[Measured, None, Tuned]:
    """Measure a loaded pair; what it finds is not stored, what an interruption leaves is.

    May be closed or, by the pair's abort switch, cancelled at any step; the next one for the same key
    goes on. Raises EdgeSpecError, `Cancelled`, and OSError of the store.
    """
    samples: Samples = {} if quick else store.load_partial(key)
    bench = Bench(pair.target.model, pair.draft.model if pair.draft else None, samples)
    saved = bench.clock()
    complete = False
    try:
        steps = _quick(pair, bench) if quick else _thorough(pair, load, bench)
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                found, exact, acceptance = end.value
                break
            if bench.clock() - saved > _SAVE_EVERY:
                store.save_partial(key, samples)
                saved = bench.clock()
            yield event
        complete = True
    finally:
        store.save_partial(key, {} if complete or quick else samples)
    return result(pair, key, found, quick=quick, exact=exact, acceptance=acceptance)


_Found = tuple[Calibration, dict[int, int] | None, dict[str, float]]


def _quick(pair: Pair, bench: Bench) -> Generator[Measured, None, _Found]:
    model = pair.target.model
    found = calibrate_quick(bench, threads=(model.threads, model.batch_threads))
    yield Measured(1, 1, "quick form", found.costs.tables[0].token)
    return found, None, {}


def _thorough(pair: Pair, load: Load, bench: Bench) -> Generator[Measured, None, _Found]:
    choice = [load.threads] if load.threads else thread_choices()
    found = yield from calibrate(bench, Plan.full(bench.target, bench.draft, choice))
    exact = yield from measure_exact(bench)
    acceptance: dict[str, float] = {}
    if "draft" in pair.drafters:
        acceptance = yield from _acceptance(pair, bench, pair.drafters["draft"])
    return found, exact, acceptance


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
