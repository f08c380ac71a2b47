"""A layer of the target that predicts the token after the next: multi-token prediction, next-n.

It lies in the target's own file. llama.cpp loads it where it is asked to, and runs it in a context of its
own (LLAMA_CONTEXT_TYPE_MTP), after common/speculative.cpp: it reads of each token the target's state
before the output layer, and the token that follows. EXPERIMENTAL: tried on random weights only.
"""

from __future__ import annotations

import llama_cpp

from edgespec.llama.context import LlamaModel
from edgespec.llama.head import HeadContext
from edgespec.llama.rollback import Cells, Rollback
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates


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
