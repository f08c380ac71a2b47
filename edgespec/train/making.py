"""Which learner an order is for, and the file that it becomes. Needs the extra `train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from edgespec.errors import ModelFileError
from edgespec.heads import file as head_file
from edgespec.heads.medusa import Calibration, calibrated
from edgespec.train import eagle3_file
from edgespec.train.eagle3 import BASE, EPSILON, Eagle3Learner, Form
from edgespec.train.loop import Learner, Limits, Trainer, looked
from edgespec.train.medusa import MedusaLearner, scale_of
from edgespec.train.order import Order, Workplace
from edgespec.train.precision import half_is_quick
from edgespec.train.shards import Shard
from edgespec.train.tensors import EMBEDDINGS, OUTPUT, rows
from model_registry.heads import IN_GGUF, KEY, About, Trained
from profiles.cores import usable_cores

__all__ = ["coverage", "few", "frequent", "limits", "looked", "maker", "trainer"]

_LOOKED_AT = 6000
"""Positions that are held out and looked at again and again."""
_CALIBRATED = 1500
"""Positions that the probabilities of heads are set right with."""


class Maker(Protocol):
    """Makes one kind of head."""

    name: str
    """Of its file."""
    vocabulary: NDArray[np.int64]

    @property
    def learner(self) -> Learner:
        """What is trained."""
        ...

    def write(self, path: Path, record: Mapping[str, Any]) -> None:
        """Write what the learner knows. Raises EdgeSpecError."""
        ...


def maker(order: Order, place: Workplace, trained: Sequence[Shard], held: Sequence[Shard]) -> Maker:
    """Before any training. Raises ModelFileError, OSError."""
    torch.set_num_threads(order.load.threads or usable_cores())
    kinds: dict[str, type[_Medusa | _Eagle3]] = {"medusa": _Medusa, "eagle3": _Eagle3}
    return kinds[order.kind](order, place, trained, held)


def trainer(
    order: Order, place: Workplace, made: Maker, trained: Sequence[Shard], held: Sequence[Shard]
) -> Trainer:
    """Where it was left, or at the beginning. Raises OSError."""
    return Trainer(made.learner, trained, few(held, _LOOKED_AT), place.state, seed=order.seed)


def limits(order: Order, made: Maker, trained: Sequence[Shard], seconds: float) -> Limits:
    """`seconds` are left of those that the order has."""
    every = min(max(made.learner.steps_in(trained) // 3, 10), 400)
    return Limits(seconds, order.steps, every)


def frequent(shards: Sequence[Shard], count: int) -> NDArray[np.int64]:
    """int64[n], ascending: the tokens that the target found most probable in all, `count` at most."""
    texts = [text for shard in shards for text in shard.texts]
    tokens = np.concatenate([text.likely.ravel() for text in texts])
    total = np.bincount(tokens, np.concatenate([text.shares.ravel() for text in texts]))
    order = np.argsort(-total, kind="stable")[:count]
    return np.sort(order[total[order] > 0])


def coverage(shards: Sequence[Shard], vocabulary: NDArray[np.int64]) -> float:
    """How often what the target found likeliest is in the vocabulary."""
    best = np.concatenate([text.best for shard in shards for text in shard.texts])
    return float(np.isin(best, vocabulary).mean())


def few(shards: Sequence[Shard], count: int) -> list[Shard]:
    """The first ones, until they have so many states."""
    found: list[Shard] = []
    for shard in shards:
        if sum(len(one.final) for one in found) >= count:
            break
        found.append(shard)
    return found


class _Medusa:
    """A safetensors file."""

    name = "head.safetensors"

    def __init__(
        self, order: Order, place: Workplace, trained: Sequence[Shard], held: Sequence[Shard]
    ) -> None:
        self.vocabulary = _vocabulary(order, place, trained)
        self._order, self._place, self._held = order, place, held
        self._size = _vocab_size(place)
        self.learner = MedusaLearner(
            rows(order.target, OUTPUT, self.vocabulary),
            self.vocabulary,
            self._size,
            place.array("medusa-scale", lambda: scale_of(trained)),
            heads=order.heads,
            half=half_is_quick(),
        )

    def write(self, path: Path, record: Mapping[str, Any]) -> None:
        """See `Maker.write`."""
        about = _about(self._order, self._place, self._size, record)
        head_file.save(
            path,
            about,
            blocks=self.learner.blocks,
            output=self.learner.output,
            vocabulary=self.vocabulary,
            calibration=self._calibration(),
        )

    def _calibration(self) -> list[Calibration]:
        """By head, from texts that were held out."""
        judged = self.learner.judged(self._held, _CALIBRATED)
        return [calibrated(logits, truth) for logits, truth in judged]


class _Eagle3:
    """A GGUF file."""

    name = "head.gguf"

    def __init__(
        self, order: Order, place: Workplace, trained: Sequence[Shard], held: Sequence[Shard]
    ) -> None:
        self.vocabulary = _vocabulary(order, place, trained)
        self._order, self._place = order, place
        self._size = _vocab_size(place)
        said = {token for one in (*trained, *held) for text in one.texts for token in text.tokens}
        known = np.array(sorted(said), np.int64)
        output = rows(order.target, OUTPUT, self.vocabulary)
        self._form = Form.of(output.shape[1])
        self.learner = Eagle3Learner(
            self._form,
            output,
            self.vocabulary,
            self._size,
            (known, rows(order.target, EMBEDDINGS, known)),
            steps=order.heads,
            half=half_is_quick(),
            seed=order.seed,
        )

    def write(self, path: Path, record: Mapping[str, Any]) -> None:
        """See `Maker.write`."""
        about = _about(self._order, self._place, self._size, record).as_metadata()
        head = eagle3_file.HeadFile(
            weights={name: one.detach().numpy() for name, one in self.learner.weights.items()},
            vocabulary=self.vocabulary,
            layers=self._place.layers,
            heads=self._form.heads,
            epsilon=EPSILON,
            base=BASE,
            context=self._place.header.context_length or 4096,
            name=f"EAGLE-3 for {self._order.target.stem}",
            about={IN_GGUF: about[KEY]},
        )
        eagle3_file.write(path, self._order.target, head)


def _vocabulary(order: Order, place: Workplace, trained: Sequence[Shard]) -> NDArray[np.int64]:
    count = order.vocabulary
    return place.array(f"vocabulary-{count}", lambda: frequent(trained, count))


def _vocab_size(place: Workplace) -> int:
    size = place.header.token_count
    if not size:
        raise ModelFileError("The target does not say how many tokens it knows.", "Use another.")
    return size


def _about(order: Order, place: Workplace, size: int, record: Mapping[str, Any]) -> About:
    return About(
        kind=order.kind,
        targets=(Trained(place.digest, order.target.stem),),
        hidden_size=place.width,
        vocab_size=size,
        training=record,
    )
