"""What there is to know of llama.cpp's build. Light: loads nothing native."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from profiles.gpus import Vendor

# ggml's names of its backends (ggml/include/ggml-*.h) and whose GPUs they drive; part of a file's name
# in the wheel is the second.
_GPU_BACKENDS: dict[str, tuple[str, frozenset[Vendor]]] = {
    "CUDA": ("cuda", frozenset({"nvidia"})),
    "ROCm": ("hip", frozenset({"amd"})),
    "MTL": ("metal", frozenset({"apple"})),
    "Vulkan": ("vulkan", frozenset({"nvidia", "amd", "intel"})),
    "SYCL": ("sycl", frozenset({"intel"})),
}


@dataclass(frozen=True, slots=True)
class Build:
    """The llama.cpp in use."""

    version: str
    """Of llama-cpp-python; each holds one llama.cpp."""
    backends: tuple[str, ...]
    """Those compiled in, by ggml's names: `CPU`, `CUDA`, `MTL` (Metal), `Vulkan`, `RPC`."""
    features: str
    """What llama.cpp says of its kernels, as in `CPU : AVX2 = 1 | FMA = 1`."""
    gpu_offload: bool
    """Whether any backend can take layers."""

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that change with the version, the backends and the kernels."""
        facts = [self.version, *sorted(self.backends), self.features]
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def vendors(backends: Collection[str]) -> frozenset[Vendor]:
    """Whose GPUs these backends drive; names as ggml has them."""
    return frozenset(
        vendor for name in backends for vendor in _GPU_BACKENDS.get(name, ("", frozenset()))[1]
    )


def usable_vendors() -> frozenset[Vendor]:
    """Whose GPUs the installed llama.cpp was built for, by the libraries that lie beside it."""
    names = [path.name for path in _libraries()]
    shipped = [
        backend
        for backend, (part, _) in _GPU_BACKENDS.items()
        if any(f"ggml-{part}" in name for name in names)
    ]
    return vendors(shipped)


def _libraries() -> list[Path]:
    given = os.environ.get("LLAMA_CPP_LIB_PATH")  # as llama-cpp-python has it
    spec = None if given else find_spec("llama_cpp")
    folder = (
        Path(given) if given else Path(spec.origin).parent / "lib" if spec and spec.origin else None
    )
    try:
        return list(folder.iterdir()) if folder else []
    except OSError:
        return []
