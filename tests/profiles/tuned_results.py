"""Results as tests need them."""

from __future__ import annotations

from typing import Any

from profiles.tuned import Gain, Key, Recommendation, Table, Tuned

KEY = Key(hardware="h", build="b", target="t", draft="d", setup="threads=auto")


def tuned(key: Key = KEY, **changes: object) -> Tuned:
    facts: dict[str, Any] = {
        "key": key,
        "target_name": "big",
        "draft_name": "small" if key.draft else None,
        "measured_at": "2026-01-02T03:04:05+00:00",
        "quick": False,
        "tables": (
            Table(depth=64, verify={1: 0.05, 4: 0.07}, draft={1: 0.01}),
            Table(depth=2048, verify={1: 0.06, 4: 0.08}, draft={1: 0.02}),
        ),
        "threads": 2,
        "batch_threads": 4,
        "exact_rows": {200: 16, 300: 1},
        "acceptance": {"code": 0.9},
        "recommendation": Recommendation(
            method="auto", why="It pays.", pays_from=0.4, gains={50: Gain(length=2, speedup=1.3)}
        ),
    }
    return Tuned(**{**facts, **changes})
