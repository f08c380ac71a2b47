"""How many bits to multiply with. Needs the extra `train`."""

from __future__ import annotations

import time

import torch


def half_is_quick() -> bool:
    """Whether this processor multiplies bfloat16 much faster than float32, by trying."""
    took = {}
    for kind in (torch.float32, torch.bfloat16):
        one, other = torch.ones(256, 1024, dtype=kind), torch.ones(1024, 1024, dtype=kind)
        times = []
        for _ in range(6):
            begun = time.perf_counter()
            one @ other
            times.append(time.perf_counter() - begun)
        took[kind] = min(times[1:])
    return took[torch.bfloat16] < 0.6 * took[torch.float32]
