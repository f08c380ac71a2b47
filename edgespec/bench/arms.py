"""What takes turns in a benchmark: each method of a pair, at each length it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, get_args, runtime_checkable

import numpy as np

from edgespec.drafters.base import Drafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import UsageError
from edgespec.events import Finished, FirstToken, Prefilled, Round
from edgespec.model import Token
from edgespec.pair import MAX_DRAFT, Method, Pair
from edgespec.sampling import Sampling
from edgespec.stats import Stats

METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True, slots=True)
class Order:
    """One answer that is asked for."""

    prompt: Sequence[Token]
    sampling: Sampling
    max_tokens: int
    seed: Sequence[int] = (0,)
    """Each number 0 or more. The same for all arms of a turn."""
    draw_drafts: bool = True
    """Off: accept-if-equal with the draft's arg-max instead of rejection sampling."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of one arm."""

    tokens: tuple[Token, ...]
    """What was emitted, an end token included."""
    stats: Stats
    sources: Mapping[str, int] = field(default_factory=dict)
    """Rounds by the drafter that proposed in them; the empty name for those without a draft."""
    outside: float | None = None
    """Share of the answer's time spent outside llama.cpp's calls; None where nobody can tell."""


class Answerer(Protocol):
    """Who answers for an arm."""

    def answer(self, order: Order) -> Answer:
        """One answer, from empty caches. Raises EdgeSpecError."""
        ...

    def forget(self) -> bool:
        """Unlearn what earlier answers taught; False where nothing is ever learned."""
        ...


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing that is measured."""

    method: str
    draft_length: int
    """0 where there is no fixed one: plain decoding, `auto`, a server."""
    answerer: Answerer

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from the others."""
        return self.method, self.draft_length


@runtime_checkable
class Learner(Protocol):
    """A drafter that learns from what was accepted."""

    def forget(self) -> None:
        """Be as it was when it was made."""
        ...


class Local:
    """A drafter of a loaded pair."""

    def __init__(self, pair: Pair, drafter: Drafter, draft_length: int) -> None:
        self._pair, self._drafter, self._draft_length = pair, drafter, draft_length

    def forget(self) -> bool:
        """As far as the drafter can."""
        if not isinstance(self._drafter, Learner):
            return False
        self._drafter.forget()
        return True

    def answer(self, order: Order) -> Answer:
        """From empty caches, so that TTFT is that of a new conversation."""
        pair = self._pair
        for loaded in pair.models:
            loaded.model.truncate(0)
        options = DecodeOptions(
            sampling=order.sampling,
            draft_length=self._draft_length,
            max_tokens=order.max_tokens,
            end_tokens=pair.end_tokens,
            uniform=np.random.default_rng(order.seed).random,
            draw_drafts=order.draw_drafts,
        )
        native, begun = pair.native_seconds, options.clock()
        events = list(decode(pair.target.model, self._drafter, order.prompt, options))
        seconds = options.clock() - begun
        tokens: list[Token] = []
        stats, sources = Stats(), Counter[str]()
        for event in events:
            stats = stats.after(event)
            match event:
                case FirstToken(token=token):
                    tokens.append(token)
                case Round():
                    tokens.extend(event.tokens)
                    sources[event.source] += 1
                case Prefilled() | Finished():
                    pass
        outside = 1 - (pair.native_seconds - native) / seconds
        return Answer(tuple(tokens), stats, dict(sources), outside)


def parse_methods(text: str) -> list[Method] | None:
    """The methods named in a list with commas; None for `all`. Raises UsageError."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    if names == ["all"]:
        return None
    known = {str(method): method for method in METHODS}
    for name in names:
        if name not in known:
            raise UsageError(
                f"--methods: there is no method {name!r}.",
                f"Methods are {', '.join(known)}; all stands for those that the pair has.",
            )
    if not names:
        raise UsageError("--methods names none.", "Give e.g. auto,lookup, or all.")
    return [known[name] for name in dict.fromkeys(names)]


def arms_of(pair: Pair, methods: Sequence[Method] | None, lengths: Sequence[int]) -> list[Arm]:
    """Plain decoding first, then the fixed methods at each length, and `auto` once.

    `methods` None stands for all. Raises UsageError for one that the pair does not have.
    """
    arms = [Arm("plain", 0, Local(pair, pair.drafters["plain"], 0))]
    for method in pair.drafters if methods is None else methods:
        if method not in pair.drafters:
            raise _unavailable(method)
        drafter = pair.drafters[method]
        if method == "auto":
            arms.append(Arm(method, 0, Local(pair, drafter, MAX_DRAFT)))
        elif method != "plain":
            arms += [Arm(method, n, Local(pair, drafter, n)) for n in lengths]
    return arms


def _unavailable(method: Method) -> UsageError:
    if method == "draft":
        return UsageError(
            "--methods: this pair has no draft model for the method draft.",
            "Name one with --draft, or leave draft out of --methods.",
        )
    return UsageError(
        f"--methods: nothing is drafted here, so there is no {method}.",
        "Leave out --draft none; a model that cannot take back tokens can only be measured plain.",
    )
