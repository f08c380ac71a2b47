"""Find the draft for a target: the catalogue's for its family, or one in the store that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from model_registry.gguf import GGUFError
from model_registry.headers import Head, head_of
from model_registry.hub_problem import HubProblem
from model_registry.pairing import MOST_EXTRA_TOKENS, PairVerdict
from model_registry.problem import ModelFileProblem
from model_registry.records import ModelRecord, Traits
from model_registry.sources import Finder, Wanted
from model_registry.store import Store
from model_registry.vocabulary import check_pair, read

_SMALLER = 2
"""How many times smaller than its target a draft must be to be worth its time."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft that was found, and what the comparison with the target said."""

    wanted: Wanted
    verdict: PairVerdict


def find_draft(finder: Finder, store: Store, target: Wanted, head: Head) -> Draft:
    """The best draft for a target. Raises ModelFileProblem if none is known."""
    trouble: HubProblem | None = None
    for name in _catalogued(finder, target, head):
        try:
            wanted = finder.from_catalog(name)
            draft_head = head_of(wanted, store, finder.hub if wanted.remote else None)
        except HubProblem as problem:
            trouble = problem
            continue
        if draft_head and wanted.size * _SMALLER <= target.size:
            verdict = check_pair(head, draft_head)
            if verdict.ok:
                return Draft(wanted, verdict)
    for model in _stored(finder, store, target, Traits.of(head[0], target.label)):
        try:
            verdict = check_pair(head, read(store.path(model)))
        except (GGUFError, OSError):
            continue
        if verdict.ok:
            return Draft(finder.find(model.id, "draft"), verdict)
    if trouble:
        raise trouble
    raise ModelFileProblem(
        f"No draft is known that has the vocabulary of {target.label}.",
        "Name one with --draft, or pull without: --draft none. Drafting from the text so far "
        "(--draft lookup, when it runs) needs none.",
    )


def _catalogued(finder: Finder, target: Wanted, head: Head) -> Iterator[str]:
    """Names in the catalogue, the likeliest first, each once."""
    catalog = finder.catalog
    names: list[str] = []
    if target.catalog_name and (own := catalog.draft_of(target.catalog_name)):
        names.append(own)
    tokenizer = Traits.of(head[0], target.label).tokenizer
    names += [one.draft for one in catalog.families.values() if one.tokenizer == tokenizer]
    yield from (name for name in dict.fromkeys(names) if name != target.catalog_name)


def _stored(finder: Finder, store: Store, target: Wanted, traits: Traits) -> list[ModelRecord]:
    """Models in the store that may fit, the smallest first."""
    fits = [
        model
        for model in finder.contents.models
        if model.traits.tokenizer == traits.tokenizer
        and model.traits.rolls_back
        and abs((model.traits.tokens or 0) - (traits.tokens or 0)) <= MOST_EXTRA_TOKENS
        and model.size * _SMALLER <= target.size
        and store.intact(model)
    ]
    return sorted(fits, key=lambda model: model.size)
