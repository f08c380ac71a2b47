"""The loop that all kinds of heads are trained with. Needs the extra `train`.

Steps of Adam; now and then a look at the texts that are held out; the best weights are kept. The step
size is halved where that stands still, and where this helps no more the training ends. All of its state
is in one file, so that a run that goes on is the run that was never stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from edgespec.errors import EdgeSpecError, UsageError
from edgespec.train.events import Point
from edgespec.train.shards import Shard

_GROUP = 8
"""Shards whose positions are mixed with each other."""
_LOOKS = 2
"""Looks without a gain, after which the step size is halved."""
_GAIN = 0.002
"""Tokens a round: less is noise."""
_SMALLEST = 1 / 20
"""Of the first step size; below it the training ends."""
_RENEWED = 0.5
"""Of the first step size at least, where more was collected meanwhile."""
_WARM_UP = 20
"""Steps whose size grows to the first one."""


class Learner(Protocol):
    """A head that learns."""

    @property
    def weights(self) -> Mapping[str, torch.Tensor]:
        """What is trained, by name."""
        ...

    @property
    def rates(self) -> Mapping[str, float]:
        """First step size of each."""
        ...

    def batches(self, shards: Sequence[Shard], rng: np.random.Generator) -> list[Any]:
        """What there is to learn from some shards, mixed, in the bits of one step each."""
        ...

    def steps_in(self, shards: Sequence[Shard]) -> int:
        """About how many batches that is."""
        ...

    def loss(self, batch: Any) -> tuple[torch.Tensor, int]:  # noqa: ANN401 - its own
        """Of one step, and how many positions it has."""
        ...

    def right(self, shard: Shard) -> NDArray[np.bool_]:
        """bool[n, places]: at the positions of a shard, whether the guess is the target's token."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When it ends at the latest."""

    seconds: float
    """Of training, in all sessions."""
    steps: int
    every: int
    """Steps between two looks."""


@dataclass(slots=True)
class _State:
    """All but the weights."""

    step: int = 0
    seen: int = 0
    seconds: float = 0.0
    epoch: int = 0
    group: int = 0
    batch: int = 0
    """Where in the data it is."""
    loss: float = 0.0
    losses: int = 0
    """Sum and count since the last look."""
    share: float = 1.0
    """Of the first step size."""
    waited: int = 0
    """Looks without a gain."""
    curve: list[Point] = field(default_factory=list)
    best: int = 0
    """Index of the best point."""
    shards: int = 0
    """That it learns from."""


