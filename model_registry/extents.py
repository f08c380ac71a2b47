"""Where in a GGUF file each tensor lies."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model_registry.gguf import GGUFError, parse_header
from model_registry.layout import LayoutSum


@dataclass(frozen=True, slots=True)
class Extent:
    """A piece of a file, in bytes."""

    start: int
    size: int


def tensor_extents(path: Path) -> Mapping[str, Extent]:
    """The tensors of one file by name. Raises GGUFError, also for types that are not known."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        table = _Table()
        header = parse_header(data, table)
    if header.data_end is None:
        raise GGUFError("It holds tensors of an unknown type.")
    alignment = header.metadata.get("general.alignment", 32)
    step = alignment if isinstance(alignment, int) else 32
    # Each begins where the one before ends, rounded up: `parse_header` has seen to that.
    starts, at, end = {}, 0, 0
    for name, size in table.sizes.items():
        starts[name], end = at, at + size
        at = -(-end // step) * step
    first = header.data_end - end
    return {name: Extent(first + starts[name], size) for name, size in table.sizes.items()}


class _Table(LayoutSum):
    """Keeps the names, too."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {}

    def add(self, name: str, size: int) -> None:
        """Note one tensor."""
        super().add(name, size)
        self.sizes[name] = size
