"""Rows of a target's own matrices: what heads begin with. Needs the extra `train`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from numpy.typing import NDArray

from edgespec.errors import ModelFileError
from model_registry.gguf import read_header
from model_registry.inspect import split_parts

OUTPUT = ("output.weight", "token_embd.weight")
"""The matrix that says the next token; a model without one uses its embeddings."""
EMBEDDINGS = ("token_embd.weight",)


def rows(path: Path, names: tuple[str, ...], ids: NDArray[np.integer]) -> NDArray[np.float32]:
    """float32[len(ids), width]: rows of the first of these tensors that the file, or its parts, has.

    Raises ModelFileError, OSError.
    """
    found = {}
    for part in split_parts(path, read_header(path)):
        for tensor in GGUFReader(part).tensors:
            if tensor.name in names:
                found[tensor.name] = tensor
    name = next((name for name in names if name in found), None)
    if name is None:
        raise ModelFileError(f"{path.name} has no {names[0]}.", "Use another target.")
    data = found[name].data
    chosen = np.ascontiguousarray(data.reshape(-1, data.shape[-1])[ids])
    try:
        whole: NDArray[np.float32] = dequantize(chosen, found[name].tensor_type)
    except NotImplementedError as error:
        raise ModelFileError(
            f"{path.name}: its {name} is of a type that cannot be read here ({error}).",
            "Train with a copy of other bits: edgespec derive NAME --recipe bf16 --output FILE.",
        ) from error
    return whole.astype(np.float32, copy=False)
