"""What was collected, on disk: shards of hidden states in float16, mapped, with an index in JSON.

    00012.final.npy     float16[rows, width]: the final states of the answers, one after the other
    00012.likely.npy    int32[rows, 8]: what they say, the likeliest tokens, and
    00012.shares.npy    float16[rows, 8]: their probabilities
    00012.layers.npy    float16[rows, layers * width]: of prompts and answers, where the target gives them
    00012.json          the texts: tokens, where the answer starts, ...

The index of a shard is written last: without it there is no shard, and a crash costs that one only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgespec.model import Token
from edgespec.train.speaking import Spoken, States


@dataclass(frozen=True, slots=True)
class Text:
    """One answer with its prompt, of a shard: n tokens of m altogether."""

    prompt: int
    """Its number."""
    tokens: tuple[Token, ...]
    start: int
    """The first token of the answer."""
    likely: NDArray[np.int32]
    """int32[n, LIKELY]: the target's likeliest tokens at each place of the answer, in order."""
    shares: States
    """float16[n, LIKELY]: their probabilities."""
    greedy: bool
    row: int
    """The first of its `Shard.final`."""
    layer_row: int
    """The first of its `Shard.layers`."""

    @property
    def best(self) -> NDArray[np.int32]:
        """int32[n]: the likeliest one."""
        return self.likely[:, 0]


@dataclass(frozen=True, slots=True)
class Shard:
    """Some answers."""

    number: int
    held: bool
    """Held out: never trained on."""
    seconds: float
    """What it took to collect it."""
    texts: tuple[Text, ...]
    final: States
    """float16[rows, width], mapped."""
    layers: States | None
    """float16[rows, layers * width], mapped."""

    def final_of(self, text: Text) -> States:
        """float16[n, width]: the states that said `text.best`."""
        return self.final[text.row : text.row + len(text.best)]

    def layers_of(self, text: Text) -> States:
        """float16[m - 1, layers * width]: of all tokens but the last. Raises ValueError without them."""
        if self.layers is None:
            raise ValueError("no layers were collected")
        return self.layers[text.layer_row : text.layer_row + len(text.tokens) - 1]


class Shards:
    """The shards in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def numbers(self) -> list[int]:
        """Of those that are complete, ascending."""
        found = (path.stem for path in self._folder.glob("*.json"))
        return sorted(int(stem) for stem in found if stem.isdecimal())

    @property
    def bytes(self) -> int:
        """What they take on the disk."""
        return sum(path.stat().st_size for path in self._folder.glob("*.npy"))

    def write(self, number: int, spoken: Sequence[Spoken], seconds: float) -> None:
        """Add one, whole or not at all; all of it is held out, or nothing. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        layers = [one.layers for one in spoken if one.layers is not None]
        self._save(self._path(number, "final.npy"), [one.final for one in spoken])
        self._save(self._path(number, "likely.npy"), [one.likely for one in spoken])
        self._save(self._path(number, "shares.npy"), [one.shares for one in spoken])
        if layers:
            self._save(self._path(number, "layers.npy"), layers)
        texts = [
            {
                "prompt": one.asked.number,
                "tokens": list(one.tokens),
                "start": len(one.asked.tokens),
                "greedy": one.asked.greedy,
            }
            for one in spoken
        ]
        index = {
            "held": spoken[0].asked.held,
            "seconds": seconds,
            "layers": bool(layers),
            "texts": texts,
        }
        partial = self._path(number, "part")
        partial.write_text(json.dumps(index))
        os.replace(partial, self._path(number, "json"))

    def read(self, number: int) -> Shard:
        """One that is complete; its states are read when they are used. Raises OSError, ValueError."""
        index = json.loads(self._path(number, "json").read_bytes())
        likely = np.load(self._path(number, "likely.npy"))
        shares = np.load(self._path(number, "shares.npy"))
        texts, row, layer_row = [], 0, 0
        for one in index["texts"]:
            count = len(one["tokens"]) - one["start"]
            text = Text(
                one["prompt"],
                tuple(one["tokens"]),
                one["start"],
                likely[row : row + count],
                shares[row : row + count],
                one["greedy"],
                row,
                layer_row,
            )
            texts.append(text)
            row, layer_row = row + count, layer_row + len(text.tokens) - 1
        final = self._mapped(self._path(number, "final.npy"), row)
        layers = None
        if index["layers"]:
            layers = self._mapped(self._path(number, "layers.npy"), layer_row)
        return Shard(number, index["held"], index["seconds"], tuple(texts), final, layers)

    def all(self) -> Iterator[Shard]:
        """Every complete one."""
        return map(self.read, self.numbers)

    def _save(self, path: Path, parts: Sequence[NDArray[np.generic]]) -> None:
        partial = path.with_suffix(".part")
        with partial.open("wb") as file:
            np.save(file, np.concatenate(parts))
        os.replace(partial, path)

    def _mapped(self, path: Path, rows: int) -> States:
        states: States = np.load(path, mmap_mode="r")
        if len(states) != rows:
            raise ValueError(f"{path} does not go with its index")
        return states

    def _path(self, number: int, ending: str) -> Path:
        return self._folder / f"{number:05}.{ending}"
