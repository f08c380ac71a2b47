"""Storing a drafting head as the draft of the target that it was trained for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from model_registry import locate
from model_registry.embedded import EMBEDDED, is_builtin
from model_registry.files import StoreProblem, explained, sha256_of
from model_registry.heads import Card, read_card
from model_registry.identity import content_digest
from model_registry.progress import Progress
from model_registry.pull import Pull, Request
from model_registry.records import ModelRecord, PairRecord, Source, Traits
from model_registry.reference import check_name
from model_registry.store import Incoming, Store, check_pair_name, free_pair_name, model_id


def keep_head(
    store: Store,
    target: str,
    path: Path,
    *,
    reference: str,
    name: str | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> PairRecord:
    """Store a head file, which is moved, and the pair with its target, which is linked to if need be.

    `target` is a reference to the target, `reference` what follows `edgespec train` to make the head
    again, `name` what the pair is to be called; None for the target's name, or that with the kind of the
    head behind it. Raises ModelFileProblem, also for a head that is for another target.
    """
    card = read_card(path)
    if name:
        check_name(name)
    record = _target(store, target, on_progress)
    if not card.about.serves(content_digest(store.path(record))):
        raise StoreProblem(
            f"The head {path.name} was trained for {card.about.target_names}, not for {record.name}.",
            "Name the model that it was trained for.",
        )
    with explained(path.parent):
        digest = sha256_of(path)
    with store.locked():
        contents = store.read()
        wanted = name or free_pair_name(contents, record.name, record.id, card.about.kind)
        check_pair_name(contents, wanted, record.id, model_id([digest]), None)
        head = store.add(_incoming(card, path, digest, record, reference), alone=False)
        for pair in store.read().pairs:
            if (pair.target, pair.draft) == (record.id, head.id):
                return pair
        try:
            verdict = f"The {card.about.kind} head was trained for exactly this model."
            return store.add_pair(wanted, record, head, verdict=verdict)
        except BaseException:
            with explained(store.home):
                store.forget_model(head)
            raise


def _target(store: Store, text: str, on_progress: Callable[[Progress], None]) -> ModelRecord:
    """The record of a target, made where there is none yet."""
    text = EMBEDDED if is_builtin(text) else text
    found = locate.find(text, with_draft=False, store=store)
    records = [one for one in found.used if isinstance(one, ModelRecord)]
    if records:
        return records[0]
    return Pull(store, hub=_no_hub, on_progress=on_progress).run(Request(reference=text)).models[0]


def _incoming(card: Card, path: Path, digest: str, target: ModelRecord, reference: str) -> Incoming:
    output = card.tensors.get("output")
    return Incoming(
        files=((path, digest),),
        linked=False,
        source=Source(kind="trained", reference=reference, revision=target.id),
        traits=Traits(
            architecture=card.about.kind,
            quant=output.kind if output else "",
            context=None,
            tokens=output.shape[0] if output and output.shape else None,
            tokenizer="",
            rolls_back=False,
        ),
        licence=target.licence,
        gated=target.gated,
    )


def _no_hub() -> NoReturn:
    raise TypeError("the target is here, and nothing is fetched")
