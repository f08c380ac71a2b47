"""A head that reads the target's states, in a context beside the target's.

llama.cpp has graphs of such heads and no driver, which is written after common/speculative.cpp. The
cache holds pairs: at place P what the head reads of token P of the text, and the token that follows it,
P + 1. What it gives after a pair are logits of token P + 2, and a state of its own, which stands for what
it would read of token P + 1 while the target has not seen that.

Graphs compute the state of every pair, and llama.cpp would mistake rows if a pass had logits of some
only: a pass has them of all pairs, or of none.
"""

from __future__ import annotations

from collections.abc import Sequence

import llama_cpp
import numpy as np

from edgespec.errors import ModelFileError
from edgespec.llama.context import LlamaModel
from edgespec.llama.states import FLOATS, floats, next_functions
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates, Logits, Token

ROWS = 32
"""Pairs of a pass. All of them have a row of logits in llama.cpp's buffers."""


class HeadContext(LlamaModel):
    """All of `edgespec.drafters.features.FeatureHead` but `encode`, with `width` numbers of a pair.

    `tokens` are those of the cached pairs: all of the text but its first one.
    """

    def __init__(
        self,
        weights: Weights,
        target: LlamaModel,
        *,
        width: int,
        context: int,
        threads: int,
        kv_type: str = "f16",
        branches: int = 1,
    ) -> None:
        """The target's context, which may lend its embeddings and its output, has to outlive this one.
        Raises OutOfMemoryError, and ModelFileError where this llama.cpp cannot drive a head.
        """
        functions = next_functions()
        if functions is None:
            raise ModelFileError(
                f"{weights.name}: this llama.cpp does not drive heads on a target's states.",
                "Use a draft model, or --draft lookup.",
            )
        self._target = target
        self.width = width
        self._features = np.zeros((ROWS, width), np.float32)
        super().__init__(
            weights,
            context=max(context, ROWS),
            threads=threads,
            batch_size=ROWS,
            max_rows=ROWS,
            kv_type=kv_type,
            branches=branches,
        )
        turn_on, self._get = functions
        turn_on(self._ctx, True, True)

    def _params(self, context: int, threads: int) -> llama_cpp.llama_context_params:
        params = super()._params(context, threads)
        params.ctx_other = self._target.handle
        return params

    def _open_batch(self) -> None:
        super()._open_batch()
        self._batch.embd = self._features.ctypes.data_as(FLOATS)

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
        return floats(self._get(self._ctx), count, self.width)

    def close(self) -> None:
        """See `LlamaModel.close`."""
        if self._ctx:
            self._batch.embd = None  # numpy's, not llama.cpp's
        super().close()
