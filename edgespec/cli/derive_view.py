"""How `edgespec derive` tells what it does and what it found: progress, sentences, a table, JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from edgespec.cli import output
from edgespec.cli.models import human_size, table
from edgespec.derive.candidates import Candidate, Doing
from edgespec.derive.deriving import Derived
from edgespec.derive.recipes import ranges
from edgespec.reply import Notice

_T = TypeVar("_T")

_PLAIN_EVERY = 10.0
"""Seconds between lines about the progress, where they cannot be painted over."""


def describe(derived: Derived) -> str:
    """All that were measured, the fastest first, for people."""
    kinds = list(derived.best.kinds)
    lines = [["draft", "size", "step", *kinds, "at T=1", "speed-up"]]
    for one in sorted(derived.candidates, key=lambda found: -found.speedup):
        cells = [f"{one.kinds[k].greedy:.0%} {one.gains[k].speedup:.2f}x" for k in kinds]
        name = one.recipe.words(derived.layers)
        sampled = f"{one.agreement.sampled:.0%}"
        lines.append(
            [name, human_size(one.size), f"{one.share:.2f}", *cells, sampled, f"{one.speedup:.2f}x"]
        )
    legend = (
        "step: of a token of the target. By kind of text: guesses that were right, and the speed-up that "
        "is predicted\nfrom them at the best length. At T=1: acceptance when sampling.\n"
    )
    return table(lines, right=frozenset(range(1, len(lines[0])))) + legend


def facts(derived: Derived) -> dict[str, Any]:
    """For JSON. The keys are a published format."""
    return {
        "layers": derived.layers,
        "candidates": [_candidate_facts(one) for one in derived.candidates],
        "best": derived.candidates.index(derived.best),
        "pays": derived.pays,
        "busy": " ".join(derived.doubts),
    }


def _candidate_facts(one: Candidate) -> dict[str, Any]:
    return {
        "kind": one.recipe.kind,
        "bits": one.recipe.bits,
        "drop": list(one.recipe.drop),
        "options": one.recipe.options,
        "size": one.size,
        "step": one.share,
        "speedup": one.speedup,
        "sampled": one.agreement.sampled,
        "texts": {
            kind: {
                "tested": found.tested,
                "greedy": found.greedy,
                "sampled": found.sampled,
                "length": one.gains[kind].length,
                "speedup": one.gains[kind].speedup,
            }
            for kind, found in one.kinds.items()
        },
    }


def sentence(one: Candidate) -> str:
    """A candidate that has just been measured."""
    shares = ", ".join(f"{found.greedy:.0%} {kind}" for kind, found in one.kinds.items())
    without = f" without {ranges(one.recipe.drop)}" if one.recipe.drop else ""
    return (
        f"{one.recipe.bits or 'own bits'}{without}: {human_size(one.size)}, a step takes "
        f"{one.share:.2f} of a token, right in {shares}: {one.speedup:.2f}x"
    )


class Line:
    """Progress on stderr: one line painted over, or elsewhere a line now and then."""

    def __init__(self) -> None:
        self._paints = sys.stderr.isatty()
        self._next = time.monotonic()
        self._what = ""

    def show(self, event: Doing) -> None:
        """Show how far it is, if it is time to, or if something new begins."""
        now = time.monotonic()
        begins = self._paints and event.what != self._what
        if now < self._next and not begins:
            return
        self._what = event.what
        self._next = now + (0.1 if self._paints else _PLAIN_EVERY)
        count = f"{event.done} of {event.total}" if event.total else f"{event.done or ''}"
        if self._paints:
            sys.stderr.write(f"\r\x1b[K{event.what}  {count}"[:78])
            sys.stderr.flush()
        else:
            output.note(f"{event.what}  {count}".rstrip())

    def told(self, events: Iterable[_T | Doing | Notice]) -> Iterator[_T]:
        """Show progress and tell notices; what else there is, after the line was taken away."""
        for event in events:
            if isinstance(event, Doing):
                self.show(event)
                continue
            self.clear()
            if isinstance(event, Notice):
                output.note(event.text)
            else:
                yield event

    def clear(self) -> None:
        """Take the line away."""
        if self._paints:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
