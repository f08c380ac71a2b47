"""llama.cpp's lines about buffers, as its backends write them."""

from __future__ import annotations

from edgespec.llama.log import native_log
from edgespec.memory import MIB, Share

LINES = """\
load_tensors:   CPU_Mapped model buffer size =    10.00 MiB
load_tensors:   CPU_REPACK model buffer size =     5.00 MiB
load_tensors:        CUDA0 model buffer size =    40.00 MiB
load_tensors:        CUDA1 model buffer size =    30.00 MiB
load_tensors:  MTL0_Mapped model buffer size =    20.00 MiB
load_tensors: RPC0[127.0.0.1:50052] model buffer size =    47.71 MiB
llama_context:  CUDA_Host  output buffer size =     0.50 MiB
llama_kv_cache:      CUDA0 KV buffer size =    11.25 MiB
llama_kv_cache: MTL0_Private KV buffer size =     2.00 MiB
llama_memory_recurrent:      CUDA0 RS buffer size =     1.00 MiB
sched_reserve:      CUDA0 compute buffer size =    97.00 MiB
sched_reserve:  CUDA_Host compute buffer size =     4.25 MiB
llama_context:      CUDA0 compute buffer size is  97.0000 MiB, matches expectation of  97.0000 MiB
"""


def test_buffers_by_device() -> None:
    log = native_log()
    log.mark()
    for line in LINES.splitlines(keepends=True):
        log._receive(2, line.encode(), None)
    buffers = log.buffers()
    log.mark()
    mib = {
        share.device: tuple(part / MIB for part in (share.weights, share.kv_cache, share.compute))
        for share in buffers.shares
    }
    assert {name: tuple(round(part, 2) for part in parts) for name, parts in mib.items()} == {
        "CPU": (15, 0, 4.75),
        "CUDA0": (40, 12.25, 97),
        "CUDA1": (30, 0, 0),
        "MTL0": (20, 2, 0),
        "RPC0": (47.71, 0, 0),
    }
    assert buffers.weights == sum(share.weights for share in buffers.shares)
    assert buffers.kv_cache == sum(share.kv_cache for share in buffers.shares)
    assert buffers.compute + buffers.output == sum(share.compute for share in buffers.shares)
    assert buffers.output == MIB // 2


def test_no_lines() -> None:
    log = native_log()
    log.mark()
    assert log.buffers().shares == ()
    assert Share("CPU").total == 0
