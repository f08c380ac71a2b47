"""A store, a catalogue and a stand-in hub of a few small models, for the shelf and the screens on it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from model_registry.records import ModelRecord
from model_registry.store import Store
from tests.gguf_files import Vocab, byte_vocab, random_llama
from tests.registry.fake_hub import FakeHub
from tests.registry.stored import put

TARGET, DRAFT = "maker/big-GGUF", "maker/small-GGUF"
BIG_FILE, SMALL_FILE = "Big-Q4_K_M.gguf", "small-q8_0.gguf"
PAIR = "toys-pair"
USE = "tests, [red]not[/] markup"


def put_on_hub(fake: FakeHub) -> None:
    """A target of 2.8 MB, and a draft."""
    for repo, name, width in ((TARGET, BIG_FILE, 256), (DRAFT, SMALL_FILE, 32)):
        (fake.root / repo).mkdir(parents=True)
        random_llama(fake.root / repo / name, width=width, vocab=byte_vocab())
        (fake.root / repo / ".repo.json").write_text(json.dumps({"license": "mit"}))


def catalogue(fake: FakeHub) -> str:
    """What a person's catalogue says of the models on the hub."""

    def entry(repo: str, name: str) -> dict[str, object]:
        path = fake.root / repo / name
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        file = {"path": name, "size": path.stat().st_size, "sha256": digest}
        return {"repo": repo, "licence": "mit", "family": "toys", "files": [file]}

    pair = {"target": "toy-big", "draft": "toy-small", "use": USE, "confirmed": "here"}
    return json.dumps(
        {
            "schema": 1,
            "families": {"toys": {"draft": "toy-small", "tokenizer": "llama"}},
            "models": {"toy-big": entry(TARGET, BIG_FILE), "toy-small": entry(DRAFT, SMALL_FILE)},
            "pairs": {PAIR: pair},
        }
    )


def put_model(
    store: Store,
    folder: Path,
    name: str,
    *,
    width: int = 32,
    seed: int = 0,
    alone: bool = True,
    vocab: Vocab | None = None,
) -> ModelRecord:
    """A model in the store that came from nowhere."""
    folder.mkdir(parents=True, exist_ok=True)
    path = random_llama(
        folder / f"{name}.gguf", width=width, seed=seed, vocab=vocab or byte_vocab()
    )
    return put(store, path, name=name, alone=alone)
