"""Sequences for trees: every node is in those of the leaves below it, and sees its ancestors only."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.llama.branches import TEXT, Branches
from edgespec.model import ROOT


class Cells:
    """A unified cache as llama.cpp keeps it: cells with a position and a set of sequences."""

    def __init__(self, length: int) -> None:
        self.cells: list[tuple[int, int, set[int]]] = [(ROOT, i, {TEXT}) for i in range(length)]

    def end(self, sequence: int) -> int:
        return max(
            (position for _, position, owners in self.cells if sequence in owners), default=-1
        )

    def feed(self, tree: Branches, first: int, parents: list[int]) -> list[tuple[int, set[int]]]:
        """Grow by one pass; returns for each node what it sees: the other nodes, itself included."""
        plan = tree.grow(parents)
        for copy in plan.copies:
            for _, position, owners in self.cells:
                if copy.sequence in owners and position < copy.length:
                    owners.add(copy.into)
        for sequences in plan.sequences:
            assert len({self.end(sequence) for sequence in sequences}) == 1, "diverged"
        begun = {s: self.end(s) + 1 for sequences in plan.sequences for s in sequences}
        for i, (position, sequences) in enumerate(zip(plan.positions, plan.sequences, strict=True)):
            assert sequences, "a node without a sequence"
            for sequence in sequences:
                assert position == begun[sequence], "positions of a sequence must follow each other"
                begun[sequence] += 1
            self.cells.append((first + i, position, set(sequences)))
        return [
            (first + i, self._seen(sequences[0], position))
            for i, (position, sequences) in enumerate(
                zip(plan.positions, plan.sequences, strict=True)
            )
        ]

    def _seen(self, sequence: int, position: int) -> set[int]:
        return {
            node
            for node, at, owners in self.cells
            if sequence in owners and at <= position and node != ROOT
        }


def way(parents: list[int], node: int) -> list[int]:
    """From the text down to a node."""
    return [*way(parents, parents[node]), node] if node != ROOT else []


@pytest.mark.parametrize("seed", range(200))
def test_a_node_sees_its_ancestors_and_nothing_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(0, 4))
    tree, cells = Branches(64, length), Cells(length)
    parents: list[int] = []
    for _ in range(int(rng.integers(1, 4))):
        more = [int(rng.integers(ROOT, len(parents) + i)) for i in range(int(rng.integers(1, 8)))]
        seen = cells.feed(tree, len(parents), more)
        parents += more
        for node, visible in seen:
            assert visible == set(way(parents, node))
    for node in range(len(parents)):
        path = way(parents, node)
        kept = tree.keep(path)
        held = {n for n, at, owners in cells.cells if kept in owners and at < length + len(path)}
        assert held - {ROOT} == set(path)


def test_a_chain_stays_in_the_text_s_own_sequence() -> None:
    tree = Branches(4, 10)
    plan = tree.grow([ROOT, 0, 1])
    assert (plan.copies, plan.positions, plan.sequences) == ([], [10, 11, 12], [[TEXT]] * 3)


def test_what_is_no_tree_is_refused() -> None:
    for parents in ([0], [ROOT, 5], [-2]):
        with pytest.raises(ValueError, match="parent"):
            Branches(4, 3).grow(parents)
    with pytest.raises(ValueError, match="more than 2 branches"):
        Branches(2, 3).grow([ROOT, ROOT, ROOT])
    tree = Branches(4, 3)
    tree.grow([ROOT, ROOT, 0])
    for path in ([2], [0, 1], [7], [1, 2]):
        with pytest.raises(ValueError, match="no path"):
            tree.keep(path)
