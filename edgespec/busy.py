"""Tell whether a machine had something else to do while it was measured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median, quantiles

import psutil

from edgespec.costs import CostTable

_MOST_OTHERS = 0.15
"""Of all cores. A desktop at rest takes a few hundredths."""
_MOST_SPREAD = 1.3
"""Median over low quantile. On a quiet machine it is under 1.1."""
_FEWEST = 4
"""Samples that tell a spread."""


def low(samples: Sequence[float]) -> float:
    """The quantile at 20 %: what is seldom disturbed."""
    return samples[0] if len(samples) == 1 else quantiles(samples, n=5, method="inclusive")[0]


class Others:
    """The share of all cores that other programs, or other guests of the same hardware, had."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._cores = psutil.cpu_count() or 1
        self._last = self._now()

    def __call__(self) -> float:
        """Since the last call: 0 to 1."""
        before, self._last = self._last, self._now()
        wall, used, own = (now - then for now, then in zip(self._last, before, strict=True))
        return min(max(used - own, 0.0) / (wall * self._cores), 1.0) if wall > 0 else 0.0

    def _now(self) -> tuple[float, float, float]:
        """Seconds: of the clock, of all cores at work, and of this process."""
        times = psutil.cpu_times()
        # Guests' time is counted in the user's already; stolen time is nobody's on this system.
        names = ("user", "nice", "system", "irq", "softirq", "interrupt", "dpc", "steal")
        used = sum(getattr(times, name, 0.0) for name in names)
        own = self._process.cpu_times()
        return time.monotonic(), used, own.user + own.system


def quiet_now(seconds: float = 0.3) -> bool:
    """Whether other programs leave the processor alone, to be asked where a figure is doubted."""
    others = Others()
    time.sleep(seconds)
    return others() <= _MOST_OTHERS


def busy(samples: Mapping[str, Sequence[float]], table: CostTable) -> tuple[str, ...]:
    """Why figures are not to be believed, as sentences; none when they are.

    `samples` holds seconds by the names that calibrating gives them, `table` what was made of them.
    """
    found = (_others(samples), _spread(samples), _steep(table))
    return tuple(text for text in found if text)


def disturbed(share: float) -> str:
    """Why figures are not to be believed, if others had this share of the processor; else empty."""
    if share <= _MOST_OTHERS:
        return ""
    return f"Other programs kept {share:.0%} of the processor busy."


def _others(samples: Mapping[str, Sequence[float]]) -> str:
    shares = samples.get("others", ())
    return disturbed(median(shares)) if shares else ""


def _spread(samples: Mapping[str, Sequence[float]]) -> str:
    spreads = [
        (median(row) / low(row), row)
        for name, row in samples.items()
        if name.startswith("verify ") and len(row) >= _FEWEST
    ]
    spreads.sort(key=lambda one: one[0])
    middle, row = spreads[len(spreads) // 2] if spreads else (1.0, ())
    if middle <= _MOST_SPREAD:
        return ""
    return f"The same pass took from {min(row) * 1e3:.0f} to {max(row) * 1e3:.0f} ms."


def _steep(table: CostTable) -> str:
    """A single row that takes longer than four waits for something else than arithmetic."""
    if table.verify[1] <= 1.1 * table.verify.get(4, float("inf")):
        return ""
    return (
        "One row took longer than four: the weights are read from the disk again and again. Use no "
        "--mmap, or a smaller model."
    )
