"""What a file must hold for drafting with a layer of its own for the token after the next."""

from __future__ import annotations

from pathlib import Path

from edgespec.errors import ModelFileError, UsageError
from model_registry.extents import tensor_extents
from model_registry.gguf import GGUFError, GGUFHeader
from model_registry.inspect import check_file, split_parts
from model_registry.problem import ModelFileProblem

_DRIVEN = frozenset({"qwen35", "qwen35moe", "qwen3next", "glm4moe"})
"""Architectures with a graph of one such layer, and states of all tokens for it, where a file that loads
has all that the graph insists on (src/models/*.cpp; it would end the process). Those left out have several
layers that take turns, other states, or demands that loading does not check."""


def check_layer(target: Path) -> None:
    """Raise UsageError for a target without a layer that can be driven; ModelFileError."""
    try:
        header = check_file(target)
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    name, count = header.architecture or "nameless", _count(header)
    last = header.number("block_count") or 0
    tensor = f"blk.{last - 1}.nextn.eh_proj.weight"
    if not count or tensor not in _names(target, header):
        raise UsageError(
            f"The method mtp needs a model with a layer for the token after the next, and {target.stem} "
            "has none.",
            "Take a GGUF that was converted with its MTP layers, or choose another method.",
        )
    if name not in _DRIVEN or count != 1:
        layers = "layer" if count == 1 else f"{count} layers"
        raise UsageError(
            f"The method mtp cannot use the MTP {layers} of a {name} model: EdgeSpec drives a single "
            f"one, of {', '.join(sorted(_DRIVEN))}.",
            "Choose another method.",
        )


def check_trunk(path: Path, header: GGUFHeader) -> None:
    """Raise ModelFileError for a file with such layers and no others, as some are given out for drafting:
    llama.cpp would load it, and crash when it computes.
    """
    if _count(header) and not any(name.startswith("blk.0.") for name in _names(path, header)):
        raise ModelFileError(
            f"{path.stem} holds nothing of a model but the layer for the token after the next.",
            "Take the GGUF of the whole model. If that has the layer too, --method mtp drafts with it.",
        )


def _count(header: GGUFHeader) -> int:
    """Layers for tokens after the next, as the header has it."""
    return header.number("nextn_predict_layers") or 0


def _names(path: Path, header: GGUFHeader) -> set[str]:
    """Of the tensors of all files of a model."""
    try:
        return {name for part in split_parts(path, header) for name in tensor_extents(part)}
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    except (GGUFError, OSError) as error:
        raise ModelFileError(f"{path} cannot be used. {error}", "Fetch it again.") from error
