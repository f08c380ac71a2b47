"""GPUs that are here and that llama.cpp does not compute on, each with what would change that."""

from __future__ import annotations

from edgespec.llama import rebuild
from edgespec.llama.backends import vendors
from edgespec.llama.probe import Probe
from model_registry.sizes import human_size
from profiles.gpus import Gpu, Vendor
from profiles.hardware import Hardware

_DRIVER: dict[Vendor, str] = {
    "nvidia": "Check the driver with nvidia-smi, and that CUDA_VISIBLE_DEVICES does not hide it.",
    "amd": "Check that the driver is loaded and that you may use /dev/kfd and /dev/dri.",
    "intel": "Check that the driver is loaded and that you may use /dev/dri.",
    "apple": "Metal is missing: run a Python for arm64, outside a virtual machine.",
}


def unused(hardware: Hardware, probe: Probe) -> list[tuple[str, str]]:
    """For each such GPU a sentence and the next step."""
    local = [one for one in probe.devices if not one.name.startswith("RPC")]
    has_gpu = any(one.kind in ("gpu", "integrated") for one in local)
    found = []
    for gpu in dict.fromkeys(hardware.gpus):
        if gpu.vendor not in vendors(probe.build.backends):
            text = f"{_name(gpu)} is here, but this build of llama.cpp cannot use it."
            if gpu.integrated and gpu.vendor != "apple":
                text += " It would read prompts faster, and hardly answer faster."
            found.append((text, rebuild.next_step(gpu.vendor, probe.build)))
        elif not has_gpu:
            text = f"{_name(gpu)} is here and this build is made for it, but llama.cpp sees no GPU."
            found.append((text, _DRIVER[gpu.vendor]))
    return found


def _name(gpu: Gpu) -> str:
    return f"{gpu.name} ({human_size(gpu.memory)})" if gpu.memory else gpu.name
