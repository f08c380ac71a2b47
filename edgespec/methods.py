"""The ways to draft, by name: what each is and what it needs; `making` makes their drafters.

A drafter is made when it is first asked for: a chat pays for the one that it uses, and for no other.
Several share the draft model's context, and never two of them in one answer: each compares the text
with what that context holds when an answer begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from edgespec import making
from edgespec.costs import Costs
from edgespec.drafters.base import Drafter
from edgespec.drafters.cascade import CascadeDrafter
from edgespec.drafters.confidence import ConfidenceDrafter
from edgespec.drafters.kseq import KSeqDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.errors import UsageError
from edgespec.making import Parts
from edgespec.settings import MAX_DRAFT, Load, Method


@dataclass(frozen=True, slots=True)
class Way:
    """One way to draft."""

    about: str
    """A few words."""
    make: Callable[[Parts], Drafter]
    length: int = 8
    """Tokens of a draft at most, where nobody says how many."""
    compared: tuple[int, ...] = ()
    """Lengths that are worth comparing; empty where it has none, because it chooses for itself."""
    model: bool = False
    """Whether it needs a draft model."""
    heads: bool = False
    """Whether it needs Medusa heads."""
    eagle3: bool = False
    """Whether it needs an EAGLE-3 head."""
    mtp: bool = False
    """Whether it needs a layer of the target's own for the token after the next."""
    trees: bool = False
    """Whether it needs a target that takes trees."""
    costs: bool = False
    """Whether it goes by what passes cost here."""
    texts: bool = False
    """Whether it copies from texts that are given, too."""
    doubt: Callable[[Costs], str] = lambda _: ""
    """By what passes cost here, why it will not pay, as a sentence; empty where it may."""

    @property
    def loads(self) -> bool:
        """Whether it needs something to draft with beside the target: a model, or heads."""
        return self.model or self.heads or self.eagle3


