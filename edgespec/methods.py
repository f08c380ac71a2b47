"""The ways to draft, by name: what each is, what it needs, and how its drafter is made.

A drafter is made when it is first asked for: a chat pays for the one that it uses, and for no other.
Several share the draft model's context, and never two of them in one answer: each compares the text
with what that context holds when an answer begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, between
from edgespec.drafters.base import Drafter
from edgespec.drafters.cascade import CascadeDrafter
from edgespec.drafters.confidence import ConfidenceDrafter
from edgespec.drafters.contexts import Contexts
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.eagle3 import Eagle3Drafter
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.head_model import HeadedDrafter, HeadModel
from edgespec.drafters.kseq import KSeqDrafter
from edgespec.drafters.lookahead import LookaheadDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.drafters.medusa import Heads, MedusaDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.drafters.suffix import SuffixDrafter
from edgespec.drafters.tree import LEAST, TreeDrafter
from edgespec.errors import UsageError
from edgespec.lookahead import Outlook, outlook
from edgespec.model import LanguageModel
from edgespec.settings import MAX_DRAFT, Load, Method


@dataclass(slots=True)
class Parts:
    """What drafters are made of."""

    target: LanguageModel
    draft: LanguageModel | None = None
    load: Load = field(default_factory=Load)
    costs: Costs | None = None
    """None before they are known, and where nobody asked for them."""
    corpus: Sequence[Contexts] = ()
    """Texts that may be copied from beside the conversation."""
    heads: Heads | None = None
    """Medusa heads, for a target that gives its final states."""
    eagle3: FeatureModel | None = None
    """An EAGLE-3 head, for a target that gives the states that it reads."""
    head_model: HeadModel | None = field(init=False)
    """The heads in the place of a draft model, where there is none."""

    def __post_init__(self) -> None:
        heads = self.heads if self.draft is None else None
        self.head_model = HeadModel(heads, self.target.vocab_size) if heads else None

    @property
    def model(self) -> LanguageModel:
        """The draft model, for a method that needs one."""
        if self.draft is None:
            raise ValueError("a method is made without its draft model")
        return self.draft

    @property
    def features(self) -> FeatureModel:
        """The head, for a method that needs one."""
        if self.eagle3 is None:
            raise ValueError("a method is made without its head")
        return self.eagle3


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


def _draft(parts: Parts) -> DraftModelDrafter:
    return DraftModelDrafter(parts.model, parts.target.vocab_size)


def _suffix(parts: Parts) -> SuffixDrafter:
    return SuffixDrafter(corpus=parts.corpus)


def _tree(parts: Parts) -> TreeDrafter:
    return _branching(parts, parts.model, "tree")


def _branching(parts: Parts, model: LanguageModel, name: Method) -> TreeDrafter:
    """A guess must be worth its row: by the measured price where this is the method to go by, else
    there are as many guesses as the length allows, so that lengths can be compared."""
    if parts.costs is None or parts.load.method != name:
        return TreeDrafter(model, parts.target.vocab_size)
    price = row_price(parts.costs)
    return TreeDrafter(model, parts.target.vocab_size, MAX_DRAFT, max(price, LEAST))


def _eagle3(parts: Parts) -> Eagle3Drafter:
    drafter = DraftModelDrafter(parts.features, parts.target.vocab_size)
    return Eagle3Drafter(drafter, parts.features, "eagle3")


def _eagle3_tree(parts: Parts) -> Eagle3Drafter:
    drafter = _branching(parts, parts.features, "eagle3-tree")
    return Eagle3Drafter(drafter, parts.features, "eagle3")


def _medusa(parts: Parts) -> MedusaDrafter:
    """With a guess for each row that is worth it where costs are known, as `_tree`."""
    if parts.heads is None:
        raise ValueError("a method is made without its heads")
    if parts.costs is None or parts.load.method != "medusa":
        return MedusaDrafter(parts.heads)
    return MedusaDrafter(parts.heads, MAX_DRAFT, max(row_price(parts.costs), LEAST))


def row_price(costs: Costs) -> float:
    """What one more row of a verify pass costs, in tokens of plain decoding: the mean over 4 to 16."""
    verify = costs.tables[0].verify
    return (between(verify, 16) - between(verify, 4)) / 12 / costs.tables[0].token


def _lookahead(parts: Parts) -> LookaheadDrafter:
    """With the window that promises most where costs are known."""
    best = _outlook(parts.costs, parts.target.max_rows) if parts.costs else None
    if best is None:
        return LookaheadDrafter(4, 4, 4)
    return LookaheadDrafter(best.window, best.ngram, best.guesses)


def _outlook(costs: Costs, rows: int) -> Outlook | None:
    """By the costs of rows in a context that is nearly empty, where they are cheapest."""
    return outlook(partial(between, costs.tables[0].verify), rows)


def _doubt_lookahead(costs: Costs) -> str:
    found = _outlook(costs, MAX_DRAFT + 1)
    if found is None or found.pays:
        return ""
    return f"lookahead is off by default here: {found.why.partition(': ')[2]}"


def _doubt_medusa(costs: Costs) -> str:
    price = row_price(costs)
    if price < 1:
        return ""
    return (
        f"medusa drafts nothing here: one more row costs {price:.2f} of a token, and brings less."
    )


def make_auto(parts: Parts, *, copies: bool = True, drafts: bool = True) -> AutoDrafter:
    """The controller over what there is, or without copying, or without the draft model.

    Raises ValueError where costs are not known.
    """
    if parts.costs is None:
        raise ValueError("auto is made without costs")
    # Without given texts the two copy alike, and the simpler one takes less time in a round.
    lookup = _suffix(parts) if parts.corpus else LookupDrafter(min_match=1)
    if not copies:
        # The longest match that it looks for is shorter than the shortest that counts.
        lookup = LookupDrafter(min_match=2, max_match=1)
    model = (parts.draft or parts.eagle3 or parts.head_model) if drafts else None
    drafter = DraftModelDrafter(model, parts.target.vocab_size) if model else None
    return AutoDrafter(parts.costs, lookup, drafter, MAX_DRAFT)


def with_states(drafter: Drafter, parts: Parts) -> Drafter:
    """A drafter that may draft with a head, brought the states that this reads."""
    if parts.draft:
        return drafter
    if parts.eagle3:
        return Eagle3Drafter(drafter, parts.eagle3)
    return HeadedDrafter(drafter, parts.head_model) if parts.head_model else drafter


WAYS: Mapping[Method, Way] = {
    "plain": Way("one token a pass, nothing drafted", lambda _: NoDrafter(), length=0),
    "draft": Way("a chain of the draft model's guesses", _draft, compared=(2, 4, 8), model=True),
    "confidence": Way(
        "a chain that ends where the draft model is less than 0.8 sure",
        lambda parts: ConfidenceDrafter(_draft(parts)),
        length=16,
        compared=(16,),
        model=True,
    ),
    "tree": Way(
        "a tree of the draft model's guesses, branching where it is unsure",
        _tree,
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
        _eagle3,
        length=4,
        compared=(2, 4),
        eagle3=True,
    ),
    "eagle3-tree": Way(
        "a tree of the EAGLE-3 head's guesses, branching where it is unsure",
        _eagle3_tree,
        compared=(4,),
        eagle3=True,
        trees=True,
        costs=True,
    ),
    "lookup": Way(
        "what followed the last time the text ended like this",
        lambda _: LookupDrafter(),
        compared=(4, 8),
    ),
    "suffix": Way(
        "what mostly followed here and in given texts, as far as such copies were kept",
        _suffix,
        length=12,
        compared=(12,),
        texts=True,
    ),
    "lookahead": Way(
        "n-grams that the target finds beside the text, in the same passes",
        _lookahead,
        trees=True,
        costs=True,
        doubt=_doubt_lookahead,
    ),
    "medusa": Way(
        "a tree of what heads on the target's last state guess, several places at once",
        _medusa,
        compared=(4, 8),
        heads=True,
        costs=True,
        doubt=_doubt_medusa,
    ),
    "cascade": Way(
        "copies while a match is strong, the draft model where they stop",
        lambda parts: CascadeDrafter(_suffix(parts), _draft(parts)),
        length=12,
        compared=(12,),
        model=True,
        texts=True,
    ),
    "auto": Way(
        "in each round what promises most tokens a second, or nothing",
        lambda parts: with_states(make_auto(parts), parts),
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
        if way.model and not self.draft:
            return UsageError(
                f"The method {method} needs a draft model, and there is none.",
                "Name one with --draft, or choose another method.",
            )
        if way.heads and not self.heads:
            return UsageError(
                f"The method {method} needs Medusa heads that were trained for this model, and there are "
                "none.",
                "Train some: edgespec train medusa. Or name their file with --draft.",
            )
        if way.eagle3 and not self.eagle3:
            return UsageError(
                f"The method {method} needs an EAGLE-3 head that was trained for this model, and there is "
                "none.",
                "Train one: edgespec train eagle3. Or name its file with --draft.",
            )
        if way.trees and not self.trees:
            return UsageError(
                f"The method {method} needs a target that takes trees: one with a plain KV cache, "
                "without --strict.",
                "Choose another method.",
            )
        return None


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
    if means.heads:
        return "medusa"
    if means.eagle3:
        return "eagle3"
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
