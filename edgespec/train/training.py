"""One training from beginning to end: collect, train, write the head; to be stopped at any time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

from edgespec import __version__
from edgespec.chat_format import ChatFormat
from edgespec.derive.candidates import Doing
from edgespec.derive.halt import Halt
from edgespec.errors import EdgeSpecError, UsageError
from edgespec.fitting import planned
from edgespec.llama.chorus import Chorus
from edgespec.llama.quantise import check_room
from edgespec.llama.weights import Weights
from edgespec.settings import Load
from edgespec.templates import choose_template
from edgespec.train.collecting import Bounds, Collected, Collector, encoder
from edgespec.train.events import Event, Made
from edgespec.train.extra import check_extra
from edgespec.train.order import Order, Workplace
from edgespec.train.prompts import split
from edgespec.train.shards import Shard
from edgespec.train.speaking import Speaker
from model_registry.store import Store
from profiles.cores import usable_cores

_PROMPT = 256
"""Tokens of a prompt at most."""
_SHARE = 2 / 3
"""Of the time, for collecting at most."""


class Training:
    """One order, in its workplace."""

    def __init__(self, order: Order, store: Store, *, fresh: bool = False) -> None:
        """Raises UsageError without the extra, ModelFileError."""
        check_extra()
        self._order, self._fresh = order, fresh
        self.place = Workplace(store, order)
        self._halt = Halt()

    def cancel(self) -> None:
        """Let `steps` raise `Cancelled` soon; all that was done is kept. From any thread."""
        self._halt.on()

    def steps(self) -> Iterator[Event]:
        """Collect, train, write; `Made` is the last event. Raises EdgeSpecError, `Cancelled`."""
        with self.place.held():
            if self._fresh:
                self.place.forget()
            yield from self._collect()
            shards = self._shards()
            trained = [shard for shard in shards if not shard.held]
            held = [shard for shard in shards if shard.held]
            if not trained or not held:
                raise UsageError("Too little was collected to train with.", "Give more --minutes.")
            yield from self._train(trained, held)

    def _collect(self) -> Iterator[Event]:
        order = self._order
        seconds = _SHARE * order.minutes * 60
        if self._collected(seconds):
            return
        parts = split(self.place.prompts(order))
        width = 2 * self.place.width * (1 + len(self.place.layers))
        check_room(self.place.folder, min(order.size, order.rows * width) - self.place.shards.bytes)
        with ExitStack() as opened:
            weights, chorus = self._opened(opened)
            template, _ = choose_template(weights.tokenizer, weights.chat_template)
            ends = weights.tokenizer.end_tokens
            collector = Collector(
                Speaker(chorus, ends, length=order.length, seed=order.seed),
                self.place.shards,
                parts,
                encoder(ChatFormat(weights.tokenizer, template)),
                room=_PROMPT,
            )
            opened.enter_context(self._halt.over(chorus.abort.on))
            bounds = Bounds(seconds, order.rows, order.size)
            with closing(collector.steps(bounds)) as steps:
                for found in steps:
                    self._halt.check()
                    yield _doing(found, bounds)

    def _collected(self, seconds: float) -> bool:
        """Whether there is enough already, so that no model has to be loaded."""
        shards = self._shards()
        rows = sum(len(shard.final) for shard in shards if not shard.held)
        size = self.place.shards.bytes
        took = sum(shard.seconds for shard in shards)
        return rows >= self._order.rows or size >= self._order.size or took >= seconds

    def _shards(self) -> list[Shard]:
        try:
            return list(self.place.shards.all())
        except (ValueError, KeyError, TypeError) as error:
            raise EdgeSpecError(
                f"What was collected in {self.place.folder} is damaged: {error}.",
                "Begin anew with --fresh.",
            ) from error

    def _opened(self, opened: ExitStack) -> tuple[Weights, Chorus]:
        """The target, as the memory plan has it. Raises EdgeSpecError."""
        order, load = self._order, self._order.load
        one = _PROMPT + order.length
        wish = Load(
            model=str(order.target),
            draft="none",
            context=order.at_once * one,
            kv_type="f16",
            gpu_layers=load.gpu_layers,
        )
        place = planned(wish, order.target, None, order.at_once).target
        weights = Weights(
            order.target,
            gpu_layers=place.gpu_layers,
            devices=[share.device for share in place.on_gpus],
            split=[share.layers for share in place.on_gpus],
        )
        opened.callback(weights.close)
        chorus = Chorus(
            weights,
            size=max(1, min(order.at_once, place.cost.context // one)),
            length=one,
            threads=load.threads or usable_cores(),
            layers=self.place.layers,
        )
        opened.callback(chorus.close)
        return weights, chorus

    def _train(self, trained: Sequence[Shard], held: Sequence[Shard]) -> Iterator[Event]:
        from edgespec.train import making  # noqa: PLC0415 - loads PyTorch

        order = self._order
        seconds = sum(shard.seconds for shard in (*trained, *held))
        yield Doing("the target's own matrices", 0, 0)
        maker = making.maker(order, self.place, trained, held)
        yield Doing("the texts that are held out", 0, 0)
        before = making.looked(maker.learner, held)
        trainer = making.trainer(order, self.place, maker, trained, held)
        limits = making.limits(order, maker, trained, order.minutes * 60 - seconds)
        yield from trainer.curve
        with closing(trainer.steps(limits)) as steps:
            for point in steps:
                yield point or Doing("training, step", trainer.step, 0)
                self._halt.check()
        made = Made(
            path=self.place.folder / maker.name,
            curve=tuple(trainer.curve),
            best=trainer.best,
            before=before,
            after=making.looked(maker.learner, held),
            rows=sum(len(shard.final) for shard in trained),
            held=sum(len(shard.final) for shard in held),
            seconds=seconds,
            coverage=making.coverage(held, maker.vocabulary),
        )
        maker.write(made.path, record(order, made))
        yield made


def record(order: Order, made: Made) -> dict[str, Any]:
    """What a head's file tells about how it was made, for people."""
    best = made.curve[made.best]
    return {
        "edgespec": __version__,
        "data": [one if one in {"self", "history"} else "files" for one in order.data],
        "states": made.rows,
        "held_out": made.held,
        "collect_seconds": round(made.seconds),
        "train_seconds": round(made.curve[-1].seconds),
        "steps": best.step,
        "seen": best.seen,
        "before": [round(share, 4) for share in made.before],
        "after": [round(share, 4) for share in made.after],
        "tokens_a_round": round(1 + sum(made.after), 3),
        "coverage": round(made.coverage, 4),
    }


def _doing(found: Collected, bounds: Bounds) -> Doing:
    """Told by what comes to its bound first."""
    shares = (
        found.seconds / bounds.seconds,
        found.rows / bounds.rows,
        found.size / bounds.size,
    )
    share = min(1.0, max(shares))
    return Doing(f"answers of the target, {share:.0%} of time or amount; tokens", found.rows, 0)
