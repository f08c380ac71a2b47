"""An EAGLE-3 head: one layer that reads what some layers of the target saw (Li et al. 2025).

Its graph is llama.cpp's src/models/eagle3.cpp. The encoder makes a feature of the target's states at a
token, the decoder reads pairs of a feature and a token; see `head`.
"""

from __future__ import annotations

import time

import llama_cpp
import numpy as np

from edgespec.errors import Cancelled, DecodeError
from edgespec.llama.context import LlamaModel
from edgespec.llama.head import ROWS, HeadContext
from edgespec.llama.log import native_log
from edgespec.llama.states import FLOATS
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates

LAYERS = 3
"""Of the target, whose inputs a head reads."""


class Eagle3Head(HeadContext):
    """`edgespec.drafters.features.FeatureHead` over a context of a head's file."""

    def __init__(
        self,
        weights: Weights,
        target: LlamaModel,
        *,
        context: int,
        threads: int,
        kv_type: str = "f16",
        branches: int = 1,
    ) -> None:
        """As for `HeadContext`. `weights` passed `check_head`."""
        hidden = int(weights.header.metadata["eagle3.target_hidden_size"])  # type: ignore[arg-type]
        self._encoded = np.zeros((ROWS, LAYERS * hidden), np.float32)
        super().__init__(
            weights,
            target,
            width=int(llama_cpp.llama_model_n_embd(weights.handle)),
            context=context,
            threads=threads,
            kv_type=kv_type,
            branches=branches,
        )

    def encode(self, states: HiddenStates) -> HiddenStates:
        """float32[n, width], the features of float32[n, 3 * hidden] states. Raises `Cancelled`."""
        found = np.empty((len(states), self.width), np.float32)
        for start in range(0, len(states), ROWS):
            piece = states[start : start + ROWS]
            self._encoded[: len(piece)] = piece
            embd = self._encoded.ctypes.data_as(FLOATS)
            batch = llama_cpp.llama_batch(n_tokens=len(piece), embd=embd)
            begun = time.perf_counter()
            status = llama_cpp.llama_encode(self._ctx, batch)
            self.native_seconds += time.perf_counter() - begun
            if status != 0:
                if self.abort.is_on:
                    raise Cancelled
                raise DecodeError(
                    f"llama.cpp could not encode {len(piece)} states (code {status}).",
                    f"Details are in {native_log().path}.",
                )
            found[start : start + len(piece)] = self._states(len(piece))
        return found
