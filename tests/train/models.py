"""Tiny targets for training, and the prompts that they are asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgespec.llama.chorus import Chorus
from edgespec.llama.weights import Weights
from edgespec.train.shards import Text
from edgespec.train.speaking import LIKELY

NO_TORCH = "training needs PyTorch (the extra `train`), which the tests do not install"


def opened(weights: Weights, size: int = 4, layers: Sequence[int] = ()) -> Chorus:
    return Chorus(weights, size=size, length=256, threads=1, layers=layers)


def text(
    tokens: Sequence[int],
    start: int,
    *,
    of: int,
    row: int = 0,
    layer_row: int = 0,
    best: Sequence[int] | None = None,
) -> Text:
    """Greedy, where `best` says nothing else. Of `of` tokens the two that follow the best one are likely
    too, after it.
    """
    said = np.array(tokens[start:] if best is None else best, np.int32)
    likely = ((said[:, None] + np.arange(LIKELY)) % of).astype(np.int32)
    shares = np.tile(np.array([0.6, 0.25, 0.15, 0, 0, 0, 0, 0], np.float16), (len(said), 1))
    return Text(0, tuple(tokens), start, likely, shares, True, row, layer_row)


def prompts_file(path: Path, count: int = 24) -> Path:
    words = ("red", "green", "blue", "grey", "pink", "gold")
    lines = [
        {"messages": [{"role": "user", "content": f"{words[n % 6]} {n}?"}]} for n in range(count)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
