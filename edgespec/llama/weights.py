"""Loading a GGUF file, with a sentence for each way that can fail."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import llama_cpp

from edgespec.errors import ModelFileError, OutOfMemoryError
from edgespec.llama import rpc
from edgespec.llama.ggml import device_array
from edgespec.llama.log import Buffers, NativeLog, native_log
from edgespec.llama.mtp_file import check_trunk
from edgespec.llama.vocab import LlamaTokenizer
from model_registry.gguf import GGUFHeader
from model_registry.inspect import check_file, split_parts
from model_registry.problem import ModelFileProblem

_MMAP, _NO_MMAP = 1, 0  # enum llama_load_mode

MemoryKind = Literal["kv", "window", "recurrent", "hybrid"]
"""What remembers the text: keys and values of all tokens; of the last ones only, in some layers; a running
state; or a state in some layers and keys and values in others."""


class Weights:
    """The tensors of one file; contexts are made from it. Close it after all of them."""

    def __init__(
        self,
        path: Path,
        *,
        mmap: bool = True,
        gpu_layers: int = -1,
        devices: Sequence[str] | None = None,
        split: Sequence[int] = (),
        rearranged: bool = True,
        mtp: bool = False,
    ) -> None:
        """Load `path`.

        The last `gpu_layers` layers go to `devices`, in this order, so many to each as `split` says;
        -1 stands for all, the output layer counts as one. With None for the devices llama.cpp takes
        all GPUs that it sees, without `split` it goes by their free memory. If not `rearranged`, mapped
        weights on the CPU are the file itself, and change with it. `mtp` loads layers for the token after
        the next too. Raises ModelFileError and
        OutOfMemoryError.
        """
        try:
            self.header: GGUFHeader = check_file(path)
        except ModelFileProblem as problem:
            raise ModelFileError(problem.message, problem.hint) from problem
        check_trunk(path, self.header)
        self.path = path
        log = native_log()
        log.mark()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        params.load_mtp = mtp
        params.load_mode = _MMAP if mmap else _NO_MMAP
        params.use_extra_bufts = rearranged and not _amx_build()
        self._devices = tuple(devices or ())
        self.placed = place_words(gpu_layers, self._devices)
        if devices is not None:
            listed = device_array(devices)
            params.devices = ctypes.cast(listed, ctypes.c_void_p)
        if split:
            shares = (ctypes.c_float * llama_cpp.llama_max_devices())(*split)
            params.tensor_split = shares
        self._handle: llama_cpp.llama_model_p | None = llama_cpp.llama_model_load_from_file(
            str(path).encode(), params
        )
        if not self._handle:
            raise _load_error(path, log)
        rpc.hold(self._devices)
        self.buffers: Buffers = log.buffers()
        self.tokenizer = LlamaTokenizer(self._handle)
        self.rolls_back = True
        """Whether tokens can be taken back, which drafting needs: false where a context failed to."""

    @property
    def handle(self) -> llama_cpp.llama_model_p:
        """llama.cpp's model pointer."""
        if not self._handle:
            raise ValueError("these weights are closed")
        return self._handle

    @cached_property
    def name(self) -> str:
        """The file's name without folder and ending."""
        return self.path.stem

    @cached_property
    def trained_context(self) -> int:
        """Tokens that the model was trained to look back on."""
        return int(llama_cpp.llama_model_n_ctx_train(self.handle))

    @cached_property
    def file_bytes(self) -> int:
        """Size of the file, all parts of a split set together."""
        return sum(part.stat().st_size for part in split_parts(self.path, self.header))

    @cached_property
    def parameters(self) -> int:
        """How many numbers the tensors hold."""
        return int(llama_cpp.llama_model_n_params(self.handle))

    @cached_property
    def tensor_bytes(self) -> int:
        """Size of all tensors, as llama.cpp counts it."""
        return int(llama_cpp.llama_model_size(self.handle))

    @cached_property
    def memory(self) -> MemoryKind:
        """The kind of memory that contexts of this model get (llama_model::create_memory)."""
        if llama_cpp.llama_model_is_recurrent(self.handle):
            return "recurrent"
        if llama_cpp.llama_model_is_hybrid(self.handle):
            return "hybrid"
        return "window" if self.window else "kv"

    @cached_property
    def window(self) -> int:
        """Tokens that layers with a sliding window look back on; 0 if there are none."""
        return max(int(llama_cpp.llama_model_n_swa(self.handle)), 0)

    @cached_property
    def chat_template(self) -> str | None:
        """The Jinja chat template in the file."""
        source = llama_cpp.llama_model_chat_template(self.handle, None)
        return source.decode("utf-8", errors="replace") if source else None

    def close(self) -> None:
        """Free the tensors. May be called again."""
        if self._handle:
            llama_cpp.llama_model_free(self._handle)
            rpc.release(self._devices)
            self._handle = None


def place_words(gpu_layers: int, devices: Sequence[str]) -> str:
    """Where weights are, in words that differ where the speed may."""
    return f"{gpu_layers} layers on {', '.join(devices)}" if devices else "CPU"


def _amx_build() -> bool:
    """Whether llama.cpp was built with AMX kernels, which crash as GCC compiles them.

    The tile configuration is optimised away (llama.cpp pull request 26954). They are used only for
    rearranged weights, so those are done without; scripts/cmake-args builds without AMX.
    """
    return b"AMX_INT8 = 1" in llama_cpp.llama_print_system_info()


def _load_error(path: Path, log: NativeLog) -> ModelFileError | OutOfMemoryError:
    lines = "\n".join(log.recent)
    reason = log.reason()
    if "unknown model architecture" in lines:
        return ModelFileError(
            f"{path.name}: this llama.cpp does not know the model's architecture ({reason}).",
            "Use another model, or a newer EdgeSpec.",
        )
    if any(sign in lines for sign in ("failed to allocate", "out of memory", "unable to allocate")):
        return OutOfMemoryError(
            f"{path.name} does not fit the memory ({reason}).",
            "Use a smaller model or a smaller quantisation, or offload fewer layers (--gpu-layers).",
        )
    return ModelFileError(
        f"{path.name} cannot be loaded{': ' + reason if reason else ''}.",
        f"The file may be damaged: fetch it again. Details are in {log.path}.",
    )
