"""A model's file, loaded as the memory plan says: weights with one context on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgespec.errors import EdgeSpecError
from edgespec.fitting import look_again
from edgespec.llama.context import LlamaModel
from edgespec.llama.eagle3 import Eagle3Head
from edgespec.llama.mtp import MtpHead
from edgespec.llama.weights import Weights
from edgespec.memory import Share, joined
from edgespec.memory_plan import Placement
from edgespec.settings import Load
from profiles.cores import usable_cores

States = Literal["final", "next"] | Sequence[int] | None


@dataclass(slots=True)
class LoadedModel:
    """Weights with one context on them."""

    weights: Weights
    model: LlamaModel
    lent: bool = False
    """Whether the weights are another's, who closes them."""

    @classmethod
    def open(
        cls,
        path: Path,
        load: Load,
        place: Placement,
        *,
        drafts: bool = False,
        states: States = None,
        target: LlamaModel | None = None,
    ) -> LoadedModel:
        """Load one file as the memory plan says. Raises ModelFileError, OutOfMemoryError.

        Without trees a model that drafts is asked for one row at a time. `states` as for `LlamaModel`. An
        EAGLE-3 head is given its `target`, whose context it needs.
        """
        gpus = place.on_gpus
        weights = Weights(
            path,
            mmap=load.mmap,
            gpu_layers=place.gpu_layers,
            devices=[share.device for share in gpus],
            split=[share.layers for share in gpus],
            mtp=states == "next",
        )
        try:
            model = _context(weights, load, place, drafts, states, target)
        except EdgeSpecError:
            weights.close()
            raise
        look_again(share.device for share in gpus)
        return cls(weights, model)

    @classmethod
    def next_layer(cls, target: LoadedModel, load: Load) -> LoadedModel:
        """The target's own layer for the token after the next. Raises as `open`."""
        model = MtpHead(
            target.weights,
            target.model,
            context=target.model.capacity,
            threads=load.threads or usable_cores(),
            kv_type=target.model.kv_type,
        )
        return cls(target.weights, model, lent=True)

    @property
    def name(self) -> str:
        """For people."""
        return f"MTP layer of {self.weights.name}" if self.lent else self.weights.name

    @property
    def shares(self) -> tuple[Share, ...]:
        """What llama.cpp said that it takes of which device."""
        weights = () if self.lent else self.weights.buffers.shares
        return joined((*weights, *self.model.buffers.shares))

    def close(self) -> None:
        """The context first: it points into the weights."""
        self.model.close()
        if not self.lent:
            self.weights.close()


def _context(
    weights: Weights,
    load: Load,
    place: Placement,
    drafts: bool,
    states: States,
    target: LlamaModel | None,
) -> LlamaModel:
    """See `LoadedModel.open`."""
    cost = place.cost
    context = min(cost.context, weights.trained_context or cost.context)
    threads = load.threads or usable_cores()
    # Once a tree was kept the cells lie in another order, which rounds differently.
    trees = weights.memory == "kv" and not load.strict
    branches = cost.rows if trees else 1
    if target:
        return Eagle3Head(
            weights,
            target,
            context=context,
            threads=threads,
            kv_type=cost.kv_type,
            branches=branches,
        )
    return LlamaModel(
        weights,
        context=context,
        threads=threads,
        max_rows=1 if drafts and not trees else cost.rows,
        kv_type=cost.kv_type,
        branches=branches,
        snapshots=cost.snapshots,
        states=states,
    )
