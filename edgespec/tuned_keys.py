"""What a measurement holds for, as a key of the store: machine, build, files and setup."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.heads.file import HeadFile
from edgespec.llama.devices import build
from edgespec.llama.weights import place_words
from edgespec.memory_plan import Plan
from edgespec.settings import Load
from model_registry.identity import identify
from profiles.hardware import detect
from profiles.tuned import Key, Tuned, TunedStore

if TYPE_CHECKING:
    from edgespec.pair import Pair


def key_of(pair: Pair, load: Load) -> Key:
    """What a result for a loaded pair holds for. Raises GGUFError, ModelFileProblem, OSError."""
    draft = pair.draft
    places = [(loaded.weights.placed, loaded.model.kv_type) for loaded in pair.models]
    return _key(load, places, pair.target.weights.path, draft.weights.path if draft else None)


def key_ahead(load: Load, plan: Plan, target: Path, draft: Path | None) -> Key:
    """`key_of` for files that are loaded as planned, before they are. Raises as it does."""
    places = [
        (place_words(one.gpu_layers, [share.device for share in one.on_gpus]), one.cost.kv_type)
        for one in plan.models
    ]
    return _key(load, places, target, draft if plan.draft else None)


def known(store: TunedStore, target: Path, draft: Path | None) -> Tuned | None:
    """The latest result for these files here, whatever the setup, found without loading them.

    Raises GGUFError, ModelFileProblem, OSError.
    """
    files = _digest(target), _digest(draft) if draft else None
    here = hardware(), build_name()
    for one in store.all():
        if (one.key.target, one.key.draft, one.key.hardware, one.key.build) == (*files, *here):
            return one
    return None


def this_machine(key: Key) -> Key:
    """The same files and setup, on this machine as it is now."""
    return key.model_copy(update={"hardware": hardware(), "build": build_name()})


def learned_key_of(pair: Pair, load: Load) -> Key:
    """What use of a loaded pair teaches holds for. Raises as `key_of` does."""
    return learned_key(key_of(pair, load), pair.head_file)


def learned_key(key: Key, head: HeadFile | None) -> Key:
    """What use teaches depends on the heads too, unlike what a pass of the target costs."""
    if head is None:
        return key
    about = json.dumps(head.about.as_metadata(), sort_keys=True)
    mark = hashlib.sha256(about.encode()).hexdigest()[:12]
    return key.model_copy(update={"setup": f"{key.setup}; heads {mark}"})


def _key(load: Load, places: Sequence[tuple[str, str]], target: Path, draft: Path | None) -> Key:
    """`places` are where the weights are and the type of the cache, by model."""
    where = [f"{place}, cache {kv_type}" for place, kv_type in places]
    return Key(
        hardware=hardware(),
        build=build_name(),
        target=_digest(target),
        draft=_digest(draft) if draft else None,
        setup="; ".join([f"threads {load.threads or 'auto'}", *where, *load.rpc]),
    )


def _digest(path: Path) -> str:
    """`identify`, once for a file as it is: a key is asked for at opening and after every answer."""
    state = path.stat()
    return _identified(path, state.st_size, state.st_mtime_ns)


@cache
def _identified(path: Path, _size: int, _changed: int) -> str:
    return identify(path)


@cache
def hardware() -> str:
    """The digest of this machine, which stays what it is while the process runs."""
    return detect().digest


def build_name() -> str:
    """llama.cpp's version and build options."""
    found = build()
    return f"{found.version}-{found.digest}"
