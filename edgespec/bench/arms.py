"""What takes turns in a benchmark: each method of a pair, at each length it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, get_args, runtime_checkable

import numpy as np

from edgespec.drafters.base import Drafter
from edgespec.engine import Acceptance, DecodeOptions, decode
from edgespec.errors import Cancelled, UsageError
from edgespec.events import Finished, FirstToken, Prefilled, Reason, Round
from edgespec.making import make_auto, with_states
from edgespec.methods import WAYS
from edgespec.model import Token
from edgespec.noise import SharedNoise
from edgespec.pair import Pair
from edgespec.sampling import Sampling
from edgespec.settings import MAX_DRAFT, Method
from edgespec.stats import Stats

AUTO_PARTS = ("auto-lookup", "auto-draft")
"""The controller with one of its two drafters only: what a cascade is to be compared with."""
METHODS: tuple[str, ...] = (*get_args(Method), *AUTO_PARTS)
"""All that can be named; `all` leaves out `AUTO_PARTS`."""


@dataclass(frozen=True, slots=True)
class Order:
    """One answer that is asked for."""

    prompt: Sequence[Token]
    sampling: Sampling
    max_tokens: int
    seed: Sequence[int] = (0,)
    """Each number 0 or more. The same for all arms of a turn."""
    acceptance: Acceptance = "rejection"


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
        """One answer, from empty caches. Raises EdgeSpecError, and `Cancelled` for half an answer."""
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
    memory_bytes: int | None = 0
    """What it takes beside the target alone; None where that is not known."""

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
            acceptance=order.acceptance,
            uniform=np.random.default_rng(order.seed).random,
            noise=SharedNoise(order.seed),
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
                case Finished(reason=Reason.CANCELLED):
                    raise Cancelled  # half an answer is none
                case Prefilled() | Finished():
                    pass
        outside = 1 - (pair.native_seconds - native) / seconds
        return Answer(tuple(tokens), stats, dict(sources), outside)


def parse_methods(text: str) -> list[str] | None:
    """The methods named in a list with commas; None for `all`. Raises UsageError."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    if names == ["all"]:
        return None
    for name in names:
        if name not in METHODS:
            raise UsageError(
                f"--methods: there is no method {name!r}.",
                f"Methods are {', '.join(METHODS)}; all stands for those that the pair has.",
            )
    if not names:
        raise UsageError("--methods names none.", "Give e.g. auto,lookup, or all.")
    return list(dict.fromkeys(names))


def arms_of(
    pair: Pair, methods: Sequence[str] | None, lengths: Sequence[int] | None = None
) -> list[Arm]:
    """Plain decoding first, then the methods, each at every length; those without a length once.

    `methods` None stands for all, `lengths` None for those that are worth comparing in each method.
    Raises UsageError for a method that the pair does not have.
    """
    arms = [Arm("plain", 0, Local(pair, pair.drafters["plain"], 0))]
    for name in pair.drafters if methods is None else methods:
        if name in AUTO_PARTS:
            local = Local(pair, _part_of_auto(pair, name), MAX_DRAFT)
            arms.append(Arm(name, 0, local, 0 if name == "auto-lookup" else _memory(pair)))
        elif name != "plain":
            arms += _arms(pair, name, lengths)
    return arms


def _arms(pair: Pair, name: str, lengths: Sequence[int] | None) -> list[Arm]:
    method = next(one for one in WAYS if one == name)
    if method not in pair.drafters:
        raise _unavailable(pair, method)
    drafter, way = pair.drafters[method], WAYS[method]
    memory = _memory(pair) if way.loads or way.mtp or method == "auto" else 0
    if not way.compared:
        return [Arm(method, 0, Local(pair, drafter, way.length), memory)]
    chosen = way.compared if lengths is None else lengths
    return [Arm(method, n, Local(pair, drafter, n), memory) for n in chosen]


def _memory(pair: Pair) -> int:
    """Bytes of the draft model or MTP context, with KV cache and compute buffers, or of the heads."""
    if pair.heads:
        return pair.heads.nbytes
    return sum(share.total for share in pair.draft.shares) if pair.draft else 0


def _part_of_auto(pair: Pair, name: str) -> Drafter:
    """The controller with one drafter only."""
    if pair.auto is None or pair.parts is None:
        raise _unavailable(pair, "auto")
    if name == "auto-lookup":
        return make_auto(pair.parts, drafts=False)
    if pair.draft is None and pair.heads is None:
        raise _unavailable(pair, "draft")
    return with_states(make_auto(pair.parts, copies=False), pair.parts)


def _unavailable(pair: Pair, method: Method) -> UsageError:
    return pair.means.lack(method) or UsageError(
        f"The method {method} is not among those that were loaded.", "Leave it out of --methods."
    )
