"""Head files: safetensors (Hugging Face's format) with a card in the metadata, see `model_registry.heads`.

Tensors of the kind `medusa`, for H heads on states of E numbers, which know S of the target's tokens:

    blocks       F16 or F32 [H, E, E]   of the residual blocks, rows are outputs (as torch's Linear)
    output       F16 or F32 [S, E]      shared by all heads, rows are tokens
    vocabulary   I32 or I64 [S]         the target's ids of these rows, ascending
    calibration  F32 [H, 2]             temperature and coverage by head (`medusa.Calibration`)

Whatever can be wrong with a file is told in a sentence: it comes from elsewhere, and what it holds is
multiplied blindly afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from edgespec.errors import EdgeSpecError, ModelFileError, PairError
from edgespec.heads.medusa import Calibration, MedusaHeads
from model_registry.heads import MEDUSA, About, Tensor, Trained, is_head, read_card
from model_registry.problem import ModelFileProblem

__all__ = ["About", "HeadFile", "Trained", "check_digest", "is_head", "read", "save"]

_MOST_HEADS = 16
_FLOATS = ("F16", "F32")
_WHOLE = ("I32", "I64")
_AGAIN = "Train it again, or give another file."


@dataclass(frozen=True, slots=True)
class HeadFile:
    """A head file whose numbers were not read yet."""

    path: Path
    about: About
    heads: int
    tokens: int
    """How many of the target's tokens it knows."""

    @property
    def name(self) -> str:
        """For people: the file's, without folder and ending."""
        return self.path.stem

    @property
    def nbytes(self) -> int:
        """What its matrices take in memory, in bytes."""
        width = self.about.hidden_size
        return 4 * width * (self.heads * width + self.tokens)

    def check_target(self, digest: str, name: str, width: int, vocabulary: int) -> None:
        """Raise PairError unless it is for the target with this digest, width of states and vocabulary."""
        check_digest(self.about, self.path, digest, name)
        if (self.about.hidden_size, self.about.vocab_size) != (width, vocabulary):
            raise PairError(
                f"The head {self.path.name} cannot draft for {name}: it reads states of "
                f"{self.about.hidden_size} numbers and knows {self.about.vocab_size} tokens, not "
                f"{width} and {vocabulary}.",
                _AGAIN,
            )

    def load(self) -> MedusaHeads:
        """Read the numbers. Raises ModelFileError."""
        with _explained(self.path), safe_open(self.path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in _TENSORS}
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise _damaged(self.path, f"{name} holds numbers that are not finite")
        vocabulary, calibration = arrays["vocabulary"], arrays["calibration"]
        if (np.diff(vocabulary) <= 0).any():
            raise _damaged(self.path, "the ids of its vocabulary do not ascend")
        if vocabulary[0] < 0 or vocabulary[-1] >= self.about.vocab_size:
            raise _damaged(self.path, "its vocabulary has ids that the target lacks")
        temperature, coverage = calibration.T
        if (temperature <= 0).any() or (coverage < 0).any() or (coverage > 1).any():
            raise _damaged(self.path, "its calibration is out of range")
        pairs = [Calibration(float(one), float(share)) for one, share in calibration]
        return MedusaHeads(arrays["blocks"], arrays["output"], vocabulary, pairs)


def check_digest(about: About, path: Path, digest: str, name: str) -> None:
    """Raise PairError unless the head in `path` was trained for the target with this digest."""
    if about.serves(digest):
        return
    raise PairError(
        f"The head {path.name} cannot draft for {name}: it was trained for {about.target_names}, and "
        "serves no other model and no other quantisation.",
        f"Train one for it (edgespec train {about.kind} NAME), or use --draft lookup.",
    )


def read(path: Path) -> HeadFile:
    """What a file says about itself and its tensors, without their numbers. Raises ModelFileError."""
    with _explained(path):
        card = read_card(path)
    if card.about.kind != MEDUSA:
        raise ModelFileError(
            f"The head {path} is of the kind {card.about.kind!r}, which this EdgeSpec does not know.",
            "Use a newer EdgeSpec, or train a Medusa head: edgespec train medusa NAME.",
        )
    heads, tokens = _check_tensors(path, card.about, card.tensors)
    return HeadFile(path, card.about, heads, tokens)


def save(
    path: Path,
    about: About,
    *,
    blocks: NDArray[np.floating],
    output: NDArray[np.floating],
    vocabulary: NDArray[np.integer],
    calibration: Sequence[Calibration] = (),
) -> HeadFile:
    """Write a Medusa head, whole or not at all; matrices as float16. Returns what `read` does.

    Arrays as `MedusaHeads` has them. Raises ModelFileError for arrays that do not go together, and
    EdgeSpecError where the file cannot be written.
    """
    pairs = calibration or [Calibration()] * len(blocks)
    tensors: dict[str, NDArray[Any]] = {
        "blocks": np.ascontiguousarray(blocks, np.float16),
        "output": np.ascontiguousarray(output, np.float16),
        "vocabulary": np.ascontiguousarray(vocabulary, np.int32),
        "calibration": np.array([(one.temperature, one.coverage) for one in pairs], np.float32),
    }
    partial = path.with_name(f"{path.name}.part")
    try:
        save_file(tensors, partial, about.as_metadata())
        read(partial).load()
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EdgeSpecError(
            f"{path} cannot be written: {reason}.", "Name a file elsewhere."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return read(path)


_TENSORS: Mapping[str, tuple[str, ...]] = {
    "blocks": _FLOATS,
    "output": _FLOATS,
    "vocabulary": _WHOLE,
    "calibration": ("F32",),
}
"""By name, the types that a tensor may have."""


def _check_tensors(path: Path, about: About, found: Mapping[str, Tensor]) -> tuple[int, int]:
    """How many heads and tokens there are. Raises ModelFileError."""
    missing = [name for name in _TENSORS if name not in found]
    if missing:
        raise _damaged(path, f"it lacks {' and '.join(missing)}")
    for name, types in _TENSORS.items():
        if found[name].kind not in types:
            kind = found[name].kind
            raise _damaged(path, f"{name} is of the type {kind}, not {' or '.join(types)}")
    width = about.hidden_size
    heads, tokens = (found[name].shape[:1] or (0,) for name in ("blocks", "output"))
    shapes = {
        "blocks": (*heads, width, width),
        "output": (*tokens, width),
        "vocabulary": tokens,
        "calibration": (*heads, 2),
    }
    for name, shape in shapes.items():
        if found[name].shape != shape:
            raise _damaged(path, f"{name} has the shape {[*found[name].shape]}, not {[*shape]}")
    if not 0 < heads[0] <= _MOST_HEADS:
        raise _damaged(path, f"it has {heads[0]} heads; there can be 1 to {_MOST_HEADS}")
    if not 0 < tokens[0] <= about.vocab_size:
        raise _damaged(path, f"it knows {tokens[0]} tokens of {about.vocab_size}")
    return heads[0], tokens[0]


def _damaged(path: Path, what: str) -> ModelFileError:
    return ModelFileError(f"The head {path} is damaged: {what}.", _AGAIN)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what others raise into errors for people."""
    try:
        yield
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    except SafetensorError as error:
        raise ModelFileError(
            f"{path} is no head file, or it is damaged or cut off ({error}).", _AGAIN
        ) from error
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be read: {error.strerror or error}.", "Check the path and the disk."
        ) from error
