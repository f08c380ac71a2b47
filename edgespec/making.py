"""How drafters are made of what was loaded; `methods` says which there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, between
from edgespec.drafters.base import Drafter
from edgespec.drafters.contexts import Contexts
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.head_model import HeadModel
from edgespec.drafters.headed import HeadedDrafter
from edgespec.drafters.lookahead import LookaheadDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.drafters.medusa import Heads, MedusaDrafter
from edgespec.drafters.suffix import SuffixDrafter
from edgespec.drafters.tree import LEAST, TreeDrafter
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
    reader: FeatureModel | None = None
    """An EAGLE-3 head or MTP layer, for a target that gives the states that it reads."""
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
        """The EAGLE-3 head or MTP layer, for a method that needs one."""
        if self.reader is None:
            raise ValueError("a method is made without its head")
        return self.reader


def chain(parts: Parts) -> DraftModelDrafter:
    """Of the draft model's guesses."""
    return DraftModelDrafter(parts.model, parts.target.vocab_size)


def suffix(parts: Parts) -> SuffixDrafter:
    """Copies, from given texts too."""
    return SuffixDrafter(corpus=parts.corpus)


def tree(parts: Parts) -> TreeDrafter:
    """Of the draft model's guesses."""
    return _branching(parts, parts.model, "tree")


def _branching(parts: Parts, model: LanguageModel, name: Method) -> TreeDrafter:
    """A guess must be worth its row: by the measured price where this is the method to go by, else
    there are as many guesses as the length allows, so that lengths can be compared."""
    if parts.costs is None or parts.load.method != name:
        return TreeDrafter(model, parts.target.vocab_size)
    price = row_price(parts.costs)
    return TreeDrafter(model, parts.target.vocab_size, MAX_DRAFT, max(price, LEAST))


def headed_chain(parts: Parts, name: Method) -> HeadedDrafter:
    """Of the guesses of an EAGLE-3 head or MTP layer, which are called so."""
    drafter = DraftModelDrafter(parts.features, parts.target.vocab_size)
    return HeadedDrafter(drafter, parts.features, name)


def eagle3_tree(parts: Parts) -> HeadedDrafter:
    """A tree of them."""
    drafter = _branching(parts, parts.features, "eagle3-tree")
    return HeadedDrafter(drafter, parts.features, "eagle3")


def medusa(parts: Parts) -> MedusaDrafter:
    """With a guess for each row that is worth it where costs are known, as in `tree`."""
    if parts.heads is None:
        raise ValueError("a method is made without its heads")
    if parts.costs is None or parts.load.method != "medusa":
        return MedusaDrafter(parts.heads)
    return MedusaDrafter(parts.heads, MAX_DRAFT, max(row_price(parts.costs), LEAST))


def row_price(costs: Costs) -> float:
    """What one more row of a verify pass costs, in tokens of plain decoding: the mean over 4 to 16."""
    verify = costs.tables[0].verify
    return (between(verify, 16) - between(verify, 4)) / 12 / costs.tables[0].token


def lookahead(parts: Parts) -> LookaheadDrafter:
    """With the window that promises most where costs are known."""
    best = _outlook(parts.costs, parts.target.max_rows) if parts.costs else None
    if best is None:
        return LookaheadDrafter(4, 4, 4)
    return LookaheadDrafter(best.window, best.ngram, best.guesses)


def _outlook(costs: Costs, rows: int) -> Outlook | None:
    """By the costs of rows in a context that is nearly empty, where they are cheapest."""
    return outlook(partial(between, costs.tables[0].verify), rows)


def doubt_lookahead(costs: Costs) -> str:
    """See `Way.doubt`."""
    found = _outlook(costs, MAX_DRAFT + 1)
    if found is None or found.pays:
        return ""
    return f"lookahead is off by default here: {found.why.partition(': ')[2]}"


def doubt_medusa(costs: Costs) -> str:
    """See `Way.doubt`."""
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
    lookup = suffix(parts) if parts.corpus else LookupDrafter(min_match=1)
    if not copies:
        # The longest match that it looks for is shorter than the shortest that counts.
        lookup = LookupDrafter(min_match=2, max_match=1)
    model = (parts.draft or parts.reader or parts.head_model) if drafts else None
    drafter = DraftModelDrafter(model, parts.target.vocab_size) if model else None
    return AutoDrafter(parts.costs, lookup, drafter, MAX_DRAFT)


def with_states(drafter: Drafter, parts: Parts) -> Drafter:
    """A drafter that may draft with a head, brought the states that this reads."""
    model = None if parts.draft else parts.reader or parts.head_model
    return HeadedDrafter(drafter, model) if model else drafter
