"""A target, loaded, with the drafter that goes with it: what a session and the benchmark both run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edgespec import memory_words
from edgespec.controller.auto import AutoDrafter
from edgespec.corpus import check_files, gathered
from edgespec.costs import Costs
from edgespec.drafters.base import Drafter
from edgespec.drafters.contexts import Contexts
from edgespec.drafters.features import FeatureModel
from edgespec.drafters.none import NoDrafter
from edgespec.errors import EdgeSpecError, PairError
from edgespec.heads.file import HeadFile
from edgespec.heads.medusa import MedusaHeads
from edgespec.llama.eagle3 import Eagle3Head
from edgespec.llama.mtp import MtpHead
from edgespec.llama.weights import Weights
from edgespec.loaded import LoadedModel, States
from edgespec.making import Parts, make_auto, with_states
from edgespec.memory_plan import Placement
from edgespec.methods import WAYS, Drafters, Means, chosen
from edgespec.prospect import Prospect, look_ahead, refusal_of, wants_plain
from edgespec.settings import MAX_DRAFT, Load, Method
from edgespec.tuning import adopt, costs_for, keep_exact, recall, remember
from model_registry import pairing
from model_registry.heads import EAGLE3
from model_registry.locate import Located
from profiles.tuned import Tuned, TunedStore

SMALL_DEFAULT = (
    "This is {name}, the small model that comes with EdgeSpec: quick, but it knows little and errs "
    "often. For a better one: edgespec pull NAME (edgespec search shows names), then --model NAME."
)


class Pair:
    """A loaded target and the drafters that it can be used with."""

    def __init__(
        self,
        target: LoadedModel,
        draft: LoadedModel | None,
        drafters: Mapping[Method, Drafter],
        method: Method,
        means: Means | None = None,
    ) -> None:
        """`method` names the one of `drafters` that answers are decoded with."""
        self.target = target
        self.end_tokens = target.weights.tokenizer.end_tokens
        self.draft = draft
        self.drafters = drafters
        self.method: Method = method
        self.means = means or Means()
        """What it has to draft with, to tell why a method is not among `drafters`."""
        self.heads: MedusaHeads | None = None
        """Heads on the target's final states, which it then gives."""
        self.head_file: HeadFile | None = None
        """Where they came from."""
        self.auto: AutoDrafter | None = None
        """The drafter of the method `auto`, where that can be chosen."""
        self.parts: Parts | None = None
        """What drafters are made of, where any are."""
        self.notices: list[str] = []

    @classmethod
    def open(cls, load: Load) -> Pair:
        """Load and check. Raises ModelFileError, PairError, OutOfMemoryError, UsageError."""
        check_files(load.corpus)
        ahead = look_ahead(load)
        heads = ahead.head.load() if ahead.head and ahead.plan.head else None
        states: States = "final" if heads else ahead.layers
        if load.method == "mtp":
            states = "next"
        target = LoadedModel.open(ahead.target.target, load, ahead.plan.target, states=states)
        try:
            pair = cls._with_draft(target, load, ahead, heads)
        except EdgeSpecError:
            target.close()
            raise
        try:
            pair._equip(load)
        except EdgeSpecError:
            pair.close()
            raise
        ahead.target.mark_used()
        most = target.weights.trained_context
        if most and most < load.context:
            pair.notices.append(
                f"{target.weights.name} takes {most} tokens of context at most, not {load.context}."
            )
        if load.draft not in {None, "none", "lookup"} and ahead.draft is None:
            pair.notices.append(f"{load.draft} is not loaded: nothing asks for a draft model.")
        pair.notices += memory_words.notices(ahead.plan)
        if load.model is None:
            pair.notices.insert(0, SMALL_DEFAULT.format(name=target.weights.name))
        return pair

    @classmethod
    def _with_draft(
        cls, target: LoadedModel, load: Load, ahead: Prospect, heads: MedusaHeads | None
    ) -> Pair:
        """Plain as yet. The plan may have no room for the draft model, if there is one."""
        weights, plan = target.weights, ahead.plan
        wanted = ahead.draft if weights.rolls_back else None
        draft = _open_draft(target, load, wanted, plan.draft) if wanted and plan.draft else None
        if load.method == "mtp" and weights.rolls_back:
            draft = LoadedModel.next_layer(target, load)
        eagle3 = draft is not None and isinstance(draft.model, Eagle3Head)
        mtp = draft is not None and isinstance(draft.model, MtpHead)
        means = Means(
            draft=draft is not None and not eagle3 and not mtp,
            heads=heads is not None,
            eagle3=eagle3,
            mtp=mtp,
            trees=target.model.branches > 1,
            refusal=refusal_of(load, weights.name, weights.rolls_back),
        )
        pair = cls(target, draft, {"plain": NoDrafter()}, "plain", means)
        if heads and ahead.head:
            pair.heads, pair.head_file = heads, ahead.head
            if ahead.draft:
                ahead.draft.mark_used()
        return pair

    def _equip(self, load: Load) -> None:
        """Be ready to draft. Keeps to exact widths if asked to, and measures what passes cost where the
        method goes by that. Raises UsageError for a method that cannot be used.
        """
        method = chosen(load, self.means)
        weights = self.target.weights
        if not weights.rolls_back and not wants_plain(load):
            self.notices.append(
                f"{weights.name} cannot take back tokens, so nothing is drafted for it."
            )
        usable = [one for one in WAYS if one != "auto" and self.means.lack(one) is None]
        if usable == ["plain"] or load.method == "plain":
            if load.texts:
                self.notices.append("Nothing is drafted, so the given texts are not used.")
            return
        told = [keep_exact(self, load)] if load.strict else []
        costs = None
        # Where a length is named and no method, that is kept to whatever rows cost.
        if WAYS[method].costs and method == load.method:
            costs, text = costs_for(self, load)
            costs = self._with_heads(costs)
            told += [text, WAYS[method].doubt(costs)]
        corpus = self._texts(load, method)
        model = self.draft.model if self.draft else None
        reader = FeatureModel(model) if isinstance(model, Eagle3Head | MtpHead) else None
        draft = None if reader else model
        self.parts = parts = Parts(
            self.target.model, draft, load, costs, corpus, heads=self.heads, reader=reader
        )
        made: dict[Method, Drafter] = {}
        if method == "auto":
            self.auto = make_auto(parts)
            made["auto"] = with_states(self.auto, parts)
            self.auto.restore(recall(self, load) or {})
        self.drafters = Drafters(parts, usable, made)
        self.method = method
        self.notices += [text for text in told if text]

    def _with_heads(self, costs: Costs) -> Costs:
        """With what a step of the heads takes, where they stand in for a draft model."""
        if self.heads is None or self.draft:
            return costs
        # Whatever is fed, one head is asked.
        step = dict.fromkeys((1, MAX_DRAFT), self.heads.seconds())
        return Costs(tuple(replace(table, draft=step) for table in costs.tables))

    def _texts(self, load: Load, method: Method) -> list[Contexts]:
        """What may be copied from beside the conversation. Raises UsageError."""
        if not load.texts:
            return []
        if not WAYS[method].texts:
            able = ", ".join(name for name, way in WAYS.items() if way.texts)
            self.notices.append(f"The method {method} copies from no given texts: {able} do.")
        corpus, told = gathered(load, self.target.weights.tokenizer)
        self.notices += told
        return corpus

    def adopt(self, load: Load, tuned: Tuned, store: TunedStore) -> str | None:
        """Go by a stored result from now on; what use has taught of acceptance stays.

        Nothing may be computing. Returns what the user should know. Never raises.
        """
        costs, told = adopt(self, load, tuned, store=store)
        if self.auto:
            self.auto.go_by(self._with_heads(costs))
        return told

    def remember(self, load: Load) -> None:
        """Keep what `auto` has learnt for the next session with this pair. Never raises."""
        if self.auto:
            remember(self, load, self.auto.learned())

    @property
    def head_name(self) -> str:
        """Short name of the Medusa heads; empty without."""
        return self.head_file.name if self.head_file else ""

    @property
    def guesser(self) -> str:
        """What drafts beside lookup, in words."""
        parts = self.parts
        return "head" if parts and (parts.reader or parts.head_model) else "draft model"

    @property
    def drafter(self) -> Drafter:
        """The one that answers are decoded with."""
        return self.drafters[self.method]

    @property
    def models(self) -> list[LoadedModel]:
        """Target and, where there is one, draft."""
        return [self.target] if self.draft is None else [self.target, self.draft]

    @property
    def native_seconds(self) -> float:
        """Time spent inside llama.cpp so far."""
        return sum(loaded.model.native_seconds for loaded in self.models)

    def interrupt(self, on: bool) -> None:
        """Stop, or let run, whatever the models compute. Safe from any thread."""
        for loaded in self.models:
            switch = loaded.model.abort
            if on:
                switch.on()
            else:
                switch.off()

    def close(self) -> None:
        """Free everything. May be called again; nothing may be computing."""
        drafters = self.drafters
        made = drafters.made if isinstance(drafters, Drafters) else drafters.values()
        for drafter in made:
            drafter.close()
        for loaded in reversed(self.models):  # a head points into its target
            loaded.close()


def _open_draft(target: LoadedModel, load: Load, found: Located, place: Placement) -> LoadedModel:
    """The draft model, checked against the target."""
    head = place.cost.shape.architecture == EAGLE3
    draft = LoadedModel.open(
        found.target, load, place, drafts=True, target=target.model if head else None
    )
    try:
        check_pair(target.weights, draft.weights)
    except PairError:
        draft.close()
        raise
    found.mark_used()
    return draft


def check_pair(target: Weights, draft: Weights) -> None:
    """llama.cpp's own rule for a draft. Raises PairError naming the rule that is broken."""
    verdict = pairing.check(target.tokenizer.vocabulary(), draft.tokenizer.vocabulary())
    if not verdict.ok:
        raise PairError(f"{draft.name} cannot draft for {target.name}. {verdict.message}")
    if not draft.rolls_back:
        raise PairError(
            f"{draft.name} cannot draft: its memory cannot take back refused tokens.",
            "Use --draft lookup, or another draft.",
        )
