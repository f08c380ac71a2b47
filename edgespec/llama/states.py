"""Hidden states of a pass: what heads and feature-level drafts guess from.

The final states, after the last norm, come with the logits, row by row; llama.cpp then computes the
logits of every token of a batch, so they are asked for only where all have logits anyway. Inputs of
single layers come for every token, through functions of llama.cpp's staging header (src/llama-ext.h):
C++ names, which a later llama.cpp may not have. A graph that does not hand out its layers ends the
process when asked, so architectures are listed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Protocol

import llama_cpp
import numpy as np

from edgespec.errors import ModelFileError
from edgespec.llama.weights import Weights
from edgespec.model import HiddenStates

_SET = ("_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
        "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z")  # fmt: skip
_GET = ("_Z30llama_get_embeddings_layer_inpP13llama_contextj",
        "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z")  # fmt: skip
_SET_NEXT = ("_Z26llama_set_embeddings_nextnP13llama_contextbb",
            "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z")  # fmt: skip
_GET_NEXT = ("_Z26llama_get_embeddings_nextnP13llama_context",
            "?llama_get_embeddings_nextn@@YAPEAMPEAUllama_context@@@Z")  # fmt: skip
FLOATS = ctypes.POINTER(ctypes.c_float)
GIVES_LAYERS = frozenset({
    "llama", "qwen3", "qwen3moe", "qwen3next", "qwen35", "qwen35moe", "gemma4", "gpt-oss", "lfm2",
    "lfm2moe", "mimo2", "nemotron_h", "nemotron_h_moe", "hunyuan_vl", "hunyuan-dense", "minimax-01",
    "minimax-m2", "muse-glimmer", "nanbeige", "bailingmoe3", "deepseek4",
})  # fmt: skip
"""As files name them, architectures whose graph sets `t_layer_inp` to n_embd numbers (src/models/*.cpp)."""


class Tap(Protocol):
    """Takes states off a context."""

    width: int

    def splits(self, count: int, rows: int) -> int:
        """Of `count` tokens for one pass, how many are to be a pass of their own before the others."""
        ...

    def before(self, count: int, rows: int) -> None:
        """A pass over `count` tokens, with logits of the last `rows`, is about to begin."""
        ...

    def view(self, count: int, rows: int) -> HiddenStates:
        """float32[n, width] of the pass before, a view or a copy."""
        ...


class FinalStates:
    """After the last norm, of the tokens that have logits; any architecture."""

    def __init__(self, weights: Weights, ctx: llama_cpp.llama_context_p) -> None:
        self.width = int(llama_cpp.llama_model_n_embd(weights.handle))
        self._ctx = ctx

    def splits(self, count: int, rows: int) -> int:
        """All that has no logits."""
        return count - rows if rows else 0

    def before(self, count: int, rows: int) -> None:
        """Ask for them only where every token has logits."""
        llama_cpp.llama_set_embeddings(self._ctx, 0 < rows == count)

    def view(self, count: int, rows: int) -> HiddenStates:
        """float32[rows, width]."""
        if rows == 0:
            return np.empty((0, self.width), np.float32)
        return floats(llama_cpp.llama_get_embeddings(self._ctx), rows, self.width)


class LayerInputs:
    """Inputs of some layers, side by side, of all tokens."""

    def __init__(
        self, weights: Weights, ctx: llama_cpp.llama_context_p, layers: Sequence[int]
    ) -> None:
        """Raises ModelFileError for an architecture, or a llama.cpp, that does not give them."""
        turn_on, self._get = staged(_SET), staged(_GET)
        architecture = weights.header.architecture
        if architecture not in GIVES_LAYERS or turn_on is None or self._get is None:
            raise ModelFileError(
                f"{weights.name}: llama.cpp does not hand out the layers of a {architecture} model.",
                "Use a draft model or a Medusa head with it.",
            )
        self._one = int(llama_cpp.llama_model_n_embd(weights.handle))
        self.width = self._one * len(layers)
        self._ctx, self._layers = ctx, tuple(layers)
        turn_on.argtypes = [llama_cpp.llama_context_p_ctypes, ctypes.c_uint32, ctypes.c_bool]
        turn_on.restype = None
        self._get.argtypes = [llama_cpp.llama_context_p_ctypes, ctypes.c_uint32]
        self._get.restype = FLOATS
        for layer in self._layers:
            turn_on(ctx, layer, True)

    def splits(self, count: int, rows: int) -> int:
        """Nothing."""
        return 0

    def before(self, count: int, rows: int) -> None:
        """Nothing: they are on."""

    def view(self, count: int, rows: int) -> HiddenStates:
        """float32[count, width], a copy."""
        get = self._get
        if get is None:
            raise ValueError("no layers were asked for")
        parts = [floats(get(self._ctx, layer), count, self._one) for layer in self._layers]
        return np.concatenate(parts, axis=1)


class NextStates:
    """What a layer for the token after the next reads: the states before the output, of all tokens."""

    def __init__(self, weights: Weights, ctx: llama_cpp.llama_context_p) -> None:
        """Raises ModelFileError for a llama.cpp that does not give them."""
        functions = next_functions()
        if functions is None:
            raise ModelFileError(
                f"{weights.name}: this llama.cpp does not hand out states for the token after the next.",
                "Choose another method.",
            )
        turn_on, self._get = functions
        self._ctx = ctx
        self.width = int(llama_cpp.llama_model_n_embd_out(weights.handle))
        turn_on(ctx, True, False)

    def splits(self, count: int, rows: int) -> int:
        """Nothing."""
        return 0

    def before(self, count: int, rows: int) -> None:
        """Nothing: they are on."""

    def view(self, count: int, rows: int) -> HiddenStates:
        """float32[count, width], a view."""
        return floats(self._get(self._ctx), count, self.width)


def next_functions() -> tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer] | None:
    """What turns states for the token after the next on (context, on, of all tokens with logits only), and
    what gets them; None where this llama.cpp has neither.
    """
    turn_on, get = staged(_SET_NEXT), staged(_GET_NEXT)
    if turn_on is None or get is None:
        return None
    turn_on.argtypes = [llama_cpp.llama_context_p_ctypes, ctypes.c_bool, ctypes.c_bool]
    turn_on.restype = None
    get.argtypes = [llama_cpp.llama_context_p_ctypes]
    get.restype = FLOATS
    return turn_on, get


def gives_layers() -> bool:
    """Whether this llama.cpp has the functions for inputs of layers."""
    return staged(_SET) is not None and staged(_GET) is not None


def staged(names: Sequence[str]) -> ctypes._NamedFuncPointer | None:
    """A function of the staging header by one of its mangled names; None where there is none."""
    library = llama_cpp.llama_cpp._lib
    for name in names:
        found: ctypes._NamedFuncPointer | None = getattr(library, name, None)
        if found is not None:
            return found
    return None


def floats(pointer: object, rows: int, width: int) -> HiddenStates:
    """float32[rows, width], a view of llama.cpp's buffer."""
    found = np.ctypeslib.as_array(pointer, (rows, width))
    return found.view(np.float32)
