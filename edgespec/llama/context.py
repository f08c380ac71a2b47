"""One sequence in one llama.cpp context: the model port on real weights."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Literal

import llama_cpp
import numpy as np

from edgespec.errors import (
    Cancelled,
    DecodeError,
    ModelFileError,
    OutOfMemoryError,
    RollbackRefusedError,
)
from edgespec.llama.abort import AbortSwitch
from edgespec.llama.branches import TEXT, Branches
from edgespec.llama.log import Buffers, native_log
from edgespec.llama.rollback import Rollback, States, rollback_of, tried
from edgespec.llama.states import FinalStates, LayerInputs, NextStates, Tap
from edgespec.llama.weights import Weights
from edgespec.memory import MOST_SNAPSHOTS
from edgespec.model import HiddenStates, Logits, Token

_ABORTED = 2  # llama_decode's answer when the abort callback said yes (include/llama.h)
_NO_SLOT = 1

_GGML_TYPES = {"f16": 1, "q8_0": 8, "q4_0": 2}  # enum ggml_type

# The binding's own function returns a pointer object; the loop wants the bare address.
_get_logits = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    ("llama_get_logits", llama_cpp.llama_cpp._lib)
)


class LlamaModel:
    """`edgespec.model.LanguageModel` over a context. Not thread-safe, but for `abort`."""

    def __init__(
        self,
        weights: Weights,
        *,
        context: int,
        threads: int,
        batch_size: int = 512,
        max_rows: int = 64,
        kv_type: str = "f16",
        branches: int = 1,
        snapshots: int = 0,
        states: Literal["final", "next"] | Sequence[int] | None = None,
    ) -> None:
        """Make a context of `context` tokens. `max_rows` bounds the logits buffers, which would
        otherwise be sized for a whole batch of vocabulary rows. `kv_type` is f16, q8_0 or q4_0; the
        latter two turn flash attention on and need heads in blocks of 32. `branches` above 1 is for
        a plain KV cache; others take chains only. `snapshots` is for running states: how many tokens of
        the last pass can be taken back for nothing, where llama.cpp can do that for the architecture.
        Each takes as much memory as the state. `states` are the hidden states that passes give: the final
        ones, the inputs of these layers, or what an MTP layer reads.

        Raises OutOfMemoryError, and ModelFileError for states that the model cannot give.
        """
        self.abort = AbortSwitch()
        self.batch_size = min(batch_size, context)
        self._rows = min(max_rows, self.batch_size)
        self.threads = self.batch_threads = threads
        """Processor threads for passes over one token, and for all others."""
        self.kv_type = kv_type
        self.row_limit: Callable[[int], int] | None = None
        """By tokens in the cache, the rows that may be asked for, where buffers are not the only limit."""
        self.vocab_size = weights.tokenizer.size
        # llama.cpp holds a row of logits for every sequence.
        self.branches = min(branches, self._rows) if weights.memory == "kv" else 1
        self._tree: Branches | None = None
        self.native_seconds = 0.0
        """Time spent inside llama.cpp, for those who ask what the loop around it costs."""
        self._tokens: list[Token] = []
        self._views: dict[tuple[int, int], Logits] = {}
        log = native_log()
        log.mark()
        params = self._params(context, threads)
        params.type_k = params.type_v = _GGML_TYPES[kv_type]
        # Assertions end the process where a batch holds no more than these and one, or a graph is large.
        most = min(MOST_SNAPSHOTS, self._rows - 1, self.batch_size - 2)
        params.n_rs_seq = max(0, min(snapshots, most))
        self._ctx = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._ctx:
            raise OutOfMemoryError(
                f"No memory for a context of {context} tokens ({log.reason() or 'not created'}).",
                "Give a smaller --ctx.",
            )
        self.buffers: Buffers = log.buffers()
        # llama.cpp rounds the size up; what was asked for is what is kept.
        self.capacity = min(context, int(llama_cpp.llama_n_ctx(self._ctx)))
        self._memory = llama_cpp.llama_get_memory(self._ctx)
        self._rollback = self._rolled_back_by(weights)
        self.snapshots = self._rollback.snapshots
        """Tokens of the last pass that can be taken back for nothing, where more has a price."""
        self._open_batch()
        self._pass = (0, 0)
        """Tokens of the last pass, and how many of them had logits."""
        self._tap: Tap | None = None
        self._earlier: HiddenStates | None = None
        """States of the same call's pass before the last one, where it took two."""
        if states is not None:
            self._tap = self._tapped(weights, states)
        if isinstance(self._rollback, States):
            weights.rolls_back = tried(self, self._rollback)

    def _params(self, context: int, threads: int) -> llama_cpp.llama_context_params:
        params: llama_cpp.llama_context_params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = self.batch_size
        params.n_outputs_max = self._rows
        # One cache for all sequences: only then can a cell belong to several (src/llama-kv-cache.cpp).
        params.n_seq_max, params.kv_unified = self.branches, self.branches > 1
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        params.swa_full = True  # cells that a window has left are needed when tokens are taken back
        params.abort_callback = self.abort.callback
        params.abort_callback_data = self.abort.data
        return params

    def _rolled_back_by(self, weights: Weights) -> Rollback:
        return rollback_of(weights, self._ctx, self._memory, stepwise=self._rows == 1)

    def _tapped(self, weights: Weights, states: Literal["final", "next"] | Sequence[int]) -> Tap:
        try:
            if states == "final":
                return FinalStates(weights, self._ctx)
            if states == "next":
                return NextStates(weights, self._ctx)
            return LayerInputs(weights, self._ctx, [int(layer) for layer in states])
        except ModelFileError:
            self.close()
            raise

    def _open_batch(self) -> None:
        self._batch = llama_cpp.llama_batch_init(self.batch_size, 0, self.branches)
        for i in range(self.batch_size):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = TEXT

    @property
    def handle(self) -> llama_cpp.llama_context_p:
        """llama.cpp's context pointer."""
        if not self._ctx:
            raise ValueError("this context is closed")
        handle: llama_cpp.llama_context_p = self._ctx
        return handle

    @property
    def tokens(self) -> Sequence[Token]:
        """What the cache holds."""
        return self._tokens

    @property
    def max_rows(self) -> int:
        """The most rows of logits that one `extend` may ask for at this depth."""
        if self.row_limit is None:
            return self._rows
        return max(1, min(self._rows, self.row_limit(len(self._tokens))))

    def set_threads(self, single: int, batch: int) -> None:
        """Processor threads for passes over one token, and for all others."""
        self.threads, self.batch_threads = single, batch
        llama_cpp.llama_set_n_threads(self._ctx, single, batch)

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        """Append tokens; float32[rows, vocabulary] of the last `rows`, a view into llama.cpp's buffer.

        Raises `Cancelled`, DecodeError. Whole batches before the one that failed stay in the cache.
        """
        if not 0 <= rows <= min(len(tokens), self.max_rows):
            raise ValueError(f"{rows} rows of {len(tokens)} tokens; at most {self.max_rows}")
        if len(self._tokens) + len(tokens) > self.capacity:
            raise DecodeError(
                f"{len(tokens)} more tokens do not fit the context of {self.capacity}.",
                "Give a larger --ctx.",
            )
        self._drop_tree()
        # All rows of logits must come from one native call, so the last piece holds them all.
        pieces = len(tokens) - rows
        done = 0
        self._earlier = None
        while len(tokens) - done > self.batch_size:
            piece = min(self.batch_size, max(pieces - done, 1))
            self._decode(tokens[done : done + piece], 0)
            done += piece
        first = self._rollback.first(len(tokens) - done, rows)
        if self._tap:
            first = max(first, self._tap.splits(len(tokens) - done, rows))
        if first:
            self._decode(tokens[done : done + first], 0)
            if self._tap:
                self._earlier = self._tap.view(first, 0).copy()
            done += first
        return self._decode(tokens[done:], rows)

    def _decode(self, tokens: Sequence[Token], rows: int) -> Logits:
        count, past = len(tokens), len(self._tokens)
        # A round has few tokens: plain writes are then quicker than slices of arrays.
        ids, positions, wanted = self._batch.token, self._batch.pos, self._batch.logits
        for i, token in enumerate(tokens):
            ids[i] = token
            positions[i] = past + i
            wanted[i] = i >= count - rows
        view = self._run(count, rows)
        self._tokens.extend(tokens)
        return view

    def _run(self, count: int, rows: int) -> Logits:
        """The pass over what is in the batch."""
        self._batch.n_tokens = count
        begun = time.perf_counter()
        past = len(self._tokens)
        self._rollback.before(past, count, rows)
        if self._tap:
            self._tap.before(count, rows)
        status = llama_cpp.llama_decode(self._ctx, self._batch)
        address = _get_logits(self._ctx) if rows and status == 0 else 0
        if status == 0:
            self._rollback.after(past + count, count, rows)
        self.native_seconds += time.perf_counter() - begun
        if status != 0:
            self._failed(status, count)
        self._pass = count, rows
        return self._view(address, rows)

    def grow(self, tokens: Sequence[Token], parents: Sequence[int]) -> Logits:
        """See `LanguageModel.grow`: one pass, the nodes in as many sequences as the tree has leaves."""
        count = len(tokens)
        tree = self._tree = self._tree or Branches(self.branches, len(self._tokens))
        if not 0 < count <= self.max_rows:
            raise ValueError(f"{count} nodes in a pass; at most {self.max_rows}")
        if len(self._tokens) + len(tree.parents) + count > self.capacity:
            raise ValueError(f"{count} nodes do not fit the context of {self.capacity}")
        plan = tree.grow(parents)
        self._earlier = None
        for copy in plan.copies:
            llama_cpp.llama_memory_seq_cp(self._memory, copy.sequence, copy.into, 0, copy.length)
        batch = self._batch
        for i, token in enumerate(tokens):
            batch.token[i] = token
            batch.pos[i] = plan.positions[i]
            batch.logits[i] = True
            batch.n_seq_id[i] = len(plan.sequences[i])
            for j, sequence in enumerate(plan.sequences[i]):
                batch.seq_id[i][j] = sequence
        try:
            return self._run(count, count)
        finally:
            for i in range(count):
                batch.n_seq_id[i] = 1
                batch.seq_id[i][0] = TEXT
            tree.tokens += tokens

    def states(self) -> HiddenStates:
        """See `LanguageModel.states`: of the tokens with logits for final states, else of all."""
        if self._tap is None:
            raise ValueError("no states were asked for")
        found = self._tap.view(*self._pass)
        return found if self._earlier is None else np.concatenate([self._earlier, found])

    def keep(self, path: Sequence[int]) -> None:
        """See `LanguageModel.keep`."""
        if self._tree is None:
            return
        tree, self._tree = self._tree, None
        sequence = tree.keep(path)
        begun = time.perf_counter()
        self._tokens.extend(tree.tokens[node] for node in path)
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, len(self._tokens), -1)
        llama_cpp.llama_memory_seq_keep(self._memory, sequence)
        if sequence != TEXT:
            llama_cpp.llama_memory_seq_cp(self._memory, sequence, TEXT, -1, -1)
            llama_cpp.llama_memory_seq_keep(self._memory, TEXT)
        self.native_seconds += time.perf_counter() - begun

    def _drop_tree(self) -> None:
        """Of a round that was interrupted, after which nobody said what to keep."""
        if self._tree is not None:
            self.keep(())

    def _view(self, address: int, rows: int) -> Logits:
        """float32[rows, vocabulary] at `address`; llama.cpp nearly always uses the same buffer."""
        view = self._views.get((address, rows))
        if view is None:
            if len(self._views) > 256:
                self._views.clear()
            floats = (ctypes.c_float * (rows * self.vocab_size)).from_address(address)
            flat = np.frombuffer(floats, np.float32) if rows else np.empty(0, np.float32)
            view = flat.reshape(rows, self.vocab_size)
            self._views[address, rows] = view
        return view

    def _failed(self, status: int, count: int) -> None:
        self._tree = None
        if self.branches > 1:
            llama_cpp.llama_memory_seq_keep(self._memory, TEXT)
        # llama.cpp may have kept a part of the batch: bring the cache back to what `tokens` says, or, where
        # a running state is half way, as far as it can be put right.
        del self._tokens[self._rollback.failed(len(self._tokens)) :]
        if status == _ABORTED or self.abort.is_on:
            raise Cancelled
        reason = "no room in the KV cache" if status == _NO_SLOT else native_log().reason()
        raise DecodeError(
            f"llama.cpp could not compute {count} tokens (code {status}{', ' + reason if reason else ''}).",
            f"Details are in {native_log().path}.",
        )

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens; never refused for 0.

        Where a running state goes back to a copy, what is missing after it is computed again, less than
        `max_rows` tokens; if it were more, RollbackRefusedError says how far it can go. Raises what
        `extend` raises, and the cache is then shorter.
        """
        self._drop_tree()
        held = len(self._tokens)
        if length >= held:
            return
        begun = time.perf_counter()
        near = self._rollback.nearest(held, length)
        if length - near < self._rows:
            near = self._rollback.back(held, near)
            missing = self._tokens[near:length]
            del self._tokens[near:]
        self.native_seconds += time.perf_counter() - begun
        if length - near >= self._rows:
            raise RollbackRefusedError(
                "This model's memory cannot take back tokens.",
                "Use it without a draft (--draft none).",
                possible=near,
            )
        if missing:
            self._decode(missing, rows=0)

    def close(self) -> None:
        """Free the context. May be called again; the weights are closed after it."""
        if self._ctx:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self._ctx)
            self._ctx = None
