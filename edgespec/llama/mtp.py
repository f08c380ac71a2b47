"""A layer of the target that predicts the token after the next: multi-token prediction, next-n.

It lies in the target's own file. llama.cpp loads it where it is asked to, and runs it in a context of its
own (LLAMA_CONTEXT_TYPE_MTP), after common/speculative.cpp: it reads of each token the target's state
before the output layer, and the token that follows. EXPERIMENTAL: tried on random weights only.
"""

from __future__ import annotations

from pathlib import Path

import llama_cpp

from edgespec.errors import ModelFileError, UsageError
from edgespec.llama.context import LlamaModel
from edgespec.llama.head import HeadContext
from edgespec.llama.rollback import Cells, Rollback
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates
from model_registry.extents import tensor_extents
from model_registry.gguf import GGUFError
from model_registry.inspect import check_file
from model_registry.problem import ModelFileProblem

_DRIVEN = frozenset({"qwen35", "qwen35moe", "qwen3next", "glm4moe"})
"""Architectures with a graph of one such layer, and states of all tokens for it, where a file that loads
has all that the graph insists on (src/models/*.cpp; it would end the process). Those left out have several
layers that take turns, other states, or demands that loading does not check."""


class MtpHead(HeadContext):
    """`edgespec.drafters.features.FeatureHead` over a context for the target's own layer."""

    def __init__(
        self,
        weights: Weights,
        target: LlamaModel,
        *,
        context: int,
        threads: int,
        kv_type: str = "f16",
    ) -> None:
        """As for `HeadContext`; `weights` are the target's, loaded with `mtp`."""
        super().__init__(
            weights,
            target,
            width=int(llama_cpp.llama_model_n_embd_out(weights.handle)),
            context=context,
            threads=threads,
            kv_type=kv_type,
        )

    def _params(self, context: int, threads: int) -> llama_cpp.llama_context_params:
        params = super()._params(context, threads)
        params.ctx_type = llama_cpp.LLAMA_CONTEXT_TYPE_MTP
        return params

    def _rolled_back_by(self, weights: Weights) -> Rollback:
        """The layer is one of attention, whatever the others are (src/llama-model.cpp, create_memory)."""
        return Cells(self._memory)

    def encode(self, states: HiddenStates) -> HiddenStates:
        """float32[n, width], a copy: states are read as they are."""
        return states.copy()


def check_layer(target: Path) -> None:
    """Raise UsageError for a target without a layer that can be driven; ModelFileError."""
    try:
        header, tensors = check_file(target), tensor_extents(target)
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem
    except GGUFError as error:
        raise ModelFileError(f"{target} cannot be used. {error}", "Fetch it again.") from error
    name = header.architecture or "nameless"
    count, last = (header.metadata.get(f"{name}.{key}") for key in _KEYS)
    tensor = f"blk.{last - 1}.nextn.eh_proj.weight" if isinstance(last, int) else ""
    if not isinstance(count, int) or count < 1 or tensor not in tensors:
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


_KEYS = ("nextn_predict_layers", "block_count")
