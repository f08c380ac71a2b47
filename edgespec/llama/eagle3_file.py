"""Whether the file of an EAGLE-3 head fits a target, before llama.cpp is given either.

What llama.cpp takes for granted (src/models/eagle3.cpp) ends the process where it does not hold, or
writes outside of a row of logits; so all of it is looked up in the files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError, PairError
from edgespec.heads.file import check_digest
from edgespec.llama.states import GIVES_LAYERS, gives_layers
from model_registry.extents import tensor_extents
from model_registry.gguf import Array, GGUFError, GGUFHeader
from model_registry.heads import EAGLE3, read_about
from model_registry.identity import content_digest
from model_registry.inspect import check_file
from model_registry.problem import ModelFileProblem

_AGAIN = "Fetch the file again, or convert it anew."
_OTHER = "Use the head that was trained for this target, a draft model, or --draft lookup."


def check_head(target: Path, head: Path) -> tuple[int, ...]:
    """The layers of `target` that `head` reads.

    Raises PairError where they do not fit, or the head was trained here and for another target, and
    ModelFileError for a file that llama.cpp cannot run.
    """
    try:
        theirs, ours = check_file(target), check_file(head)
        about, tensors = read_about(head, ours.metadata), tensor_extents(head)
        if about:
            check_digest(about, head, content_digest(target), target.stem)
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    except GGUFError as error:
        raise ModelFileError(f"{head} cannot be used. {error}", _AGAIN) from error
    layers = _layers(ours)
    lends = [name for name in ("token_embd.weight", "output.weight") if name not in tensors]
    for wrong in (_graph(ours), "" if layers else "does not name the three layers that it reads"):
        if wrong:
            raise ModelFileError(f"The EAGLE-3 head {head.name} {wrong}.", _AGAIN)
    reason = _misfit(theirs, ours, layers, lends)
    if reason:
        raise PairError(f"{head.stem} cannot draft for {target.stem}: {reason}.", _OTHER)
    if "d2t" in tensors:
        if "output.weight" in lends:
            raise ModelFileError(
                f"The EAGLE-3 head {head.name} has a vocabulary of its own and no output for it.",
                _AGAIN,
            )
        extent = tensors["d2t"]
        with head.open("rb") as file:
            file.seek(extent.start)
            _check_ids(np.frombuffer(file.read(extent.size), "<i8"), ours, head)
    return layers


def _layers(head: GGUFHeader) -> tuple[int, ...]:
    """Empty where the file does not name three."""
    found = head.metadata.get(f"{EAGLE3}.target_layers")
    values = (found.values or ()) if isinstance(found, Array) else ()
    layers = tuple(value for value in values if isinstance(value, int) and value >= 0)
    return layers if len(layers) == len(values) == 3 else ()


def _graph(head: GGUFHeader) -> str:
    """What of the network itself llama.cpp cannot run; empty if nothing."""
    heads, width = _number(head, "attention.head_count"), _number(head, "embedding_length")
    groups = _number(head, "attention.head_count_kv") or heads
    if _number(head, "block_count") != 1:
        return f"has {_number(head, 'block_count')} layers, and must have one"
    if not heads or not width or heads % groups:
        return "does not tell how its attention is divided"
    size = _number(head, "attention.key_length") or width // heads
    if size != (_number(head, "attention.value_length") or width // heads):
        return "has keys and values of different sizes"
    if _number(head, "rope.dimension_count") > size:
        return "turns more numbers by their position than its keys have"
    return ""


def _misfit(target: GGUFHeader, head: GGUFHeader, layers: tuple[int, ...], lends: list[str]) -> str:
    """Why a head cannot draft for a target; empty if it can. The target `lends` it tensors."""
    name = target.architecture or "nameless"
    if name not in GIVES_LAYERS or not gives_layers():
        return f"llama.cpp does not hand out the layers of {_a(name)} model"
    hidden, width = _number(head, "target_hidden_size"), _number(target, "embedding_length")
    if hidden != width:
        return f"it reads states of {hidden} numbers, and the target has {width}"
    count = _number(target, "block_count")
    if max(layers) >= count:
        return f"it reads the input of layer {max(layers)}, and the target's last is {count - 1}"
    if lends and _number(head, "embedding_length") != width:
        return "it has no embeddings or output of its own, and another width than the target's"
    if lends and head.token_count != target.token_count:
        return (
            f"it has {head.token_count} tokens and the target {target.token_count}, whose "
            "embeddings or output it uses"
        )
    return ""


def _check_ids(ids: NDArray[np.int64], head: GGUFHeader, path: Path) -> None:
    """Raise ModelFileError unless they are different tokens: logits are written to where they say."""
    count = head.token_count or 0
    if len(ids) and ids.min() >= 0 and ids.max() < count and len(np.unique(ids)) == len(ids):
        return
    raise ModelFileError(
        f"The EAGLE-3 head {path.name} does not say which of the {count} tokens it guesses.", _AGAIN
    )


def _number(header: GGUFHeader, key: str) -> int:
    return header.number(key) or 0


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
