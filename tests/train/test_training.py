"""A whole training on a tiny target: collected, trained, written; stopped anywhere and gone on with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgespec.derive.candidates import Doing
from edgespec.errors import Cancelled, EdgeSpecError, UsageError
from edgespec.heads import file as head_file
from edgespec.settings import Load
from edgespec.train.events import Event, Made, Point
from edgespec.train.order import Kind, Order
from edgespec.train.shards import Shards
from edgespec.train.training import Training
from model_registry.gguf import read_header
from model_registry.identity import content_digest
from model_registry.store import Store
from tests.tiny_models import tiny_model
from tests.train.models import NO_TORCH, prompts_file

pytest.importorskip("torch", reason=NO_TORCH)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model("llama", tmp_path_factory.mktemp("m") / "tiny.gguf", layers=4)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


def order(target: Path, folder: Path, kind: Kind = "medusa") -> Order:
    return Order(
        kind,
        target,
        load=Load(threads=1),
        data=(str(prompts_file(folder / "prompts.jsonl")),),
        minutes=1000,
        steps=30,
        heads=2,
        vocabulary=64,
        length=12,
        at_once=4,
    )


def trained(
    order: Order, store: Store, stop: Callable[[Event], bool] = lambda event: False
) -> list[Event]:
    """All events; stopped after the first one that `stop` says yes to."""
    training = Training(order, store)
    found: list[Event] = []
    for event in training.steps():
        found.append(event)
        if stop(event):
            training.cancel()
    return found


def made(events: list[Event]) -> Made:
    last = events[-1]
    assert isinstance(last, Made)
    return last


def curve(found: Made) -> list[tuple[object, ...]]:
    return [(one.step, one.seen, one.shares) for one in found.curve]


@pytest.mark.parametrize("kind", ["medusa", "eagle3"])
def test_from_nothing_to_a_head(target: Path, store: Store, tmp_path: Path, kind: Kind) -> None:
    wish = order(target, tmp_path, kind)
    events = trained(wish, store)
    found = made(events)
    points = [event for event in events if isinstance(event, Point)]
    assert points == list(found.curve)
    assert points[-1].step == 30
    assert any(isinstance(event, Doing) for event in events)
    assert found.curve[found.best].tokens == max(point.tokens for point in points)
    assert 0 < found.coverage <= 1
    shards = list(Shards(found.path.parent).all())
    assert found.rows == sum(len(one.final) for one in shards if not one.held)
    assert found.held == sum(len(one.final) for one in shards if one.held)
    assert 1 + sum(found.after) >= 1 + sum(found.before)


def test_the_file_of_a_medusa_head(target: Path, store: Store, tmp_path: Path) -> None:
    """What drafts with it is right as often as was told."""
    found = made(trained(order(target, tmp_path), store))
    file = head_file.read(found.path)
    assert [one.digest for one in file.about.targets] == [content_digest(target)]
    assert file.about.training["tokens_a_round"] == round(1 + sum(found.after), 3)
    heads = file.load()
    hits, count = np.zeros(2), 0
    for shard in Shards(found.path.parent).all():
        for text in shard.texts if shard.held else ():
            for place in range(len(text.best) - 2):
                state = shard.final_of(text)[place].astype(np.float32)
                guesses = heads.vocabulary[heads.logits(state, 2).argmax(axis=1)]
                hits += np.logical_and.accumulate(guesses == text.best[place + 1 : place + 3])
                count += 1
    assert np.abs(hits / count - np.array(found.after)).max() < 0.03


def test_the_file_of_an_eagle3_head(target: Path, store: Store, tmp_path: Path) -> None:
    found = made(trained(order(target, tmp_path, "eagle3"), store))
    metadata = read_header(found.path).metadata
    assert metadata["general.architecture"] == "eagle3"
    assert metadata["eagle3.target_hidden_size"] == 32
    about = json.loads(str(metadata["edgespec.head"]))
    assert about["targets"][0]["digest"] == content_digest(target)


def while_collecting(event: Event) -> bool:
    return isinstance(event, Doing) and "answers" in event.what and event.done > 0


def while_training(event: Event) -> bool:
    return isinstance(event, Doing) and "step" in event.what and event.done == 13


@pytest.mark.parametrize("kind", ["medusa", "eagle3"])
def test_training_that_is_stopped_and_gone_on_with_is_the_same(
    target: Path, tmp_path: Path, kind: Kind
) -> None:
    wish = order(target, tmp_path, kind)
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    whole = made(trained(wish, one))
    # The same answers, and nothing learnt from them.
    shutil.copytree(one.home, other.home, ignore=shutil.ignore_patterns("*.pt", "head.*"))
    with pytest.raises(Cancelled):
        trained(wish, other, while_training)
    parts = made(trained(wish, other))
    assert curve(parts) == curve(whole)
    assert parts.after == whole.after
    assert parts.path.read_bytes()[-1000:] == whole.path.read_bytes()[-1000:]


def test_collecting_that_is_stopped_goes_on(target: Path, store: Store, tmp_path: Path) -> None:
    wish = order(target, tmp_path)
    with pytest.raises(Cancelled):
        trained(wish, store, while_collecting)
    found = made(trained(wish, store))
    texts = [text for shard in Shards(found.path.parent).all() for text in shard.texts]
    assert sorted(text.prompt for text in texts) == list(range(24))


def test_both_kinds_learn_from_the_same_answers(target: Path, store: Store, tmp_path: Path) -> None:
    first = made(trained(order(target, tmp_path), store))
    events = trained(order(target, tmp_path, "eagle3"), store)
    assert made(events).path.parent == first.path.parent
    assert (made(events).rows, made(events).held) == (first.rows, first.held)
    told = [one.done for one in events if isinstance(one, Doing) and "answers" in one.what]
    assert set(told) <= {first.rows}


def test_more_time_goes_on(target: Path, store: Store, tmp_path: Path) -> None:
    wish = order(target, tmp_path)
    first = made(trained(wish, store))
    again = trained(wish, store)
    assert curve(made(again)) == curve(first)
    assert not [event for event in again if isinstance(event, Doing) and "step" in event.what]
    more = made(trained(replace(wish, steps=50), store))
    assert curve(more)[: len(curve(first))] == curve(first)
    assert more.curve[-1].step == 50


def test_fresh_forgets(target: Path, store: Store, tmp_path: Path) -> None:
    wish = order(target, tmp_path)
    trained(wish, store)
    training = Training(wish, store, fresh=True)
    events = list(training.steps())
    assert [event for event in events if isinstance(event, Doing) and "step" in event.what]


@pytest.mark.parametrize("kind", ["gemma3", "mamba"])
def test_layers_that_llama_cpp_does_not_hand_out(tmp_path: Path, store: Store, kind: str) -> None:
    other = tiny_model(kind, tmp_path / f"{kind}.gguf")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"layers of this {kind} model"):
        Training(order(other, tmp_path, "eagle3"), store)
    assert not store.home.exists()


@pytest.mark.parametrize("kind", ["gemma3", "qwen35"])
def test_medusa_for_other_kinds_of_memory(tmp_path: Path, store: Store, kind: str) -> None:
    other = tiny_model(kind, tmp_path / f"{kind}.gguf")  # type: ignore[arg-type]
    found = made(trained(replace(order(other, tmp_path), rows=200, steps=5), store))
    assert found.rows > 50


def test_a_file_that_is_no_model(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "no.gguf"
    path.write_text("none")
    with pytest.raises(EdgeSpecError):
        Training(order(path, tmp_path), store)
