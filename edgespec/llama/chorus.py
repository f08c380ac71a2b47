"""Several sequences in one llama.cpp context, each with a stream of its own in the cache.

One pass computes a token of each, so the weights are read once for all of them, and no sequence looks at
the cells of another. Beside the logits it gives hidden states: those after the last norm, and the inputs
of some layers where they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llama_cpp

from edgespec.errors import Cancelled, DecodeError, ModelFileError, OutOfMemoryError
from edgespec.llama.abort import AbortSwitch
from edgespec.llama.log import native_log
from edgespec.llama.states import LayerInputs, floats
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates, Logits, Token

_ABORTED = 2  # llama_decode's answer when the abort callback said yes (include/llama.h)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a pass gave, n sequences: views of buffers, which the next pass overwrites."""

    logits: Logits
    """float32[n, vocabulary]."""
    final: HiddenStates
    """float32[n, width]."""
    layers: HiddenStates | None
    """float32[n, layers * width]."""


class Chorus:
    """`size` sequences of `length` tokens at most. Not thread-safe, but for `abort`."""

    def __init__(
        self,
        weights: Weights,
        *,
        size: int,
        length: int,
        threads: int,
        layers: Sequence[int] = (),
    ) -> None:
        """Raises OutOfMemoryError, and ModelFileError for layers that the model does not give."""
        self.size, self._length = size, length
        self.abort = AbortSwitch()
        self._ends = [0] * size
        """By sequence, how many tokens it has."""
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = size * length
        params.n_batch = params.n_ubatch = max(length, size)
        params.n_outputs_max = params.n_seq_max = size
        params.kv_unified = False
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        params.abort_callback = self.abort.callback
        params.abort_callback_data = self.abort.data
        log = native_log()
        log.mark()
        self._ctx = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._ctx:
            raise OutOfMemoryError(
                f"No memory for {size} answers at once ({log.reason() or 'not created'}).",
                "Use a smaller model.",
            )
        self._memory = llama_cpp.llama_get_memory(self._ctx)
        self._batch = llama_cpp.llama_batch_init(max(length, size), 0, 1)
        self._vocab_size = weights.tokenizer.size
        self._width = int(llama_cpp.llama_model_n_embd(weights.handle))
        self._layers: LayerInputs | None = None
        try:
            if layers:
                self._layers = LayerInputs(weights, self._ctx, layers)
        except ModelFileError:
            self.close()
            raise

    def begin(self, sequence: int, tokens: Sequence[Token]) -> HiddenStates | None:
        """The sequence now holds these tokens alone. The layers' float32[n, layers * width], if asked for.

        Raises `Cancelled`, DecodeError.
        """
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._ends[sequence] = 0
        if not tokens:
            return self._layers.view(0, 0) if self._layers else None
        llama_cpp.llama_set_embeddings(self._ctx, False)
        self._run([sequence] * len(tokens), tokens, told=False)
        return self._layers.view(len(tokens), 0) if self._layers else None

    def step(self, sequences: Sequence[int], tokens: Sequence[Token]) -> Heard:
        """Add one token to each of some sequences, which ascend. Raises `Cancelled`, DecodeError.

        A pass is one computation where no number is left out between them.
        """
        llama_cpp.llama_set_embeddings(self._ctx, True)
        self._run(sequences, tokens, told=True)
        count = len(tokens)
        return Heard(
            floats(llama_cpp.llama_get_logits(self._ctx), count, self._vocab_size),
            floats(llama_cpp.llama_get_embeddings(self._ctx), count, self._width),
            self._layers.view(count, count) if self._layers else None,
        )

    def _run(self, sequences: Sequence[int], tokens: Sequence[Token], *, told: bool) -> None:
        batch = self._batch
        for i, (sequence, token) in enumerate(zip(sequences, tokens, strict=True)):
            end = self._ends[sequence]
            if end >= self._length:
                raise ValueError(f"more than {self._length} tokens in a sequence")
            batch.token[i], batch.pos[i], batch.logits[i] = token, end, told
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            self._ends[sequence] = end + 1
        batch.n_tokens = len(tokens)
        status = llama_cpp.llama_decode(self._ctx, batch)
        if status == _ABORTED or (status and self.abort.is_on):
            raise Cancelled
        if status:
            raise DecodeError(
                f"llama.cpp could not compute {len(tokens)} tokens (code {status}).",
                f"Details are in {native_log().path}.",
            )

    def close(self) -> None:
        """Free the context. May be called again; the weights are closed after it."""
        if self._ctx:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self._ctx)
            self._ctx = None
