"""Which of llama.cpp's sequences the nodes of a tree belong to. Pure bookkeeping.

A cell of a unified cache may belong to several sequences, and a row sees the cells of its own one. So
every leaf gets a sequence, and a node belongs to those of all leaves below it (examples/speculative
and examples/lookahead of llama.cpp). A tree may grow in several passes: a branch that leaves an older
node takes a copy of the way to it, which costs no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edgespec.model import ROOT

TEXT = 0
"""The sequence of the text itself."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Let `into` begin with the first `length` positions of `sequence`."""

    sequence: int
    into: int
    length: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How a pass over more nodes is to be made."""

    copies: list[Copy]
    """Before the pass, in order."""
    positions: list[int]
    sequences: list[list[int]]
    """By node of the pass; a node belongs to one or more."""


@dataclass(slots=True)
class Branches:
    """The tree that hangs below a text of `length` tokens, until a path of it is kept."""

    most: int
    """Sequences that there are."""
    length: int
    parents: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """By node one of its sequences."""
    ends: list[int] = field(default_factory=list)
    """By sequence in use, how many positions it has."""
    tokens: list[int] = field(default_factory=list)

    def grow(self, parents: Sequence[int]) -> Plan:
        """Add nodes. Raises ValueError for an unknown parent, or more leaves than sequences."""
        first = len(self.parents)
        self.ends = self.ends or [self.length]
        below: list[list[int]] = [[] for _ in parents]
        tops: list[int] = []
        for node, parent in enumerate(parents, start=first):
            if not ROOT <= parent < node:
                raise ValueError(f"node {node} has the parent {parent}")
            self.parents.append(parent)
            self.positions.append(self.length if parent == ROOT else self.positions[parent] + 1)
            self.owners.append(TEXT)
            if parent >= first:
                below[parent - first].append(node)
            else:
                tops.append(node)
        plan = Plan([], self.positions[first:], [[] for _ in parents])
        for top in tops:
            leaves = self._leaves(top, below, first)
            for leaf, sequence in zip(leaves, self._sequences(top, len(leaves), plan), strict=True):
                self._mark(leaf, top, sequence, first, plan)
        return plan

    def _leaves(self, top: int, below: list[list[int]], first: int) -> list[int]:
        """The leaves under `top` among the new nodes, those of elder children first."""
        found, stack = [], [top]
        while stack:
            node = stack.pop()
            if below[node - first]:
                stack += reversed(below[node - first])
            else:
                found.append(node)
        return found

    def _sequences(self, top: int, count: int, plan: Plan) -> list[int]:
        """`count` sequences that hold the way to `top`, and end there."""
        parent, start = self.parents[top], self.positions[top]
        way = TEXT if parent == ROOT else self.owners[parent]
        free = [way] if self.ends[way] == start else []
        while len(free) < count:
            if len(self.ends) == self.most:
                raise ValueError(f"a tree of more than {self.most} branches")
            plan.copies.append(Copy(way, len(self.ends), start))
            free.append(len(self.ends))
            self.ends.append(start)
        return free

    def _mark(self, leaf: int, top: int, sequence: int, first: int, plan: Plan) -> None:
        """Put the new nodes from `top` to `leaf` into the sequence."""
        self.ends[sequence] = self.positions[leaf] + 1
        node = leaf
        while True:
            of_node = plan.sequences[node - first]
            of_node.append(sequence)
            self.owners[node] = of_node[0]
            if node == top:
                return
            node = self.parents[node]

    def keep(self, path: Sequence[int]) -> int:
        """The sequence that holds the path. Raises ValueError when it is none, from the top down."""
        last = ROOT
        for node in path:
            if not 0 <= node < len(self.parents) or self.parents[node] != last:
                raise ValueError(f"{list(path)} is no path of the tree")
            last = node
        return TEXT if last == ROOT else self.owners[last]
