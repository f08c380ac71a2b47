"""Taking back tokens, for each kind of memory that llama.cpp has (src/llama-memory-*, llama-kv-cache*).

A KV cache drops its last cells. Where attention looks back on a window only, cells that fell out of it
may hold later tokens by now. A recurrent state does not know what it was a token ago: for some
architectures llama.cpp keeps the states of the last tokens of a pass beside it (`n_rs_seq`); for all of
them it can be copied, and put back later. What came after the copy must then be computed again.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Protocol

import llama_cpp
import numpy as np

from edgespec.errors import DecodeError, RollbackRefusedError
from edgespec.llama.weights import Weights
from edgespec.memory import COPIES
from edgespec.model import LanguageModel

_SEQUENCE = 0
_PARTIAL = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
LONG = 64
"""Tokens. No copy is older than so many, and one made after reading so many at once is kept for longer."""
_NOISE = 0.05
"""Of the range of a row of logits: more than kernels for one row and for two differ by."""


class Rollback(Protocol):
    """What a context asks of its memory. `held` is how many tokens it holds before or after the call."""

    snapshots: int
    """How many tokens of the last pass can be taken back for nothing, where anything else has a price."""

    def first(self, count: int, rows: int) -> int:
        """Of `count` tokens for one pass, how many are to be a pass of their own before the others."""
        ...

    def before(self, held: int, count: int, rows: int) -> None:
        """A pass over `count` tokens, with logits of the last `rows`, is about to begin."""
        ...

    def after(self, held: int, count: int, rows: int) -> None:
        """That pass went well."""
        ...

    def nearest(self, held: int, length: int) -> int:
        """The longest length, up to `length`, that `back` can go to."""
        ...

    def back(self, held: int, length: int) -> int:
        """Go to a length that `nearest` gave; returns where it is, shorter if llama.cpp refused."""
        ...

    def failed(self, held: int) -> int:
        """A pass broke off: put right what it left; returns how many tokens are held, at most `held`."""
        ...


class Cells:
    """A KV cache: every length can be gone back to, also after a pass that broke off."""

    snapshots = 0

    def __init__(self, memory: llama_cpp.llama_memory_t) -> None:
        self._memory = memory

    def first(self, count: int, rows: int) -> int:
        """None."""
        return 0

    def before(self, held: int, count: int, rows: int) -> None:
        """Nothing to do."""

    def after(self, held: int, count: int, rows: int) -> None:
        """Nothing to do."""

    def nearest(self, held: int, length: int) -> int:
        """Any length."""
        return length

    def back(self, held: int, length: int) -> int:
        """Drop the cells from there on."""
        if length and llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, length, -1):
            return length
        llama_cpp.llama_memory_clear(self._memory, False)
        return 0

    def failed(self, held: int) -> int:
        """llama.cpp may have kept a part of the pass."""
        return self.back(held, held)


class Window(Cells):
    """A KV cache with cells that are used again when they have left a sliding window.

    Contexts are made with `swa_full`, so that no cell is; but what was lost would change the text, and
    llama.cpp takes back tokens without looking (llama_kv_cache_iswa::seq_rm).
    """

    def __init__(self, memory: llama_cpp.llama_memory_t, window: int) -> None:
        """`window` tokens are looked back on."""
        super().__init__(memory)
        self._window = window

    def nearest(self, held: int, length: int) -> int:
        """Any length whose window is still there; else nothing."""
        oldest = llama_cpp.llama_memory_seq_pos_min(self._memory, _SEQUENCE)
        return length if oldest <= max(0, length - self._window) else 0


@dataclass(frozen=True, slots=True)
class _Copy:
    """The state after `length` tokens."""

    length: int
    size: int
    data: ctypes.Array[ctypes.c_uint8]
    lasting: bool


class States:
    """A recurrent state, alone or beside a KV cache."""

    def __init__(
        self,
        context: llama_cpp.llama_context_p,
        memory: llama_cpp.llama_memory_t,
        *,
        stepwise: bool,
    ) -> None:
        """`stepwise`: tokens that may be taken back come in passes of one, as those of a draft do."""
        self.snapshots = int(llama_cpp.llama_n_rs_seq(context))
        self._context, self._memory = context, memory
        self._stepwise = stepwise
        self._copies: list[_Copy] = []
        """Ascending, each of a text that the present one begins with."""
        self._passed = 0
        """Tokens of the last pass: snapshots were made after each of them, older ones are of other texts.
        0 when they are used up: llama.cpp goes back once a pass."""
        self._cut = False
        self.refused = False
        """Whether a copy could not be put back."""

    def first(self, count: int, rows: int) -> int:
        """A long text but its last token: so a copy lies where the text is read from again, which needs
        the logits of that token anew."""
        return count - 1 if rows == 1 and count > LONG else 0

    def before(self, held: int, count: int, rows: int) -> None:
        """Copy the state if the tokens to come may be refused, or if the last copy is old."""
        newest = self._copies[-1].length if self._copies else 0
        doubtful = rows > 1 and count - 1 > self.snapshots
        if held > newest and (doubtful or held - newest >= LONG):
            self._copy(held, lasting=False)

    def after(self, held: int, count: int, rows: int) -> None:
        """Copy the state where a text ends that was read, and from which a draft may go on."""
        self._passed = count
        if rows <= 1 and (count > 1 or (self._stepwise and self._cut)):
            self._copy(held, lasting=count >= LONG)
        self._cut = False

    def nearest(self, held: int, length: int) -> int:
        """All lengths that there are snapshots or copies of; the empty text is always one."""
        if self._kept(held - length):
            return length
        return max((copy.length for copy in self._copies if copy.length <= length), default=0)

    def back(self, held: int, length: int) -> int:
        """By snapshots, or else to the newest copy."""
        kept = self._kept(held - length)
        self._passed, self._cut = 0, True
        self._copies = [copy for copy in self._copies if copy.length <= length]
        if kept and llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, length, -1):
            return length
        return self._restore()

    def failed(self, held: int) -> int:
        """Some layers may have gone on and others not, so no snapshot counts."""
        self._passed, self._cut = 0, True
        return self._restore()

    def _kept(self, count: int) -> bool:
        """Whether there is a snapshot of the state so many tokens ago.

        llama.cpp believes in as many as it has room for, but a pass over n tokens writes those of the
        last n - 1 only, and the state before them is gone (src/models/lfm2.cpp, delta-net-base.cpp).
        """
        return 0 < count < min(self.snapshots + 1, self._passed)

    def _copy(self, length: int, *, lasting: bool) -> None:
        size = llama_cpp.llama_state_seq_get_size_ext(self._context, _SEQUENCE, _PARTIAL)
        data = self._room(size)
        got = llama_cpp.llama_state_seq_get_data_ext(self._context, data, size, _SEQUENCE, _PARTIAL)
        if size and got == size:
            self._copies.append(_Copy(length, size, data, lasting))

    def _room(self, size: int) -> ctypes.Array[ctypes.c_uint8]:
        """A buffer: that of a copy that can be spared, if there are enough, or a new one."""
        if len(self._copies) < COPIES:
            return (ctypes.c_uint8 * size)()
        spare = next((copy for copy in self._copies if not copy.lasting), self._copies[0])
        self._copies.remove(spare)
        return spare.data if len(spare.data) >= size else (ctypes.c_uint8 * size)()

    def _restore(self) -> int:
        """Go to the newest copy that llama.cpp takes; to the empty text if it takes none."""
        while self._copies:
            copy = self._copies[-1]
            taken = llama_cpp.llama_state_seq_set_data_ext(
                self._context, copy.data, copy.size, _SEQUENCE, _PARTIAL
            )
            # What keys and values there are of later tokens, the copy knows nothing of.
            if (
                taken
                and llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, copy.length, -1)
                and llama_cpp.llama_memory_seq_pos_max(self._memory, _SEQUENCE) == copy.length - 1
            ):
                return copy.length
            self._copies.pop()
            self.refused = True
        llama_cpp.llama_memory_clear(self._memory, False)
        return 0


def rollback_of(
    weights: Weights,
    context: llama_cpp.llama_context_p,
    memory: llama_cpp.llama_memory_t,
    *,
    stepwise: bool,
) -> Rollback:
    """The way to take back tokens in a context of a model."""
    if weights.memory == "kv":
        return Cells(memory)
    if weights.memory == "window":
        return Window(memory, weights.window)
    return States(context, memory, stepwise=stepwise)


def tried(model: LanguageModel, states: States) -> bool:
    """Whether an empty model computes, after going back, what it computed at that place before.

    llama.cpp's common_context_can_seq_rm (common/common.cpp) asks whether the memory says yes; here the
    logits are compared too. Four passes over two tokens at most; the cache is empty at the end.
    """
    one, two, three, four, refused = (token % model.vocab_size for token in range(1, 6))
    try:
        model.extend([one, two], rows=1)
        expected = model.extend([three, four], rows=1)[0].copy()
        model.truncate(2)
        if model.max_rows > 1:
            model.extend([three, refused], rows=2)
            model.truncate(3)
            again = model.extend([four], rows=1)[0]
        else:
            again = model.extend([three, four], rows=1)[0]
        same = np.abs(again - expected).max() <= _NOISE * np.ptp(expected)
        return bool(same) and not states.refused
    except (DecodeError, RollbackRefusedError):
        return False
    finally:
        model.truncate(0)