WAYS: Mapping[Method, Way] = {
    "plain": Way("one token a pass, nothing drafted", lambda _: NoDrafter(), length=0),
    "draft": Way(
        "a chain of the draft model's guesses", making.chain, compared=(2, 4, 8), model=True
    ),
    "confidence": Way(
        "a chain that ends where the draft model is less than 0.8 sure",
        lambda parts: ConfidenceDrafter(making.chain(parts)),
        length=16,
        compared=(16,),
        model=True,
    ),
    "tree": Way(
        "a tree of the draft model's guesses, branching where it is unsure",
        making.tree,
        compared=(4, 8),
        model=True,
        trees=True,
        costs=True,
    ),
    "kseq": Way(
        "four independent drafts of the draft model, of which k-SEQ takes one",
        lambda parts: KSeqDrafter(parts.model, parts.target.vocab_size),
        length=4,
        compared=(4,),
        model=True,
        trees=True,
    ),
    "eagle3": Way(
        "a chain that an EAGLE-3 head guesses from the target's own states",
        lambda parts: making.headed_chain(parts, "eagle3"),
        length=4,
        compared=(2, 4),
        eagle3=True,
    ),
    "eagle3-tree": Way(
        "a tree of the EAGLE-3 head's guesses, branching where it is unsure",
        making.eagle3_tree,
        compared=(4,),
        eagle3=True,
        trees=True,
        costs=True,
    ),
    "mtp": Way(
        "a chain that the target's own MTP layer guesses (EXPERIMENTAL)",
        lambda parts: making.headed_chain(parts, "mtp"),
        length=2,
        compared=(1, 2),
        mtp=True,
    ),
    "lookup": Way(
        "what followed the last time the text ended like this",
        lambda _: LookupDrafter(),
        compared=(4, 8),
    ),
    "suffix": Way(
        "what mostly followed here and in given texts, as far as such copies were kept",
        making.suffix,
        length=12,
        compared=(12,),
        texts=True,
    ),
    "lookahead": Way(
        "n-grams that the target finds beside the text, in the same passes",
        making.lookahead,
        trees=True,
        costs=True,
        doubt=making.doubt_lookahead,
    ),
    "medusa": Way(
        "a tree of what heads on the target's last state guess, several places at once",
        making.medusa,
        compared=(4, 8),
        heads=True,
        costs=True,
        doubt=making.doubt_medusa,
    ),
    "cascade": Way(
        "copies while a match is strong, the draft model where they stop",
        lambda parts: CascadeDrafter(making.suffix(parts), making.chain(parts)),
        length=12,
        compared=(12,),
        model=True,
        texts=True,
    ),
    "auto": Way(
        "in each round what promises most tokens a second, or nothing",
        lambda parts: making.with_states(making.make_auto(parts), parts),
        length=MAX_DRAFT,
        costs=True,
        texts=True,
    ),
}
"""In the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a pair has to draft with."""

    draft: bool = False
    """Whether there is a draft model."""
    heads: bool = False
    """Whether there are Medusa heads for the target."""
    eagle3: bool = False
    """Whether there is an EAGLE-3 head for it."""
    mtp: bool = False
    """Whether a layer of its own for the token after the next was loaded."""
    trees: bool = False
    """Whether the target takes trees."""
    refusal: str = ""
    """Why nothing at all is drafted; empty where something can be."""

    def lack(self, method: Method) -> UsageError | None:
        """Why it cannot use a method; None when it can."""
        way = WAYS[method]
        if method == "plain":
            return None
        if self.refusal:
            return UsageError(
                f"The method {method} cannot be used: {self.refusal}.", "Plain decoding is left."
            )
        for missing, needed, hint in (
            (
                way.model and not self.draft,
                f"a draft model, {self._instead}",
                "Name one with --draft, or choose another method.",
            ),
            (
                way.heads and not self.heads,
                f"Medusa heads that were trained for this model, {self._instead}",
                "Train some: edgespec train medusa NAME. Or name their file with --draft.",
            ),
            (
                way.eagle3 and not self.eagle3,
                f"an EAGLE-3 head that was trained for this model, {self._instead}",
                "Train one: edgespec train eagle3 NAME. Or name its file with --draft.",
            ),
            (
                way.mtp and not self.mtp,
                "a target that is loaded with its own MTP layer, and none is",
                f"Load it with --method {method} alone, and memory to spare.",
            ),
            (
                way.trees and not self.trees,
                "a target that takes trees: one with a plain KV cache, without --strict",
                "Choose another method.",
            ),
        ):
            if missing:
                return UsageError(f"The method {method} needs {needed}.", hint)
        return None

    @property
    def _instead(self) -> str:
        """What there is to draft with, for who misses something else."""
        kinds = {"a model": self.draft, "Medusa heads": self.heads, "an EAGLE-3 head": self.eagle3}
        given = next((name for name, here in kinds.items() if here), None)
        return f"and what is given is {given}" if given else "and none is given"


def chosen(load: Load, means: Means) -> Method:
    """The method that answers are decoded with. Raises UsageError for one that cannot be used."""
    if load.method != "auto":
        lack = means.lack(load.method)
        if lack:
            raise lack
        return load.method
    if means.refusal:
        return "plain"
    if load.draft_length is None:
        return "auto"
    if load.texts:
        return "cascade" if means.draft else "suffix"
    if means.heads or means.eagle3:
        return "medusa" if means.heads else "eagle3"
    return "draft" if means.draft else "lookup" if load.draft == "lookup" else "plain"


class Drafters(Mapping[Method, Drafter]):
    """Drafters by method, each made when it is first asked for."""

    def __init__(
        self, parts: Parts, methods: Iterable[Method], made: Mapping[Method, Drafter]
    ) -> None:
        """`methods` can be made of the parts; some more may be `made` already."""
        self._parts = parts
        self._made: dict[Method, Drafter | None] = {**dict.fromkeys(methods), **made}

    def __getitem__(self, method: Method) -> Drafter:
        drafter = self._made[method]
        if drafter is None:
            drafter = self._made[method] = WAYS[method].make(self._parts)
        return drafter

    def __contains__(self, method: object) -> bool:
        return method in self._made  # as mappings do it, the drafter would be made

    def __iter__(self) -> Iterator[Method]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    @property
    def made(self) -> list[Drafter]:
        """Those that there are by now."""
        return [drafter for drafter in self._made.values() if drafter]
