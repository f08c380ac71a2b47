"""An EAGLE-3 head: one layer that reads what some layers of the target saw (Li et al. 2025).

llama.cpp has its graph (src/models/eagle3.cpp) and not its driver, which is written after
common/speculative.cpp. The encoder makes a feature of the target's states at a token. The decoder's
cache holds pairs: at place P the feature of token P of the text and the token that follows it, P + 1.
What it gives after a pair are logits of token P + 2, and a state that stands for the feature of that.

The graph computes logits of every pair, and llama.cpp would mistake rows if a pass had those of some
only: a pass has them of all pairs, or of none.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

import llama_cpp
import numpy as np

from edgespec.errors import Cancelled, DecodeError, ModelFileError
from edgespec.llama.context import LlamaModel
from edgespec.llama.log import native_log
from edgespec.llama.states import staged
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates, Logits, Token

ROWS = 32
"""Pairs of a pass. All of them have a row of logits in llama.cpp's buffers."""
LAYERS = 3
"""Of the target, whose inputs a head reads."""

_SET = ("_Z26llama_set_embeddings_nextnP13llama_contextbb",
        "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z")  # fmt: skip
_GET = ("_Z26llama_get_embeddings_nextnP13llama_context",
        "?llama_get_embeddings_nextn@@YAPEAMPEAUllama_context@@@Z")  # fmt: skip
_FLOATS = ctypes.POINTER(ctypes.c_float)


class Eagle3Head(LlamaModel):
    """`edgespec.drafters.features.FeatureHead` over a context beside the target's.

    `tokens` are those of the cached pairs: all of the text but its first one.
    """

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
        """`weights` passed `check_head`. The target's context, which may lend its embeddings and its
        output, has to outlive this one. Raises OutOfMemoryError, and ModelFileError where this llama.cpp
        cannot drive a head.
        """
        turn_on, get = staged(_SET), staged(_GET)
        if turn_on is None or get is None:
            raise ModelFileError(
                f"{weights.name}: this llama.cpp does not drive EAGLE-3 heads.",
                "Use a draft model, or --draft lookup.",
            )
        self._target = target
        self._inputs = LAYERS * int(weights.header.metadata["eagle3.target_hidden_size"])  # type: ignore[arg-type]
        self.width = int(llama_cpp.llama_model_n_embd(weights.handle))
        self._features = np.zeros((ROWS, self.width), np.float32)
        self._encoded = np.zeros((ROWS, self._inputs), np.float32)
        super().__init__(
            weights,
            context=max(context, ROWS),
            threads=threads,
            batch_size=ROWS,
            max_rows=ROWS,
            kv_type=kv_type,
            branches=branches,
        )
        turn_on.argtypes = [llama_cpp.llama_context_p_ctypes, ctypes.c_bool, ctypes.c_bool]
        turn_on.restype = None
        get.argtypes = [llama_cpp.llama_context_p_ctypes]
        get.restype = _FLOATS
        self._get = get
        turn_on(self._ctx, True, True)

    def _params(self, context: int, threads: int) -> llama_cpp.llama_context_params:
        params = super()._params(context, threads)
        params.ctx_other = self._target.handle
        return params

    def _open_batch(self) -> None:
        super()._open_batch()
        self._batch.embd = self._features.ctypes.data_as(_FLOATS)

    def encode(self, states: HiddenStates) -> HiddenStates:
        """float32[n, width], the features of float32[n, 3 * hidden] states. Raises `Cancelled`."""
        found = np.empty((len(states), self.width), np.float32)
        for start in range(0, len(states), ROWS):
            piece = states[start : start + ROWS]
            self._encoded[: len(piece)] = piece
            embd = self._encoded.ctypes.data_as(_FLOATS)
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

    def read(self, tokens: Sequence[Token], features: HiddenStates) -> None:
        """Append pairs. Raises `Cancelled`; whole pieces of 32 may then be cached."""
        for start in range(0, len(tokens), ROWS):
            piece = tokens[start : start + ROWS]
            self._features[: len(piece)] = features[start : start + len(piece)]
            self.extend(piece, rows=0)

    def step(self, tokens: Sequence[Token], features: HiddenStates) -> tuple[Logits, HiddenStates]:
        """Append at most 32 pairs: logits and own states after each, views until the next pass."""
        self._features[: len(tokens)] = features
        logits = self.extend(tokens, rows=len(tokens))
        return logits, self._states(len(tokens))

    def branch(
        self, tokens: Sequence[Token], features: HiddenStates, parents: Sequence[int]
    ) -> tuple[Logits, HiddenStates]:
        """As `step`, for nodes of a tree; see `LanguageModel.grow`."""
        self._features[: len(tokens)] = features
        logits = self.grow(tokens, parents)
        return logits, self._states(len(tokens))

    def _states(self, count: int) -> HiddenStates:
        found = np.ctypeslib.as_array(self._get(self._ctx), (count, self.width))
        return found.view(np.float32)

    def close(self) -> None:
        """See `LlamaModel.close`."""
        if self._ctx:
            self._batch.embd = None  # numpy's, not llama.cpp's
        super().close()
