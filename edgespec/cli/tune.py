"""`edgespec tune`: measure what drafting costs and brings with a pair, and keep it for every later use."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from edgespec.cli import output
from edgespec.cli.background import in_background
from edgespec.cli.layers import settings_here
from edgespec.cli.models import print_json, table
from edgespec.cli.options import add_model_options, load_from
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.costs import CostTable
from edgespec.errors import UsageError
from edgespec.measuring import Measured, Outcome, Stopped, TuneEvent
from edgespec.pair import Pair
from edgespec.reply import Notice
from edgespec.settings import MAX_DRAFT, Load
from edgespec.tune import known_ahead, tune_events
from edgespec.tuned_keys import this_machine
from edgespec.tuning import costs_of
from profiles.tuned import Tuned, TunedStore, stale_reasons

_PLAIN_EVERY = 10.0
"""Seconds between lines about the progress, where they cannot be painted over."""


def main(arguments: Sequence[str]) -> int:
    """Measure, keep, print; returns the exit code."""
    options = parser().parse_args(arguments)
    store = TunedStore.default()
    if options.list:
        return _list(store, as_json=options.json)
    outcome = _outcome(store, _load(options), options)
    for text in store.notices:
        output.note(text)
    if outcome is None:
        return ExitCode.INTERRUPTED
    tuned = outcome.found
    if options.json:
        print_json(tuned.model_dump(mode="json"))
    else:
        output.answer(describe(tuned))
    return ExitCode.ERROR if tuned.busy else ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("tune", "Measure what drafting costs and brings with a pair on this machine.")
    options.add_argument(
        "pair", nargs="?", metavar="NAME|PATH", help="stored pair or model, or a GGUF file"
    )
    add_model_options(options, settings_here().profile)
    group = options.add_argument_group("measurement")
    group.add_argument("--quick", action="store_true", help="ten seconds instead of minutes")
    group.add_argument("--force", action="store_true", help="measure again what was measured")
    group.add_argument("--list", action="store_true", help="show what was measured, and do nothing")
    add_json(options)
    return options


def _load(options: argparse.Namespace) -> Load:
    load, named = load_from(options, MAX_DRAFT), options.pair
    if named and load.model:
        raise UsageError(
            f"Two models: {named} and {load.model}.", "Name the pair once, with or without --model."
        )
    return replace(load, model=named or load.model)


def _outcome(store: TunedStore, load: Load, options: argparse.Namespace) -> Outcome | None:
    """What is known already and good enough, or else measured; None when that was interrupted."""
    # Loading takes longer than anything else that there is to do for what is known.
    known = None if options.force else known_ahead(load, store, quick=options.quick)
    if known:
        outcome: Outcome | None = Outcome(found=known, holds=known, measured=False)
    else:
        with closing(Pair.open(load)) as pair:
            for text in pair.notices:
                output.note(text)
            outcome = _watched(
                pair,
                tune_events(pair, load, quick=options.quick, force=options.force, store=store),
            )
    if outcome and not outcome.measured:
        output.note(f"Measured on {outcome.found.measured_at}; --force measures again.")
    elif outcome and outcome.holds is not outcome.found:
        output.note("The figures from before are kept: those of now are not to be believed.")
    return outcome


def _watched(pair: Pair, steps: Iterator[TuneEvent]) -> Outcome | None:
    line = Line()
    with in_background(steps, partial(pair.interrupt, on=True)) as events:
        try:
            return _shown(events, line)
        finally:
            line.clear()


def _shown(events: Iterator[TuneEvent], line: Line) -> Outcome | None:
    for event in events:
        match event:
            case Measured():
                line.show(event)
            case Notice(text=text):
                line.clear()
                output.note(text)
            case Stopped(goes_on=goes_on):
                line.clear()
                kept = " What was measured is kept; the next `edgespec tune` goes on."
                output.note(f"(stopped){kept if goes_on else ''}")
            case Outcome():
                return event
    return None


class Line:
    """Progress on stderr: one line painted over, or elsewhere a line now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paints = sys.stderr.isatty()
        self._next = clock()

    def show(self, event: Measured) -> None:
        """Show how far it is, if it is time to."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + (0.1 if self._paints else _PLAIN_EVERY)
        text = f"{event.done:4} of {event.total}  {event.what}  {event.seconds * 1e3:.1f} ms"
        if self._paints:
            sys.stderr.write(f"\r\x1b[K{text[:78]}")
            sys.stderr.flush()
        else:
            output.note(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._paints:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def describe(tuned: Tuned) -> str:
    """A result for people."""
    names = f"{tuned.target_name} + {tuned.draft_name}" if tuned.draft_name else tuned.target_name
    tables = costs_of(tuned).tables
    parts = [f"{names}\n\n{_rows(tables)}", _steps(tuned, tables), _gains(tuned)]
    parts.append(f"{tuned.recommendation.why}\n")
    if tuned.busy:
        parts.append(f"NOT TO BE BELIEVED: {tuned.busy}\nMeasure again in a quiet moment.\n")
    return "\n".join(part for part in parts if part)


def _rows(tables: Sequence[CostTable]) -> str:
    head = ["rows"]
    for one in tables:
        head += [f"ms at {one.depth}", "of one row"]
    lines = [head]
    for n in sorted(tables[0].verify):
        cells = [[_ms(one.verify[n]), f"{one.verify[n] / one.token:.2f}"] for one in tables]
        lines.append([str(n), *(cell for pair in cells for cell in pair)])
    return table(lines, right=frozenset(range(len(head))))


def _steps(tuned: Tuned, tables: Sequence[CostTable]) -> str:
    lines = []
    first = tables[0]
    if first.draft:
        lines.append(
            f"draft step {_ms(first.draft[1])} ms, {first.draft[1] / first.token:.2f} of a row"
        )
        fed = ", ".join(f"{n}: {_ms(cost)}" for n, cost in sorted(first.draft.items()) if n > 1)
        lines.append(f"draft catching up, ms by tokens: {fed}" if fed else "")
    reading = [(tuned.target_name, tuned.prefill), (tuned.draft_name, tuned.draft_prefill)]
    lines += [f"prompt {1 / cost:.0f} tok/s with {name}" for name, cost in reading if cost]
    lines.append(f"threads {tuned.threads} for single rows, {tuned.batch_threads} for batches")
    if tuned.exact_rows:
        exact = ", ".join(f"{rows} at {depth}" for depth, rows in tuned.exact_rows.items())
        lines.append(f"rows that round like single ones, by depth: {exact}")
    return "".join(f"{line}\n" for line in lines if line)


def _gains(tuned: Tuned) -> str:
    lines = [["acceptance", "best length", "predicted speed-up"]]
    for percent, gain in tuned.recommendation.gains.items():
        lines.append([f"{percent} %", str(gain.length or "-"), f"{gain.speedup:.2f}x"])
    return table(lines, right=frozenset({0, 1, 2}))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}"


def _threads(tuned: Tuned) -> str:
    """For single rows, and for batches where that is another number."""
    both = dict.fromkeys((tuned.threads, tuned.batch_threads))
    return " / ".join(map(str, both))


def _list(store: TunedStore, *, as_json: bool) -> int:
    """What was measured, the latest first, and whether it holds for this machine and build."""
    found = [(one, stale_reasons(one.key, this_machine(one.key))) for one in store.all()]
    if as_json:
        facts = [{**one.model_dump(mode="json"), "stale": list(why)} for one, why in found]
        print_json({"folder": str(store.folder), "results": facts})
    elif not found:
        output.answer("Nothing was measured yet. `edgespec tune NAME` does it.\n")
    else:
        lines = [["TARGET", "DRAFT", "THREADS", "MEASURED", "FORM", "METHOD", "STALE"]]
        lines += [
            [
                one.target_name,
                one.draft_name or "-",
                _threads(one),
                one.measured_at,
                f"{'quick' if one.quick else 'full'}{', busy' if one.busy else ''}",
                one.recommendation.method,
                ", ".join(why) or "-",
            ]
            for one, why in found
        ]
        output.answer(table(lines))
    for text in store.notices:
        output.note(text)
    return ExitCode.OK