class Trainer:
    """Trains one learner on shards."""

    def __init__(
        self,
        learner: Learner,
        trained: Sequence[Shard],
        held: Sequence[Shard],
        path: Path,
        *,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Goes on with the state in `path`, if it is there. Raises OSError, EdgeSpecError."""
        self._learner, self._trained, self._held = learner, trained, held
        self._path, self._seed, self._clock = path, seed, clock
        self._state = _State(shards=len(trained))
        self._adam = torch.optim.Adam(
            [
                {"params": [learner.weights[name]], "lr": rate}
                for name, rate in learner.rates.items()
            ],
            betas=(0.9, 0.95),
        )
        self._best = self._copy()
        if path.exists():
            try:
                self._load()
            except (
                RuntimeError,
                ValueError,
                KeyError,
                TypeError,
                EOFError,
                UnpicklingError,
            ) as error:
                raise EdgeSpecError(
                    f"The state of the training in {path} cannot be used: {str(error)[:200]}.",
                    "Begin anew with --fresh.",
                ) from error

    @property
    def step(self) -> int:
        """Steps so far, in all sessions."""
        return self._state.step

    @property
    def curve(self) -> Sequence[Point]:
        """All looks so far; the first one before any training."""
        return self._state.curve

    @property
    def best(self) -> int:
        """Index of the look at the weights that are kept."""
        return self._state.best

    def steps(self, limits: Limits) -> Generator[Point | None, None, None]:
        """Train; gives None a step and each look. In the end the learner has the best weights.

        When this is closed early the state is kept. Raises OSError.
        """
        state = self._state
        try:
            if not state.curve:
                yield self._look()
            batches = self._batches()
            while not self._over(limits):
                self._step(next(batches))
                if state.step % limits.every:
                    yield None
                    continue
                # Before anybody can stop: a look that is due belongs to the step.
                point = self._look()
                self.save()
                yield point
        except BaseException:
            self.save()
            raise
        if state.losses:
            yield self._look()
        self.save()
        self._put(self._best)

    def _over(self, limits: Limits) -> bool:
        state = self._state
        return (
            state.step >= limits.steps or state.seconds >= limits.seconds or state.share < _SMALLEST
        )

    def _batches(self) -> Iterator[Any]:
        """Endless; `_State` says where it begins, and is moved on before each is given.

        Raises UsageError where there is nothing to learn from.
        """
        state = self._state
        while True:
            none = state.group == state.batch == 0
            order = np.random.default_rng([self._seed, state.epoch]).permutation(len(self._trained))
            groups = [order[at : at + _GROUP] for at in range(0, len(order), _GROUP)]
            while state.group < len(groups):
                rng = np.random.default_rng([self._seed, state.epoch, state.group])
                shards = [self._trained[number] for number in groups[state.group]]
                for batch in self._learner.batches(shards, rng)[state.batch :]:
                    state.batch += 1
                    none = False
                    yield batch
                state.group, state.batch = state.group + 1, 0
            if none:
                raise UsageError("The answers are too short to learn from.", "Use other --data.")
            state.epoch, state.group = state.epoch + 1, 0

    def _step(self, batch: Any) -> None:  # noqa: ANN401 - the learner's own
        state, begun = self._state, self._clock()
        share = state.share * min(1.0, (state.step + 1) / _WARM_UP)
        for group, rate in zip(self._adam.param_groups, self._learner.rates.values(), strict=True):
            group["lr"] = rate * share
        loss, positions = self._learner.loss(batch)
        self._adam.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(list(self._learner.weights.values()), 1.0)
        self._adam.step()
        state.loss += float(loss.detach())
        state.losses += 1
        state.step += 1
        state.seen += positions
        state.seconds += self._clock() - begun

    def _look(self) -> Point:
        state, begun = self._state, self._clock()
        shares = looked(self._learner, self._held)
        mean = state.loss / state.losses if state.losses else float("nan")
        state.seconds += self._clock() - begun
        point = Point(state.step, state.seen, state.seconds, mean, shares)
        state.loss, state.losses = 0.0, 0
        state.curve.append(point)
        before = state.curve[state.best].tokens if len(state.curve) > 1 else 0.0
        state.waited = 0 if point.tokens > before + _GAIN else state.waited + 1
        if point.tokens > before:
            state.best, self._best = len(state.curve) - 1, self._copy()
        if state.waited >= _LOOKS:
            state.share, state.waited = state.share / 2, 0
        return point

    def _copy(self) -> dict[str, torch.Tensor]:
        return {name: one.detach().clone() for name, one in self._learner.weights.items()}

    def _put(self, weights: Mapping[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, one in self._learner.weights.items():
                one.copy_(weights[name])

    def save(self) -> None:
        """Write the state, whole or not at all. Raises OSError."""
        state = {one.name: getattr(self._state, one.name) for one in fields(_State)}
        state["curve"] = [
            (one.step, one.seen, one.seconds, one.loss, one.shares) for one in self._state.curve
        ]
        partial = self._path.with_suffix(".part")
        torch.save(
            {
                "state": state,
                "weights": self._copy(),
                "best": self._best,
                "adam": self._adam.state_dict(),
            },
            partial,
        )
        os.replace(partial, self._path)

    def _load(self) -> None:
        kept = torch.load(self._path, weights_only=True)
        state = kept["state"]
        state["curve"] = [Point(*one) for one in state["curve"]]
        self._state = _State(**state)
        self._put(kept["weights"])
        self._best = kept["best"]
        self._adam.load_state_dict(kept["adam"])
        if self._state.shards != len(self._trained):
            self._renew()

    def _renew(self) -> None:
        """There is more to learn from than there was."""
        state = self._state
        state.shards, state.epoch, state.group, state.batch = (
            len(self._trained),
            state.epoch + 1,
            0,
            0,
        )
        state.share, state.waited = max(state.share, _RENEWED), 0


def looked(learner: Learner, shards: Sequence[Shard]) -> tuple[float, ...]:
    """By place, how often all guesses up to it are right, over all positions of some shards."""
    with torch.no_grad():
        found = [learner.right(shard) for shard in shards]
    right = np.concatenate(found)
    kept = np.logical_and.accumulate(right, axis=1)
    return tuple(kept.mean(axis=0).tolist()) if len(kept) else (0.0,) * right.shape[1]
